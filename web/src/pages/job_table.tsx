// A page of jobs, with boxes to select some.
import {visible} from "../lib/text";
import type {Job} from "../api/types";
import {StateBadge} from "../ui/basics";
import {jobHref} from "../ui/samples";
import {Text} from "../ui/text";
import {Moment} from "../ui/time";

export type Selection = Map<string, Job>;

export function keyOf(job: Job): string {
  return JSON.stringify([job.id, job.key ?? null]);
}

interface Props {
  topic: string;
  jobs: Job[];
  selected: Selection;
  onSelect: (selected: Selection) => void;
}

export function JobTable({topic, jobs, selected, onSelect}: Props) {
  const allSelected = jobs.length > 0 && jobs.every((job) => selected.has(keyOf(job)));
  const toggle = (chosen: Job[], on: boolean) => {
    const next = new Map(selected);
    for (const job of chosen) on ? next.set(keyOf(job), job) : next.delete(keyOf(job));
    onSelect(next);
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Jobs">
      <table class="jobs cards">
        <thead>
          <tr>
            <th class="box"><input type="checkbox" aria-label="Select this page" checked={allSelected} onChange={(event) => toggle(jobs, event.currentTarget.checked)} /></th>
            <th>Id</th><th>State</th><th>Due</th><th>Created</th><th class="number">Attempts</th><th>Reason, holder</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={keyOf(job)} class={selected.has(keyOf(job)) ? "selected" : ""} data-id={job.id}>
              <td class="box"><input type="checkbox" aria-label={visible(`Select ${job.id}`)} checked={selected.has(keyOf(job))} onChange={(event) => toggle([job], event.currentTarget.checked)} /></td>
              <th scope="row" class="mono"><a href={jobHref(topic, job)}><Text value={job.id} max={60} /></a>{job.key !== undefined && <span class="muted"> <Text value={job.key} max={30} /></span>}</th>
              <td data-label="State"><StateBadge state={job.state} /></td>
              <td class="due" data-label="Due">{job.due_ms === null ? <span class="muted">{`${job.count_left ?? ""} events`}</span> : <Moment at={job.due_ms} show="both" />}</td>
              <td data-label="Created"><Moment at={job.created_ms} /></td>
              <td class="number" data-label="Attempts">{job.attempt}<span class="muted">/{job.max_attempts}</span></td>
              <td class="wide" data-label="Reason, holder"><Text value={job.holder ?? job.reason ?? ""} max={100} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
