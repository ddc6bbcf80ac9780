// Which jobs: the selector of the API, as a query, as the body's `where`, and as text that people type.
//   state:dead reason:"timed out" due:now..now+1h attempts:3.. header:customer=ann order-
// Its fields have the API's names, so a page's address and an API call's query are the same.
import {momentText, parseMoment} from "./time";

const kLists = ["state", "ids"] as const;
const kTexts = ["id_prefix", "key", "header", "payload", "reason", "reason_is", "holder"] as const;
const kNumbers = ["due_from_ms", "due_to_ms", "created_from_ms", "created_to_ms", "died_from_ms", "died_to_ms",
                  "attempts_min", "attempts_max"] as const;
export const kStates = ["scheduled", "ready", "leased", "dead", "done", "cancelled"];

export type Selector = {[name in (typeof kLists)[number]]?: string[]} &
  {[name in (typeof kTexts)[number]]?: string} & {[name in (typeof kNumbers)[number]]?: number};

export function isEmpty(selector: Selector): boolean {
  return Object.keys(toWhere(selector)).length === 0;
}

/** The fields that are set. */
export function toWhere(selector: Selector): Selector {
  const where: Record<string, unknown> = {};
  for (const name of kLists) if (selector[name]?.length) where[name] = selector[name];
  for (const name of kTexts) if (selector[name]) where[name] = selector[name];
  for (const name of kNumbers) if (selector[name] !== undefined) where[name] = selector[name];
  return where;
}

export function toQuery(selector: Selector): Record<string, string> {
  const query: Record<string, string> = {};
  for (const [name, value] of Object.entries(toWhere(selector))) {
    query[name] = Array.isArray(value) ? value.join(",") : String(value);
  }
  return query;
}

export function fromQuery(query: URLSearchParams): Selector {
  const selector: Selector = {};
  for (const name of kLists) {
    const list = (query.get(name) ?? "").split(",").filter((each) => each !== "");
    if (list.length) selector[name] = list;
  }
  for (const name of kTexts) {
    const text = query.get(name);
    if (text) selector[name] = text;
  }
  for (const name of kNumbers) {
    const text = query.get(name);
    if (text && /^\d+$/.test(text)) selector[name] = Number(text);
  }
  return selector;
}

const quote = (text: string) =>
  /^[^\s"\\]+$/.test(text) && !text.includes(":") ? text : '"' + text.replace(/[\\"]/g, "\\$&") + '"';

function range(from: number | undefined, to: number | undefined, show: (value: number) => string): string {
  return `${from === undefined ? "" : show(from)}..${to === undefined ? "" : show(to)}`;
}

export function toText(selector: Selector): string {
  const words: string[] = [];
  if (selector.state?.length) words.push("state:" + selector.state.join(","));
  if (selector.ids?.length) words.push("id:" + quote(selector.ids.join(",")));
  if (selector.id_prefix) words.push("prefix:" + quote(selector.id_prefix));
  for (const name of ["key", "header", "payload", "reason", "reason_is", "holder"] as const) {
    if (selector[name]) words.push(`${name}:${quote(selector[name]!)}`);
  }
  for (const name of ["due", "created", "died"] as const) {
    const [from, to] = [selector[`${name}_from_ms`], selector[`${name}_to_ms`]];
    if (from !== undefined || to !== undefined) words.push(`${name}:${range(from, to, momentText)}`);
  }
  const {attempts_min: min, attempts_max: max} = selector;
  if (min !== undefined || max !== undefined) words.push("attempts:" + (min === max ? min : range(min, max, String)));
  return words.join(" ");
}

interface Word {
  name: string;  // "" if there is none
  value: string;
}

/** Words between blanks; quotes keep blanks together. */
function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  const pattern = /(?:([a-z_]+):)?("(?:[^"\\]|\\.)*"?|[^\s"]+)/gi;
  for (const [, name, raw] of text.matchAll(pattern)) {
    const quoted = raw!.startsWith('"');
    const value = quoted ? raw!.replace(/^"|"$/g, "").replace(/\\(.)/g, "$1") : raw!;
    words.push({name: (name ?? "").toLowerCase(), value});
  }
  return words;
}

export interface Parsed {
  selector: Selector;
  topic?: string;
  errors: string[];
}

/** Reads what toText writes, and more: a word without a name is the beginning of an id. */
export function parseText(text: string, now: number): Parsed {
  const parsed: Parsed = {selector: {}, errors: []};
  for (const word of wordsOf(text)) applyWord(word, parsed, now);
  return parsed;
}

function applyWord({name, value}: Word, parsed: Parsed, now: number): void {
  const {selector, errors} = parsed;
  switch (name) {
    case "": case "prefix": case "id_prefix": selector.id_prefix = value; break;
    case "topic": parsed.topic = value; break;
    case "id": case "ids": selector.ids = value.split(",").filter((id) => id !== ""); break;
    case "key": case "header": case "payload": case "reason": case "reason_is": case "holder": selector[name] = value; break;
    case "state": {
      const states = value.toLowerCase().split(",").filter((state) => state !== "");
      const wrong = states.find((state) => !kStates.includes(state));
      if (wrong) errors.push(`no state is called ${wrong}; there are ${kStates.join(", ")}`);
      else selector.state = states;
      break;
    }
    case "due": case "created": case "died":
      applyRange(value, (bound) => parseMoment(bound, now), `${name} takes times such as now..now+1h`, errors,
                 (from, to) => Object.assign(selector, from === null ? {} : {[`${name}_from_ms`]: from},
                                             to === null ? {} : {[`${name}_to_ms`]: to}));
      break;
    case "attempts":
      applyRange(value.includes("..") ? value : `${value}..${value}`, (bound) => (/^\d+$/.test(bound) ? Number(bound) : null),
                 "attempts takes numbers such as 3..", errors,
                 (from, to) => Object.assign(selector, from === null ? {} : {attempts_min: from},
                                             to === null ? {} : {attempts_max: to}));
      break;
    default: errors.push(`no field is called ${name}`);
  }
}

function applyRange(value: string, read: (bound: string) => number | null, hint: string, errors: string[],
                    set: (from: number | null, to: number | null) => void): void {
  const dots = value.indexOf("..");
  const bounds = dots < 0 ? null : [value.slice(0, dots), value.slice(dots + 2)];
  const numbers = bounds?.map((bound) => (bound === "" ? null : read(bound)));
  if (!bounds || !numbers || bounds.some((bound, i) => bound !== "" && numbers[i] === null)) {
    errors.push(hint);
    return;
  }
  set(numbers[0]!, numbers[1]!);
}
