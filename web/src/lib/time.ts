// Moments and spans as people write and read them. All moments are milliseconds UTC; the viewer's zone is for display.

const kUnits: [string, number][] = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000], ["ms", 1]];
export const kMinute = 60_000;
export const kHour = 3_600_000;
export const kDay = 86_400_000;

const pad = (value: number, width = 2) => String(value).padStart(width, "0");

/** 90500 is "1m 30s"; two units at most. */
export function span(ms: number): string {
  if (ms < 0) return "-" + span(-ms);
  if (ms > 0 && ms < 0.01) return `${Math.max(1, Math.round(ms * 1000))}µs`;
  if (ms < 1000) return ms === 0 || ms >= 1 ? `${Math.round(ms)}ms` : `${ms.toFixed(2)}ms`;
  if (ms < 10_000) return `${(Math.round(ms / 100) / 10).toString()}s`;
  const parts: string[] = [];
  let rest = Math.round(ms / 1000) * 1000;
  for (const [unit, size] of kUnits) {
    if (unit === "ms" || parts.length === 2) break;
    const number = Math.floor(rest / size);
    if (number === 0 && parts.length > 0) break;
    if (number > 0) parts.push(`${number}${unit}`);
    rest -= number * size;
  }
  return parts.join(" ");
}

export function relative(at: number, now: number): string {
  const distance = at - now;
  if (Math.abs(distance) < 1000) return "now";
  return distance > 0 ? `in ${span(distance)}` : `${span(-distance)} ago`;
}

/** In the viewer's zone: 2026-11-18 14:00:05.250; milliseconds only if there are some. */
export function absolute(at: number): string {
  const date = new Date(at);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  const ms = date.getMilliseconds();
  return `${day} ${clock(at)}${ms ? "." + pad(ms, 3) : ""}`;
}

export function clock(at: number, seconds = true): string {
  const date = new Date(at);
  const minute = `${pad(date.getHours())}:${pad(date.getMinutes())}`;
  return seconds ? `${minute}:${pad(date.getSeconds())}` : minute;
}

export function utc(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString().replace("T", " ").replace(".000Z", "Z").replace("Z", " UTC");
}

/** "1h30m", "15 min", "250ms"; null if it is none. A number alone is milliseconds. */
export function parseSpan(text: string): number | null {
  const trimmed = text.trim().toLowerCase();
  const sign = trimmed.startsWith("-") ? -1 : 1;
  const body = trimmed.replace(/^[+-]/, "").replace(/\s+/g, "");
  if (/^\d+$/.test(body)) return sign * Number(body);
  if (!/^(\d+(\.\d+)?(ms|d|h|min|m|s))+$/.test(body)) return null;
  let ms = 0;
  for (const [, number, unit] of body.matchAll(/(\d+(?:\.\d+)?)(ms|d|h|min|m|s)/g)) {
    ms += Number(number) * kUnits.find(([name]) => name === (unit === "min" ? "m" : unit))![1];
  }
  return sign * Math.round(ms);
}

/** "now", "now+2h", "-15m", "14:30", "2026-11-18 14:00", with Z in UTC, or milliseconds; null if it is none. */
export function parseMoment(text: string, now: number): number | null {
  const trimmed = text.trim();
  if (trimmed === "now") return now;
  if (/^now[+-]/.test(trimmed) || /^[+-]/.test(trimmed)) {
    const distance = parseSpan(trimmed.replace(/^now/, ""));
    return distance === null ? null : now + distance;
  }
  if (/^\d{9,}$/.test(trimmed)) return Number(trimmed);
  const time = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(trimmed);
  if (time) return new Date(now).setHours(Number(time[1]), Number(time[2]), Number(time[3] ?? 0), 0);
  const full = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)(Z)?)?$/.exec(trimmed);
  if (!full) return null;
  const at = new Date(`${full[1]}T${full[2] ?? "00:00"}${full[3] ?? ""}`).getTime();
  return Number.isNaN(at) ? null : at;
}

/** A short text that parseMoment reads back. In the hour that a zone has twice, when summer time ends, it is UTC. */
export function momentText(at: number): string {
  const text = absolute(at).replace(" ", "T");
  if (parseMoment(text, at) !== at) return Number.isNaN(new Date(at).getTime()) ? String(at) : new Date(at).toISOString();
  return text.endsWith(":00") ? text.slice(0, -3) : text;
}

/** For <input type="datetime-local">. */
export function inputMoment(at: number): string {
  return absolute(Math.floor(at / 1000) * 1000).replace(" ", "T");
}

/** What such an input says, if it showed the moment `before` at first: the exact moment unless the viewer changed it. */
export function readInput(text: string, before: number): number | null {
  return text === inputMoment(before) ? before : parseMoment(text, before);
}
