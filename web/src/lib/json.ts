// JSON with exact numbers. JSON.parse rounds integers above 2^53; these keep every digit that the server or a job sent.

const kIndentMax = 64;  // levels; deeper ones are not indented further, so that the text stays linear in its source
const kMaybeLarge = /\d{16}/;
const kNumber = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** The index after the string that begins at `at`. */
function endOfString(text: string, at: number): number {
  let i = at + 1;
  while (text[i] !== '"') i += text[i] === "\\" ? 2 : 1;
  return i + 1;
}

function numberAt(text: string, at: number): string {
  kNumber.lastIndex = at;
  return kNumber.exec(text)?.[0] ?? "";
}

/** As JSON.parse, but an integer that a double cannot hold is a bigint. */
export function parseExact(text: string): unknown {
  if (!kMaybeLarge.test(text)) return JSON.parse(text);
  JSON.parse(text);  // so that the scan below only meets valid JSON
  const mark = `int-${Math.random().toString(36).slice(2)}:`;
  const parts: string[] = [];
  let from = 0;
  for (let i = 0; i < text.length;) {
    const c = text[i]!;
    if (c === '"') {
      i = endOfString(text, i);
    } else if (c === "-" || (c >= "0" && c <= "9")) {
      const number = numberAt(text, i);
      if (/^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number))) {
        parts.push(text.slice(from, i), JSON.stringify(mark + number));
        from = i + number.length;
      }
      i += number.length;
    } else {
      i += 1;
    }
  }
  parts.push(text.slice(from));
  return JSON.parse(parts.join(""), (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value);
}

/** Indents JSON and copies strings and numbers as they are; null if the text is no JSON. */
export function prettyJson(text: string): string | null {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const parts: string[] = [];
  let depth = 0;
  const line = () => parts.push("\n" + "  ".repeat(Math.min(depth, kIndentMax)));
  for (let i = 0; i < text.length;) {
    const c = text[i]!;
    if (c === '"') {
      const end = endOfString(text, i);
      parts.push(text.slice(i, end));
      i = end;
      continue;
    }
    i += 1;
    if (c === "{" || c === "[") {
      const close = c === "{" ? "}" : "]";
      const rest = /[^ \t\r\n]/g;
      rest.lastIndex = i;
      const next = rest.exec(text);
      if (next?.[0] === close) {
        parts.push(c + close);
        i = next.index + 1;
      } else {
        depth += 1;
        parts.push(c);
        line();
      }
    } else if (c === "}" || c === "]") {
      depth -= 1;
      line();
      parts.push(c);
    } else if (c === ",") {
      parts.push(c);
      line();
    } else if (c === ":") {
      parts.push(": ");
    } else if (!/[ \t\r\n]/.test(c)) {
      parts.push(c);
    }
  }
  return parts.join("");
}

/** As JSON.stringify; a bigint becomes a number with all its digits. */
export function stringifyExact(value: unknown): string {
  const mark = `int-${Math.random().toString(36).slice(2)}:`;
  const text = JSON.stringify(value, (_key, each: unknown) => (typeof each === "bigint" ? mark + each : each));
  return text.replace(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1");
}
