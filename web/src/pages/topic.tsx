// One topic: its figures, how late it is, what is to come, its settings and the operations on it.
import {useEffect, useState} from "preact/hooks";
import {jobs as jobCalls, operations as operationCalls, topics as calls} from "../api/calls";
import {ApiError} from "../api/client";
import type {Topic} from "../api/types";
import {Histogram} from "../chart/histogram";
import {compact, count, oldestText, plural} from "../lib/format";
import {go, href, replaceQuery} from "../lib/route";
import {kMinute, span} from "../lib/time";
import {live} from "../live/live";
import {useResource} from "../live/resource";
import {useRights} from "../live/session";
import {Badge, Button, Command, Empty, Heading, Loaded, Panel} from "../ui/basics";
import {Confirm} from "../ui/confirm";
import {Segments} from "../ui/fields";
import {OperateDialog, type Plan} from "../ui/operate";
import {OperationView} from "../ui/operation_view";
import {SettingsForm} from "../ui/settings_form";
import {Stat, Stats} from "../ui/stats";
import {Text} from "../ui/text";
import {toast} from "../ui/toast";
import {useSubmitCommand} from "./first_job";
import {FutureLoad} from "./future_load";
import {HistoryPanels} from "./history";
import {SubmitDialog} from "./submit";
import {setPaused} from "./topics";

const kTabs: [string, string][] = [["now", "Now"], ["settings", "Settings"], ["operations", "Operations"]];

export function TopicPage({topic, query}: {topic: string; query: URLSearchParams}) {
  const report = useResource(`topic ${topic}`, (signal) => calls.show(topic, signal), {every: 1000});
  const tab = query.get("tab") ?? "now";
  useEffect(() => {
    live.focus([topic]);
    return () => live.focus([]);
  }, [topic]);
  if (report.error instanceof ApiError && report.error.status === 404) return <NoTopic topic={topic} />;
  return (
    <>
      <Heading kind="Topic" title={<Text value={topic} />} note={report.data && <Badges topic={report.data} />}>
        {report.data && <Actions topic={report.data} reload={report.reload} />}
      </Heading>
      <Segments label="Part" value={tab} options={kTabs} onChange={(next) => replaceQuery({tab: next === "now" ? undefined : next})} />
      <Loaded resource={report}>
        {(data) => (
          tab === "settings" ? <Settings topic={data} reload={report.reload} />
            : tab === "operations" ? <Operations topic={topic} />
            : <Now topic={data} />
        )}
      </Loaded>
    </>
  );
}

function NoTopic({topic}: {topic: string}) {
  const command = useSubmitCommand();
  return (
    <>
      <Heading kind="Topic" title={<Text value={topic} />} />
      <Empty title="There is no such topic.">
        <p class="muted">The first job that is submitted to it makes it.</p>
        <Command text={command(topic, 60_000)} />
      </Empty>
    </>
  );
}

function Badges({topic}: {topic: Topic}) {
  return (
    <>
      {topic.paused ? <Badge tone="warn">paused</Badge> : <Badge tone="good">delivering</Badge>}{" "}
      <Badge>{topic.delivery.sink === "pull" ? "pull" : `push: ${topic.delivery.sink}`}</Badge> {plural(topic.slots, "slot")}
    </>
  );
}

function Now({topic: {topic, figures, oldest_age_ms: oldest}}: {topic: Topic}) {
  const future = Number(figures.scheduled) - Number(figures.ready);
  const jobs = (state: string) => href(["jobs"], {topic, state});
  return (
    <>
      <Stats label="Figures">
        <Stat label="Due" title={count(figures.ready)} link={jobs("ready")} tone={oldest !== null && oldest > kMinute ? "warn" : undefined}
              note={oldestText(figures.ready, oldest)}>{compact(figures.ready)}</Stat>
        <Stat label="Future" title={count(future)} link={jobs("scheduled")}>{compact(future)}</Stat>
        <Stat label="Leased" title={count(figures.leased)} link={href(["leases"], {topic})}>{compact(figures.leased)}</Stat>
        <Stat label="Dead" title={count(figures.dead)} link={href(["dead"], {topic})} tone={Number(figures.dead) > 0 ? "bad" : undefined}>{compact(figures.dead)}</Stat>
        <Stat label="Accepted" title={count(figures.accepted)} note="since the start">{compact(figures.accepted)}</Stat>
        <Stat label="Acknowledged" title={count(figures.acked)} note={`${compact(figures.delivered)} deliveries`}>{compact(figures.acked)}</Stat>
        <Stat label="Failed" title={count(figures.nacked)} note={`${compact(figures.expired)} leases expired`}>{compact(figures.nacked)}</Stat>
      </Stats>
      <FutureLoad topic={topic} />
      <HistoryPanels topic={topic} />
      <Lateness topic={topic} />
    </>
  );
}

function Lateness({topic}: {topic: string}) {
  const lateness = useResource(`lateness ${topic}`, (signal) => calls.lateness(topic, signal), {every: 3000});
  return (
    <Panel title="Lateness since the start" note="from the due time to the delivery">
      <Loaded resource={lateness}>
        {(data) => (data.count === 0 ? <Empty title="Nothing was delivered yet." /> : (
          <>
            <p class="inline-figures">p50 <strong>{span(data.p50)}</strong> p99 <strong>{span(data.p99)}</strong> p99.9 <strong>{span(data.p999)}</strong> most <strong>{span(data.max)}</strong></p>
            <Histogram label="Lateness since the start" buckets={coarse(data.buckets)} />
          </>
        ))}
      </Loaded>
    </Panel>
  );
}

const kLeastPower = -2;  // a quarter of a millisecond: what is less is one bucket

/** Buckets up to a power of two each: enough to see the shape. */
function coarse(buckets: {le_ms: number; count: number}[]): {label: string; count: number}[] {
  const sums = new Map<number, number>();
  for (const {le_ms, count: jobs} of buckets) {
    const power = Math.max(kLeastPower, Math.ceil(Math.log2(Math.max(le_ms, 0.001)) - 1e-9));
    sums.set(power, (sums.get(power) ?? 0) + jobs);
  }
  const powers = [...sums.keys()];
  const all: {label: string; count: number}[] = [];
  for (let power = Math.min(...powers); power <= Math.max(...powers); ++power) {
    all.push({label: `up to ${span(2 ** power)}`, count: sums.get(power) ?? 0});
  }
  return all;
}

function Settings({topic, reload}: {topic: Topic; reload: () => void}) {
  const rights = useRights();
  const save = async (settings: object) => {
    await calls.put(topic.topic, settings);
    toast("The settings were changed.");
    reload();
  };
  if (!rights.admin) {
    return (
      <Panel title="Settings" note="your access token may not change them">
        <dl class="fields">
          {Object.entries(topic).filter(([, value]) => typeof value !== "object").map(([name, value]) => <><dt>{name}</dt><dd class="mono">{String(value)}</dd></>)}
          {Object.entries(topic.delivery).map(([name, value]) => <><dt>delivery.{name}</dt><dd class="mono">{String(value)}</dd></>)}
        </dl>
      </Panel>
    );
  }
  return <Panel title="Settings" note="a change holds at once"><SettingsForm key={JSON.stringify(topic.delivery.sink)} topic={topic} save={save} action="Save the changes" /></Panel>;
}

function Operations({topic}: {topic: string}) {
  const list = useResource(`operations ${topic}`, (signal) => operationCalls.list(topic, signal), {every: 1000, always: true});
  return (
    <Panel title="Operations" note="those that run, and the last hundred that are over">
      <Loaded resource={list}>
        {(data) => (data.operations.length === 0
          ? <Empty title="No operation ran since the start."><p class="muted">Actions on many jobs, from the page <a href={href(["jobs"], {topic})}>Jobs</a>, show up here.</p></Empty>
          : <div class="stack">{data.operations.map((operation) => <OperationView key={operation.id} watched={{id: operation.id!, operation}} />)}</div>)}
      </Loaded>
    </Panel>
  );
}

function Actions({topic: report, reload}: {topic: Topic; reload: () => void}) {
  const rights = useRights();
  const {topic, paused, figures} = report;
  const [plan, setPlan] = useState<Plan | null>(null);
  const [dropping, setDropping] = useState(false);
  const [submitting, setSubmitting] = useState(false);
  const stored = Number(figures.scheduled) + Number(figures.leased) + Number(figures.dead);
  const drop = async () => {
    await calls.drop(topic);
    toast(`${topic} is gone, with ${plural(stored, "job")}.`);
    go(["topics"]);
  };
  return (
    <>
      <a class="button" href={href(["jobs"], {topic})}>Jobs</a>
      {rights.submit && <Button icon="plus" onClick={() => setSubmitting(true)}>Submit…</Button>}
      {rights.admin && <>
        <Button icon={paused ? "play" : "pause"} onClick={() => void setPaused(topic, !paused).then(reload)}>{paused ? "Resume" : "Pause"}</Button>
        <Button kind="danger" onClick={() => setPlan({topic, action: "purge", wheres: [{}]})}>Purge…</Button>
        <Button kind="danger" onClick={() => setDropping(true)}>Drop…</Button>
      </>}
      {plan && <OperateDialog plan={plan} onClose={() => { setPlan(null); reload(); }} />}
      {submitting && <SubmitDialog topic={topic} submit={(job) => jobCalls.submit(topic, job)} onClose={() => { setSubmitting(false); reload(); }} />}
      {dropping && (
        <Confirm title={`Drop the topic ${topic}`} action={`Drop it with ${plural(stored, "job")}`} danger typed={topic} onConfirm={drop} onClose={() => setDropping(false)}>
          <p>The topic goes with its settings and all its jobs: {count(figures.scheduled)} scheduled, {count(figures.leased)} leased, {count(figures.dead)} dead. This cannot be undone.</p>
        </Confirm>
      )}
    </>
  );
}
