// A few jobs, one line each.
import type {Job} from "../api/types";
import {href} from "../lib/route";
import {StateBadge} from "./basics";
import {Text} from "./text";
import {Moment} from "./time";

export function jobHref(topic: string, job: {id: string; key?: string}): string {
  return href(["topics", topic, "jobs", job.id], {key: job.key});
}

export function JobSamples({topic, jobs}: {topic: string; jobs: Job[]}) {
  return (
    <ul class="samples" aria-label="Some of them">
      {jobs.map((job) => (
        <li key={job.id + (job.key ?? "")}>
          <a class="mono" href={jobHref(topic, job)} target="_blank" rel="noreferrer"><Text value={job.id} max={40} /></a>
          <StateBadge state={job.state} />
          <Moment at={job.due_ms} show="absolute" />
          {job.reason && <span class="muted"><Text value={job.reason} max={60} /></span>}
        </li>
      ))}
    </ul>
  );
}
