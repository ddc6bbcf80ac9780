// An operation: how far it is, and what became of the jobs.
import {operations as calls} from "../api/calls";
import {messageOf} from "../api/client";
import type {Operation} from "../api/types";
import {visible} from "../lib/text";
import {count, percent, plural, rate} from "../lib/format";
import {span} from "../lib/time";
import {useNow} from "../live/clock";
import {isRunning, type Watched} from "../live/operations";
import {useRights} from "../live/session";
import {Badge, Bar, Button, Note} from "./basics";
import {Text} from "./text";
import {toast} from "./toast";

const kGood = new Set(["cancelled", "rescheduled", "redriven", "purged", "fired", "changed"]);

const kMeanings: Record<string, string> = {
  in_flight: "a consumer has the job",
  finished: "dead, done or cancelled already",
  unknown: "no longer stored",
  unavailable: "the store did not answer for these",
  not_timed: "waits for events alone",
  out_of_range: "cannot be moved so far",
  changed_meanwhile: "changed since it was found, and left alone",
  over_capacity: "no room",
};

export function doneOf(operation: Operation): number {
  return Object.values(operation.outcomes).reduce((sum, each) => sum + each, 0);
}

/** The jobs that are not as they were. */
export function changedBy(operation: Operation): number {
  return Object.entries(operation.outcomes).reduce((sum, [outcome, jobs]) => sum + (kGood.has(outcome) ? jobs : 0), 0);
}

export function Outcomes({operation}: {operation: Operation}) {
  const rows = Object.entries(operation.outcomes).filter(([, jobs]) => jobs > 0);
  if (rows.length === 0) return <p class="muted">No job was changed.</p>;
  return (
    <table class="outcomes" aria-label="Outcomes">
      <tbody>
        {rows.map(([outcome, jobs]) => (
          <tr key={outcome} data-outcome={outcome}>
            <th scope="row"><Badge tone={kGood.has(outcome) ? "good" : "warn"}>{outcome.replace(/_/g, " ")}</Badge></th>
            <td class="number">{count(jobs)}</td>
            <td class="muted">{kMeanings[outcome] ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Progress({operation}: {operation: Operation}) {
  const now = useNow();
  const share = operation.of > 0 ? operation.looked / operation.of : 1;
  const seconds = Math.max(0.5, ((operation.ended_ms ?? now) - operation.started_ms) / 1000);
  const left = share > 0.01 && share < 1 ? (seconds / share) * (1 - share) * 1000 : null;
  return (
    <div class="progress">
      <div role="progressbar" aria-label={visible(`${operation.action} in ${operation.topic}`)} aria-valuemin={0} aria-valuemax={100}
           aria-valuenow={Math.floor(share * 100)}>
        <Bar share={share} tone={operation.state === "failed" ? "bad" : "good"} />
      </div>
      <p class="progress-text" aria-live="polite">
        {percent(operation.looked, operation.of)} looked at · {plural(doneOf(operation), "job")} so far
        {operation.state === "running" && <> · {rate(doneOf(operation) / seconds)}/s{left !== null && <> · about {span(left)} left</>}</>}
      </p>
    </div>
  );
}

const kTones = {running: "info", done: "good", stopped: "warn", failed: "bad"} as const;

export function OperationView({watched}: {watched: Watched}) {
  const {operation, lost} = watched;
  const rights = useRights();
  const stop = async () => {
    try {
      await calls.stop(operation.topic, watched.id);
      toast("The operation stops; what it has changed stays changed.", "plain");
    } catch (error) {
      toast(messageOf(error), "bad");
    }
  };
  const running = isRunning(watched);
  return (
    <div class="operation" data-state={lost ? "lost" : operation.state}>
      <p class="operation-title">
        <Badge tone={lost ? "warn" : kTones[operation.state]}>{lost ? "unknown" : operation.state}</Badge>
        <span>{operation.action} in <Text value={operation.topic} />{watched.rate ? ` at ${count(watched.rate)}/s` : ""}</span>
      </p>
      {lost && <Note tone="warn">{lost}</Note>}
      {operation.error && <Note tone="bad"><Text value={operation.error} /></Note>}
      {running ? <Progress operation={operation} /> : null}
      {(!running || doneOf(operation) > 0) && <Outcomes operation={operation} />}
      {running && rights.admin && <Button onClick={() => void stop()}>Stop</Button>}
    </div>
  );
}
