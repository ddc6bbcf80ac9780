// The jobs to come by the time they are due, and what can be done with those of a chosen range.
import {useState} from "preact/hooks";
import {jobs as jobCalls, topics as calls} from "../api/calls";
import type {Action, Load} from "../api/types";
import {coloursOf, kOthers} from "../chart/colours";
import {type Range, type Series, StackChart} from "../chart/stack";
import {count, plural} from "../lib/format";
import {readOn} from "../lib/pages";
import {href} from "../lib/route";
import {type Selector, toQuery} from "../lib/selector";
import {visible} from "../lib/text";
import {absolute, clock, kDay, kHour, kMinute, span} from "../lib/time";
import {live} from "../live/live";
import {useResource} from "../live/resource";
import {useRights} from "../live/session";
import {Button, Empty, Loaded, Panel} from "../ui/basics";
import {Segments} from "../ui/fields";
import {OperateDialog, type Plan} from "../ui/operate";
import type {Mode} from "../ui/operate_form";
import {JobSamples} from "../ui/samples";
import {Text} from "../ui/text";

const kSpans: [string, string, number, number][] = [
  ["1h", "1 hour", kHour, kMinute], ["6h", "6 hours", 6 * kHour, kMinute], ["24h", "24 hours", kDay, kMinute],
  ["7d", "7 days", 7 * kDay, 10 * kMinute],
];

const kStepsMax = 10_000;  // of an answer of the API

/** The smallest step that the API takes for this time. */
export function stepFor({from, to}: Range): number {
  return Math.ceil((to - from) / kMinute / kStepsMax) * kMinute;
}

/** Of one topic, or of all, stacked by topic. */
export function FutureLoad({topic}: {topic?: string}) {
  const [shown, setShown] = useState("24h");
  const [range, setRange] = useState<Range | null>(null);
  const [zoom, setZoom] = useState<Range | null>(null);
  const [plan, setPlan] = useState<Plan | null>(null);  // kept here: the range may be empty before its action is over
  const [, , length, step] = kSpans.find(([name]) => name === shown)!;
  const load = useResource(`load ${topic ?? ""} ${shown} ${zoom?.from} ${zoom?.to}`, (signal) => {
    if (zoom) return calls.load(topic, {...zoom, step: stepFor(zoom)}, signal);
    const from = Math.floor(live.now() / step) * step;
    return calls.load(topic, {from, to: from + length, step}, signal);
  }, {every: 3000, always: true});
  const show = (next: string, closer: Range | null) => {
    setShown(next);
    setZoom(closer);
    setRange(null);
  };

  return (
    <Panel title={topic === undefined ? "Jobs to come" : "Jobs to come, by due time"} flush
           note={load.data && <>{plural(load.data.total, "job")} · {count(load.data.due)} due already</>}
           actions={<>
             {zoom && <Button onClick={() => show(shown, null)}>Whole time</Button>}
             <Segments label="How far" value={zoom ? "" : shown} onChange={(next) => show(next, null)} options={kSpans.map(([name, text]) => [name, text])} />
           </>}>
      <div class="panel-body">
        <Loaded resource={load}>
          {(data) => <Shown load={data} topic={topic} range={range} onRange={setRange} onZoom={(closer) => show(shown, closer)} onPlan={setPlan} />}
        </Loaded>
      </div>
      {plan && <OperateDialog plan={plan} onClose={() => setPlan(null)} />}
    </Panel>
  );
}

function seriesOf(load: Load, topic: string | undefined): Series[] {
  if (topic !== undefined || !load.topics) return [{name: topic ?? "all", colour: "c1", values: load.jobs}];
  const colours = coloursOf(load.topics.map((each) => each.topic));
  const series = load.topics.map((each, i) => ({name: each.topic, colour: colours[i]!, values: each.jobs}));
  const others = load.jobs.map((all, i) => load.topics!.reduce((rest, each) => rest - (each.jobs[i] ?? 0), all));
  if (others.some((jobs) => jobs > 0)) series.push({name: "other topics", colour: kOthers, values: others});
  return series;
}

interface ShownProps {
  load: Load;
  topic: string | undefined;
  range: Range | null;
  onRange: (range: Range | null) => void;
  onZoom: (range: Range) => void;
  onPlan: (plan: Plan) => void;
}

function Shown({load, topic, range, onRange, onZoom, onPlan}: ShownProps) {
  const series = seriesOf(load, topic);
  if (load.total === 0) {
    return <Empty title="No job is due in this time.">{topic === undefined && <p class="muted">Jobs that are submitted with a delay show up here, minute by minute.</p>}</Empty>;
  }
  return (
    <>
      <StackChart from={load.from_ms} step={load.step_ms} series={series} range={range} onRange={onRange} label="Jobs by due time" />
      {topic === undefined && (
        <ul class="legend">
          {series.map(({name, colour, values}) => (
            <li key={name}>
              <i class={`dot ${colour}`} />
              {colour === kOthers ? <span>{name}</span> : <a href={href(["topics", name])}><Text value={name} /></a>}
              <span class="muted">{count(values.reduce((sum, jobs) => sum + jobs, 0))}</span>
            </li>
          ))}
        </ul>
      )}
      {range ? <RangePanel load={load} series={series} range={range} onClose={() => onRange(null)} onPlan={onPlan}
                           {...(range.to - range.from > kMinute && range.to - range.from < load.to_ms - load.from_ms ? {onZoom: () => onZoom(range)} : {})} />
        : <p class="hint">Click a bar, or drag over a range, to see those jobs and to spread, shift or cancel them.</p>}
    </>
  );
}

interface RangeProps {
  load: Load;
  series: Series[];
  range: Range;
  onClose: () => void;
  onPlan: (plan: Plan) => void;
  onZoom?: () => void;
}

function RangePanel({load, series, range, onClose, onPlan, onZoom}: RangeProps) {
  const rights = useRights();
  const first = Math.max(0, Math.floor((range.from - load.from_ms) / load.step_ms));
  const last = Math.ceil((range.to - load.from_ms) / load.step_ms);
  const rows = series.map(({name, colour, values}) => ({name, colour, jobs: values.slice(first, last).reduce((sum, jobs) => sum + jobs, 0)}));
  const total = rows.reduce((sum, {jobs}) => sum + jobs, 0);
  const where: Selector = {state: ["scheduled"], due_from_ms: range.from, due_to_ms: range.to};
  const act = (topic: string, action: Action, mode?: Mode) =>
    onPlan({topic, action, wheres: [where], at: range.from, ...(mode ? {mode} : {})});
  return (
    <section class="range" aria-label="Chosen range">
      <header class="range-head" aria-live="polite">
        <strong>{plural(total, "job")}</strong> due {absolute(range.from).slice(0, -3)} – {clock(range.to, false)}
        <span class="muted">({span(range.to - range.from)})</span>
        <span class="range-tools">
          {onZoom && <Button onClick={onZoom}>Zoom in</Button>}
          <Button icon="close" label="Clear the range" kind="quiet" onClick={onClose} />
        </span>
      </header>
      <table class="plain cards">
        <tbody>
          {rows.filter(({jobs}) => jobs > 0).map(({name, colour, jobs}) => (
            <tr key={name} data-topic={name}>
              <th scope="row"><i class={`dot ${colour}`} /> <Text value={name} /></th>
              <td class="number">{count(jobs)}</td>
              <td class="row-actions">
                {colour !== kOthers && <>
                  <a class="button" href={href(["jobs"], {topic: name, ...toQuery(where), sort: "due"})}>See jobs</a>
                  {rights.admin && <>
                    <Button onClick={() => act(name, "reschedule", "spread")}>Spread…</Button>
                    <Button onClick={() => act(name, "reschedule", "shift")}>Shift…</Button>
                    <Button kind="danger" onClick={() => act(name, "cancel")}>Cancel…</Button>
                  </>}
                </>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {range.to - range.from <= kMinute && <JobsOfMinute topics={rows.filter(({jobs, colour}) => jobs > 0 && colour !== kOthers).map(({name}) => name)} where={where} />}
    </section>
  );
}

const kTopicsShown = 3;
const kJobsShown = 5;

/** Some jobs of one minute, of the topics that have most. Read when the minute is chosen, and not again. */
function JobsOfMinute({topics, where}: {topics: string[]; where: Selector}) {
  const shown = topics.slice(0, kTopicsShown);
  const found = useResource(`minute ${where.due_from_ms} ${shown.join("\n")}`, (signal) => Promise.all(shown.map(async (topic) =>
    ({topic, jobs: (await readOn((cursor) => jobCalls.list(topic, where, {limit: kJobsShown, cursor}, signal))).items}))), {every: Infinity});
  return (
    <div class="minute">
      <Loaded resource={found}>
        {(data) => data.filter(({jobs}) => jobs.length > 0).map(({topic, jobs}) => (
          <section key={topic} aria-label={visible(`Some jobs of ${topic}`)}>
            {shown.length > 1 && <h3><Text value={topic} /></h3>}
            <JobSamples topic={topic} jobs={jobs} />
          </section>
        ))}
      </Loaded>
    </div>
  );
}
