// Commands to copy into a shell.

/** One word of a command, whatever is in it. */
export function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";
}

export interface Call {
  method?: string;
  body?: string;
  token?: boolean;  // the server asks for an access token
}

/** The token stays out of the command: the shell puts it in. */
export function curl(url: string, {method, body, token = false}: Call = {}): string {
  const words = ["curl"];
  if (method) words.push("-X", method);
  if (token) words.push("-H", '"Authorization: Bearer $TOCSIN_TOKEN"');
  if (body !== undefined) words.push("-d", quote(body));
  return [...words, quote(url)].join(" ");
}
