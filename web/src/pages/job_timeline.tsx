// The life of a job, as far as it is known.
import type {ComponentChildren} from "preact";
import type {Job} from "../api/types";
import {plural} from "../lib/format";
import {live} from "../live/live";
import {Text} from "../ui/text";
import {Moment, Since} from "../ui/time";

interface Step {
  key: string;
  at?: number | null | undefined;
  title: ComponentChildren;
  more?: ComponentChildren;
  tone?: "good" | "warn" | "bad" | "next";
}

function attempts(job: Job): Step[] {
  const used = job.attempt;
  if (used === 0) return [];
  const earlier = job.state === "leased" ? used - 1 : used;
  const steps: Step[] = [];
  if (job.state !== "leased" || job.reason) {
    steps.push({
      key: "attempts", at: job.state === "leased" ? undefined : job.last_attempt_ms, tone: job.state === "done" ? "good" : "warn",
      title: job.state === "done" ? `Attempt ${used} of ${job.max_attempts} began` : `${plural(earlier, "attempt")} of ${job.max_attempts} used up`,
      more: job.reason && <>The last one failed: <Text value={job.reason} /></>,
    });
  }
  if (job.state === "leased") {
    steps.push({
      key: "leased", at: job.leased_ms, tone: "good", title: <>Attempt {used} of {job.max_attempts}: leased by <strong><Text value={job.holder ?? "a consumer"} /></strong></>,
      more: job.leased_ms !== undefined && <>for <Since at={job.leased_ms} />, extended {plural(job.extensions ?? 0, "time")}</>,
    });
  }
  return steps;
}

function stepsOf(job: Job): Step[] {
  const steps: Step[] = [{key: "created", at: job.created_ms, title: "Submitted"}];
  const past = job.due_ms !== null && job.due_ms <= live.now();
  const waits = job.state === "scheduled";
  if (job.trigger !== "time") {
    steps.push({key: "count", title: job.count_left ? `Waits for ${plural(job.count_left, "more event")}` : "All its events were counted",
                ...(waits && job.count_left ? {tone: "next" as const} : {})});
  }
  steps.push(...attempts(job));
  if (job.due_ms !== null && job.state !== "dead" && job.state !== "leased") {
    steps.push({key: "due", at: job.due_ms, title: waits ? (past ? "Due, waits for a consumer" : "Will be due") : "Was due",
                ...(waits ? {tone: "next" as const} : {})});
  }
  if (job.state === "leased") steps.push({key: "lease", at: job.lease_deadline_ms, title: "The lease ends", tone: "next"});
  if (job.died_ms !== undefined) steps.push({key: "died", at: job.died_ms, title: "Became a dead letter", tone: "bad", more: job.reason && <Text value={job.reason} />});
  if (job.finished_ms !== undefined) steps.push({key: "end", at: job.finished_ms, title: job.state === "done" ? "Done" : "Cancelled", tone: job.state === "done" ? "good" : "warn"});
  return steps;
}

export function Timeline({job}: {job: Job}) {
  return (
    <ol class="timeline">
      {stepsOf(job).map(({key, at, title, more, tone}) => (
        <li key={key} class={tone ?? ""}>
          <span class="timeline-title">{title}</span>
          {at !== undefined && at !== null && <span class="timeline-at"><Moment at={at} show="both" /></span>}
          {more && <span class="timeline-more">{more}</span>}
        </li>
      ))}
    </ol>
  );
}
