// Everything at a glance: what is wrong, how much there is, how late it is, and what is to come.
import {topics as topicCalls} from "../api/calls";
import type {Figures, FiguresEvent, History, Topic} from "../api/types";
import {compact, count, oldestText, rate} from "../lib/format";
import {href} from "../lib/route";
import {span} from "../lib/time";
import {figuresStore, modeStore} from "../live/live";
import {useResource} from "../live/resource";
import {useRights} from "../live/session";
import {useStore} from "../live/store";
import {Badge, Heading, Loaded, Panel} from "../ui/basics";
import {Stat, Stats} from "../ui/stats";
import {FirstJob} from "./first_job";
import {FutureLoad} from "./future_load";
import {HistoryPanels} from "./history";
import {Problems} from "./problems";
import {Text} from "../ui/text";

export function OverviewPage() {
  const rights = useRights();
  const figures = useStore(figuresStore);
  const busiest = useResource("busiest", (signal) => topicCalls.list({limit: 8, sort: "ready", order: "desc"}, signal), {every: 3000});
  const none = busiest.data?.total === 0;
  return (
    <>
      <Heading title="Overview" />
      {none && <FirstJob />}
      <Problems />
      {rights.node && figures && <NodeFigures figures={figures} />}
      <FutureLoad />
      {rights.node && <HistoryPanels />}
      {rights.node && figures && <Conservation figures={figures} />}
      {!none && (
        <Panel title="Most due jobs" flush actions={<a class="button" href={href(["topics"])}>All topics</a>}>
          <Loaded resource={busiest}>{(data) => <Busiest topics={data.topics} />}</Loaded>
        </Panel>
      )}
    </>
  );
}

/** The median of p50, and the worst p99, of the steps of the last hour; null if nothing was delivered. */
function latenessOf({series}: History): {p50: number; p99: number} | null {
  const known = (name: string) => (series[name] ?? []).filter((value) => value !== null).sort((a, b) => a - b);
  const [p50, p99] = [known("lateness_p50_ms"), known("lateness_p99_ms")];
  return p50.length === 0 ? null : {p50: p50[Math.floor(p50.length / 2)]!, p99: p99[p99.length - 1] ?? 0};
}

function NodeFigures({figures}: {figures: FiguresEvent}) {
  const {totals, rates, oldest_age_ms: oldest} = figures;
  const future = Number(totals.scheduled) - Number(totals.ready);
  const history = useResource("history ", (signal) => topicCalls.history(undefined, signal), {every: 10_000, always: true});
  const hour = history.data && latenessOf(history.data);
  const late = figures.lateness_ms;
  const polls = useStore(modeStore) === "polling";
  return (
    <Stats label="Figures">
      <Stat label="Due" title={count(totals.ready)} tone={oldest !== null && oldest > 60_000 ? "warn" : undefined}
            note={oldestText(totals.ready, oldest)} link={href(["topics"], {sort: "ready", order: "desc"})}>{compact(totals.ready)}</Stat>
      <Stat label="Future" title={count(future)} note="not due yet">{compact(future)}</Stat>
      <Stat label="Leased" title={count(totals.leased)} note="with consumers" link={href(["leases"])}>{compact(totals.leased)}</Stat>
      <Stat label="Dead" title={count(totals.dead)} tone={Number(totals.dead) > 0 ? "bad" : undefined} link={href(["dead"])}
            note={rates.died > 0 ? `+${rate(rates.died)}/s` : "dead letters"}>{compact(totals.dead)}</Stat>
      <Stat label="In" note="jobs a second">{rate(rates.accepted)}</Stat>
      <Stat label="Out" note="done a second">{rate(rates.acked)}</Stat>
      <Stat label="Late now" title="p50 of this second" note={late === null ? (polls ? "not known while polling" : "not known yet") : late.count > 0 ? `p99 ${span(late.p99)}` : "none delivered"}>
        {late !== null && late.count > 0 ? span(late.p50) : "–"}</Stat>
      <Stat label="Late, last hour" title="The median of the p50 of each step, and the highest p99" note={hour ? `p99 ${span(hour.p99)}` : "none delivered"}>
        {hour ? span(hour.p50) : "–"}</Stat>
    </Stats>
  );
}

const kIn: [keyof Figures, string][] = [["recovered", "recovered"], ["accepted", "accepted"]];
const kOut: [keyof Figures, string][] = [["scheduled", "scheduled"], ["leased", "leased"], ["dead", "dead"], ["acked", "acked"],
                                         ["cancelled", "cancelled"], ["purged", "purged"]];

function Conservation({figures}: {figures: FiguresEvent}) {
  const {difference} = figures.conservation;
  const terms = (rows: [keyof Figures, string][]) => rows.map(([name, text], i) => (
    <>{i > 0 && <span class="operator">+</span>}
      <span class="term" key={name}><span class="term-value">{count(figures.totals[name])}</span><span class="term-name">{text}</span></span></>
  ));
  return (
    <Panel title="Conservation" note="since the start: every job that came in is accounted for"
           actions={difference === 0 ? <Badge tone="good">balanced</Badge> : <Badge tone="warn">{count(difference)} moving</Badge>}>
      <div class="equation">{terms(kIn)}<span class="operator equals">=</span>{terms(kOut)}</div>
    </Panel>
  );
}

function Busiest({topics}: {topics: Topic[]}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Most due jobs">
      <table class="cards">
        <thead><tr><th>Topic</th><th class="number">Due</th><th class="number">Oldest</th><th class="number">Scheduled</th><th class="number">Leased</th><th class="number">Dead</th></tr></thead>
        <tbody>
          {topics.map(({topic, figures, paused, oldest_age_ms: oldest}) => (
            <tr key={topic}>
              <th scope="row"><a href={href(["topics", topic])}><Text value={topic} /></a> {paused && <Badge tone="warn">paused</Badge>}</th>
              <td class="number" data-label="Due">{count(figures.ready)}</td>
              <td class="number" data-label="Oldest">{oldest === null ? "–" : span(oldest)}</td>
              <td class="number" data-label="Scheduled">{count(figures.scheduled)}</td>
              <td class="number" data-label="Leased">{count(figures.leased)}</td>
              <td class="number" data-label="Dead">{count(figures.dead)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
