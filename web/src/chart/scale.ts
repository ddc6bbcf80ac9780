// Where the ticks of an axis stand.
import {clock, kDay, kHour, kMinute} from "../lib/time";

/** Round steps from 0 that reach `max`. */
export function ticks(max: number, wanted = 4): number[] {
  if (!(max > 0)) return [0, 1];
  const rough = max / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough)!;
  const all: number[] = [];
  for (let value = 0; value < max + step; value += step) all.push(value);
  return all;
}

const kTimeSteps = [kMinute, 2 * kMinute, 5 * kMinute, 10 * kMinute, 15 * kMinute, 30 * kMinute, kHour, 2 * kHour, 3 * kHour,
                    6 * kHour, 12 * kHour, kDay, 2 * kDay];

/** Round times of the viewer's zone between two moments. */
export function timeTicks(from: number, to: number, wanted: number): {at: number; label: string}[] {
  const rough = (to - from) / Math.max(1, wanted);
  const step = kTimeSteps.find((each) => each >= rough) ?? kDay * Math.ceil(rough / kDay);
  const zone = new Date(from).getTimezoneOffset() * kMinute;
  const all: {at: number; label: string}[] = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) {
    const date = new Date(at);
    const midnight = date.getHours() === 0 && date.getMinutes() === 0;
    all.push({at, label: midnight ? date.toLocaleDateString("en-GB", {day: "numeric", month: "short"}) : clock(at, false)});
  }
  return all;
}

/** The smallest round number of steps so that no more than `most` bars are drawn. */
export function stepsPerBar(steps: number, most: number): number {
  const needed = steps / Math.max(1, most);
  return [1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440].find((each) => each >= needed) ?? Math.ceil(needed);
}
