// Numbers for people.
import {span} from "./time";

export type Count = number | bigint;

const kGrouped = new Intl.NumberFormat("en-US");

/** Every digit, in groups of three. */
export function count(value: Count): string {
  return kGrouped.format(value);
}

const kSteps: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** At most four digits: 12,345 is 12.3k. */
export function compact(value: Count): string {
  const number = Number(value);
  if (Math.abs(number) < 10_000) return count(Math.round(number));
  for (const [size, unit] of kSteps) {
    if (Math.abs(number) >= size) return significant(number / size) + unit;
  }
  return count(number);
}

function significant(number: number): string {
  return number >= 100 ? String(Math.round(number)) : number.toFixed(number >= 10 ? 1 : 2).replace(/\.?0+$/, "");
}

export function bytes(value: Count): string {
  let number = Number(value);
  if (number < 1024) return `${number} B`;
  for (const unit of ["KiB", "MiB", "GiB", "TiB"]) {
    number /= 1024;
    if (number < 1024 || unit === "TiB") return `${significant(number)} ${unit}`;
  }
  return "";
}

/** Jobs a second. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return "0";
  return perSecond < 10 ? perSecond.toFixed(1) : compact(Math.round(perSecond));
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return "0%";
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.1) return "<0.1%";
  return `${share < 10 && share !== Math.round(share) ? share.toFixed(1) : Math.round(share)}%`;
}

/** Beside the number of due jobs; the age of the oldest is null if there is none, or if it is not known. */
export function oldestText(due: Count, oldest: number | null): string {
  if (oldest !== null) return `oldest ${span(oldest)}`;
  return Number(due) === 0 ? "nothing waits" : "waiting";
}

export function plural(value: Count, one: string, many = one + "s"): string {
  return `${count(value)} ${Number(value) === 1 ? one : many}`;
}
