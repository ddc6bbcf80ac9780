// One job: every field, its life, its payload, and what can be done with it.
import {useState} from "preact/hooks";
import {jobs as calls, leases} from "../api/calls";
import {ApiError, messageOf, path} from "../api/client";
import type {Job} from "../api/types";
import {href} from "../lib/route";
import {live} from "../live/live";
import {useReloadAfter, useResource} from "../live/resource";
import {useRights} from "../live/session";
import {Button, Copy, Empty, Heading, Loaded, Panel, StateBadge} from "../ui/basics";
import {Confirm} from "../ui/confirm";
import {Text} from "../ui/text";
import {Moment} from "../ui/time";
import {toast} from "../ui/toast";
import {useCurl} from "./first_job";
import {PayloadDialog, RescheduleDialog} from "./job_dialogs";
import {Timeline} from "./job_timeline";
import {PayloadPanel} from "./payload";

export function JobPage({topic, id, jobKey}: {topic: string; id: string; jobKey: string | undefined}) {
  const job = useResource(`job ${topic} ${id} ${jobKey ?? ""}`, (signal) => calls.show(topic, id, jobKey, signal), {every: 1000, always: true});
  useReloadAfter(job, job.data?.lease_deadline_ms === undefined ? [] : [job.data.lease_deadline_ms]);
  const gone = job.error instanceof ApiError && job.error.status === 404;
  return (
    <>
      <Heading kind="Job" title={<Text value={id} />} note={<>in <a href={href(["topics", topic])}><Text value={topic} /></a></>}>
        {job.data && !gone && <Actions topic={topic} job={job.data} reload={job.reload} />}
      </Heading>
      {gone ? (
        <Empty title="No such job is stored.">
          <p class="muted">It never was, or it is done or cancelled and forgotten. The topic's retention_ms says how long such jobs can be looked up.</p>
        </Empty>
      ) : (
        <>
          <Loaded resource={job}>{(data) => <Shown topic={topic} job={data} reload={job.reload} />}</Loaded>
        </>
      )}
    </>
  );
}

function Shown({topic, job, reload}: {topic: string; job: Job; reload: () => void}) {
  const rights = useRights();
  const [change, setChange] = useState(false);
  const changeable = rights.submit && (job.state === "scheduled" || job.state === "dead");
  return (
    <div class="columns job">
      <div class="stack">
        <Panel title="Life"><Timeline job={job} /></Panel>
        <PayloadPanel job={job} onChange={changeable ? () => setChange(true) : undefined} />
      </div>
      <div class="stack">
        <Panel title="Fields"><Fields topic={topic} job={job} /></Panel>
        {job.headers && <Panel title="Headers" flush><Headers headers={job.headers} topic={topic} /></Panel>}
      </div>
      {change && <PayloadDialog topic={topic} job={job} onClose={() => setChange(false)} onDone={reload} />}
    </div>
  );
}

const kTimes: [keyof Job, string][] = [
  ["due_ms", "Due"], ["created_ms", "Created"], ["last_attempt_ms", "Last attempt"], ["leased_ms", "Leased"],
  ["lease_deadline_ms", "Lease ends"], ["died_ms", "Died"], ["finished_ms", "Finished"],
];

function Fields({topic, job}: {topic: string; job: Job}) {
  const command = useCurl();
  const call = command(path`/v1/topics/${topic}/jobs/${job.id}` + (job.key ? "?key=" + encodeURIComponent(job.key) : ""));
  return (
    <dl class="fields">
      <dt>State</dt><dd><StateBadge state={job.state} /></dd>
      <dt>Id</dt><dd class="mono"><Text value={job.id} /> <Copy text={job.id} label="Copy the id" /></dd>
      {job.key !== undefined && <><dt>Key</dt><dd class="mono"><a href={href(["jobs"], {topic, key: job.key})}><Text value={job.key} /></a></dd></>}
      <dt>Trigger</dt><dd>{job.trigger}</dd>
      {job.count_left !== undefined && <><dt>Events to come</dt><dd>{job.count_left}</dd></>}
      <dt>Attempts</dt><dd>{job.attempt} of {job.max_attempts}</dd>
      {kTimes.map(([name, label]) => job[name] !== undefined && (
        <><dt>{label}</dt><dd>{job[name] === null ? "waits for events" : <Moment at={job[name] as number} show="both" />}</dd></>
      ))}
      {job.holder !== undefined && <><dt>Holder</dt><dd><a href={href(["leases"], {holder: job.holder})}><Text value={job.holder} /></a></dd></>}
      {job.extensions !== undefined && <><dt>Extended</dt><dd>{job.extensions} times</dd></>}
      {job.reason !== undefined && <><dt>Reason</dt><dd><Text value={job.reason} /></dd></>}
      <dt>As a call</dt><dd><Copy text={call} label="Copy the call">curl</Copy></dd>
    </dl>
  );
}

function Headers({headers, topic}: {headers: Record<string, string>; topic: string}) {
  return (
    <table class="plain">
      <tbody>
        {Object.entries(headers).map(([name, value]) => (
          <tr key={name}>
            <th scope="row" class="mono"><Text value={name} /></th>
            <td class="mono"><a href={href(["jobs"], {topic, header: `${name}=${value}`})} title="Jobs with this header"><Text value={value} /></a></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const kUnchanged: Record<string, string> = {
  in_flight: "A consumer has the job", finished: "The job has another state by now", unknown: "The job is no longer stored",
  changed_meanwhile: "Somebody else holds it now",
};

interface JobAction {
  name: string;
  title: string;
  about: string;
  danger?: boolean;
  run: () => Promise<{outcome: string}>;
}

function Actions({topic, job, reload}: {topic: string; job: Job; reload: () => void}) {
  const rights = useRights();
  const [asked, setAsked] = useState<JobAction | null>(null);
  const [reschedule, setReschedule] = useState(false);
  const {id, key} = job;
  const actions: JobAction[] = [];
  if (rights.submit && job.state === "scheduled") {
    actions.push({name: "Fire", title: "Make 1 job due now", about: "It is delivered as soon as a consumer takes it.", run: () => calls.fire(topic, id, key)});
    actions.push({name: "Cancel", title: "Cancel 1 job", about: "It is never delivered. This cannot be undone.", danger: true, run: () => calls.cancel(topic, id, key)});
  }
  if (rights.admin && job.state === "dead") {
    actions.push({name: "Redrive", title: "Redrive 1 dead letter", about: "It is due now, with all its attempts.", run: () => calls.redrive(topic, id, key)});
    actions.push({name: "Purge", title: "Purge 1 dead letter", about: "It is removed for good. This cannot be undone.", danger: true, run: () => calls.remove(topic, id, key)});
  }
  if (rights.admin && job.state === "leased") {
    actions.push({name: "Revoke the lease", title: "Revoke 1 lease", about: "The job is due again at once, with an attempt used up. Its consumer is not told: its work may go on.",
                  danger: true, run: () => leases.revoke(topic, id, key, job.attempt)});
  }
  const perform = async (action: JobAction) => {
    try {
      const {outcome} = await action.run();
      const failed = kUnchanged[outcome];
      toast(failed ? `${failed}: nothing was changed.` : `The job was ${outcome}.`, failed ? "bad" : "good");
    } catch (error) {
      toast(messageOf(error), "bad");
      throw error;
    } finally {
      live.version += 1;
      reload();
    }
  };
  return (
    <>
      {rights.submit && job.state === "scheduled" && <Button onClick={() => setReschedule(true)}>Reschedule…</Button>}
      {actions.map((action) => (
        <Button key={action.name} {...(action.danger ? {kind: "danger" as const} : {})} onClick={() => setAsked(action)}>{action.name}…</Button>
      ))}
      {reschedule && <RescheduleDialog topic={topic} job={job} onClose={() => setReschedule(false)} onDone={reload} />}
      {asked && (
        <Confirm title={asked.title} action={asked.title} danger={asked.danger ?? false} onConfirm={() => perform(asked)} onClose={() => setAsked(null)}>
          <p class="mono"><Text value={id} /></p>
          <p>{asked.about}</p>
        </Confirm>
      )}
    </>
  );
}
