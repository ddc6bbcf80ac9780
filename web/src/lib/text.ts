// Text of strangers: what cannot be seen, or changes the order of what can, is shown as its code point.

export interface Run {
  text: string;
  hidden?: string;  // the name of a character that would not be seen
}

// Controls, zero-width and bidi characters, line separators, interlinear marks, tags, and halves of surrogate pairs.
const kHidden =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff]|[\u{e0000}-\u{e007f}]|[\ud800-\udfff]/u;

const kNames: Record<number, string> = {
  0x00: "NUL", 0x07: "bell", 0x08: "backspace", 0x09: "tab", 0x0a: "line feed", 0x0d: "carriage return", 0x1b: "escape",
  0x7f: "delete", 0xad: "soft hyphen", 0x61c: "Arabic letter mark", 0x200b: "zero width space",
  0x200c: "zero width non-joiner", 0x200d: "zero width joiner", 0x200e: "left-to-right mark",
  0x200f: "right-to-left mark", 0x2028: "line separator", 0x2029: "paragraph separator",
  0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "pop directional formatting",
  0x202d: "left-to-right override", 0x202e: "right-to-left override", 0x2060: "word joiner",
  0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "first strong isolate",
  0x2069: "pop directional isolate", 0xfeff: "byte order mark",
};

function codeOf(char: string): string {
  const code = char.codePointAt(0)!;
  return "U+" + code.toString(16).toUpperCase().padStart(4, "0");
}

/** The text in runs; with `lines`, line feeds and tabs stay as they are. */
export function runsOf(text: string, lines = false): Run[] {
  if (!kHidden.test(text)) return [{text}];
  const runs: Run[] = [];
  let plain = "";
  for (const char of text) {
    if (!kHidden.test(char) || (lines && (char === "\n" || char === "\t"))) {
      plain += char;
      continue;
    }
    if (plain) runs.push({text: plain});
    plain = "";
    const code = codeOf(char);
    const name = kNames[char.codePointAt(0)!];
    runs.push({text: code, hidden: name ? `${code} ${name}` : code});
  }
  if (plain) runs.push({text: plain});
  return runs;
}

/** The same as one string, for titles and file names. */
export function visible(text: string): string {
  return runsOf(text).map((run) => (run.hidden ? `<${run.text}>` : run.text)).join("");
}

const kLineEnds = /\r\n|\r|\n/g;

export function mixesLineEnds(text: string): boolean {
  return new Set(text.match(kLineEnds)).size > 1;
}

/** A text field makes every line end a line feed: this gives them the form that they had before, if it was one form. */
export function withLineEndsOf(before: string, edited: string): string {
  const end = before.match(kLineEnds)?.[0];
  return end === undefined || mixesLineEnds(before) ? edited : edited.replace(kLineEnds, end);
}
