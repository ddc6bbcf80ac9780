// Payloads as bytes.

export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** null if the bytes are not valid UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", {fatal: true, ignoreBOM: true}).decode(bytes);
  } catch {
    return null;
  }
}

const kHexLinesMax = 4096;  // 64 KiB; more would make the page slow

/** Offset, sixteen bytes and their printable ASCII, line by line. */
export function hexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length && lines.length < kHexLinesMax; at += 16) {
    const row = Array.from(bytes.subarray(at, at + 16));
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0"));
    const left = hex.slice(0, 8).join(" ").padEnd(23);
    const right = hex.slice(8).join(" ").padEnd(23);
    const ascii = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${left}  ${right}  ${ascii}`);
  }
  const shown = kHexLinesMax * 16;
  if (bytes.length > shown) lines.push(`... ${bytes.length - shown} more bytes`);
  return lines.join("\n");
}
