// The clipboard. Browsers offer navigator.clipboard only over https and on localhost; the older way works everywhere.

function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "offscreen";
  area.setAttribute("aria-hidden", "true");
  // Inside an open dialog everything outside of it is inert and cannot be selected.
  const place = document.querySelector("dialog[open]") ?? document.body;
  const focused = document.activeElement;
  place.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}

export async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext && navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyBySelection(text);  // permission denied
    }
  }
  return copyBySelection(text);
}

export function download(name: string, type: string, parts: string[]): void {
  const link = document.createElement("a");
  const url = URL.createObjectURL(new Blob(parts, {type}));
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
