// What a rule of alerts watches, in words.
import {count} from "./format";
import {span} from "./time";

function amount(threshold: number, unit: string | null): string {
  if (unit === "ms") return span(threshold);
  return count(threshold) + (unit === "percent" ? "%" : "");
}

/** When the rule fires; null if it is off or needs no threshold. */
export function thresholdText(threshold: number | null, unit: string | null): string | null {
  if (threshold === null) return null;
  if (unit === "ms") return `longer than ${amount(threshold, unit)}`;
  if (unit === "jobs") return `more than ${amount(threshold, unit)} jobs`;
  return `${amount(threshold, unit)}${unit === "attempts" ? " failures" : ""} or more`;
}

/** The text of its alerts, "topic {topic} has {value} dead letters, more than {threshold}", of no topic in particular. */
export function templateText(template: string, threshold: number | null, unit: string | null): string {
  return template.replace(/\b(topic|node|job) \{\w+\}/g, "a $1")
    .replace(/\{threshold\}/g, threshold === null ? "its threshold" : amount(threshold, unit))
    .replace(/\{topic\}/g, "TOPIC").replace(/\{\w+\}/g, "…");
}
