// A virtual clock: watch next week happen. Only on a test server.
import {useEffect, useState} from "preact/hooks";
import {jobs as jobCalls, node as calls, topics as topicCalls} from "../api/calls";
import {count, plural} from "../lib/format";
import {absolute, kDay, kHour, kMinute, parseSpan, span, utc} from "../lib/time";
import {useNow} from "../live/clock";
import {figuresStore, live} from "../live/live";
import {useRights} from "../live/session";
import {useStore} from "../live/store";
import {Button, Empty, Failure, Heading, Panel} from "../ui/basics";
import {Field, Input} from "../ui/fields";
import {Stat, Stats} from "../ui/stats";
import {FutureLoad} from "./future_load";

const kSteps: [string, number][] = [["1 second", 1000], ["1 minute", kMinute], ["10 minutes", 10 * kMinute], ["1 hour", kHour], ["1 day", kDay], ["1 week", 7 * kDay]];
const kTopicsPage = 1000;
const kYears = 10 * 365 * kDay;
const kWeek = 7 * kDay;
const kSliderSteps = 7 * 24 * 6;  // ten minutes each

/** The first due time after now: the first step that has jobs, finer each time, and then the job itself. */
async function nextDue(now: number): Promise<number | null> {
  let [from, to] = [now, now + kYears];
  for (;;) {
    const step = Math.max(kMinute, Math.ceil((to - from) / 1000 / kMinute) * kMinute);
    const load = await topicCalls.load(undefined, {from, to, step});
    const first = load.jobs.findIndex((jobs) => jobs > 0);
    if (first < 0) return null;
    [from, to] = [load.from_ms + first * load.step_ms, load.from_ms + (first + 1) * load.step_ms];
    if (load.step_ms === kMinute) break;
  }
  const firsts: number[] = [];
  for (const topic of await topicsDue(from, to)) {
    const page = await jobCalls.list(topic, {state: ["scheduled"], due_from_ms: Math.max(from, now + 1), due_to_ms: to}, {sort: "due", limit: 1});
    firsts.push(page.items[0]?.due_ms ?? Infinity);
  }
  const due = Math.min(...firsts);
  return Number.isFinite(due) ? due : null;
}

/** All topics with jobs in that minute. The answer for all topics lists only the ten that have most. */
async function topicsDue(from: number, to: number): Promise<string[]> {
  const {total, topics = []} = await topicCalls.load(undefined, {from, to, step: kMinute});
  if (topics.reduce((sum, each) => sum + each.total, 0) === total) return topics.filter((each) => each.total > 0).map(({topic}) => topic);
  const found: string[] = [];
  for (let offset = 0, all = 1; offset < all; offset += kTopicsPage) {
    const page = await topicCalls.list({sort: "scheduled", order: "desc", limit: kTopicsPage, offset});
    all = page.total;
    found.push(...page.topics.filter(({figures}) => Number(figures.scheduled) > 0).map(({topic}) => topic));
  }
  return found;
}

export function ClockPage() {
  const rights = useRights();
  const now = useNow();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [custom, setCustom] = useState("90m");
  const [ahead, setAhead] = useState(0);  // of the slider, in its steps
  const [playing, setPlaying] = useState(false);

  const move = async (to: () => Promise<{ms: number} | {to_ms: number}>) => {
    setBusy(true);
    setError(null);
    try {
      const {now_ms} = await calls.advance(await to());
      live.noteTime(now_ms);
      live.version += 1;
    } catch (failure) {
      setError(failure);
      setPlaying(false);
    }
    setBusy(false);
  };
  const jump = () => move(async () => {
    const due = await nextDue(live.now());
    if (due === null) throw new Error("No job is due in the next ten years.");
    return {to_ms: due};
  });
  const byText = () => move(() => {
    const ms = parseSpan(custom);
    if (ms === null || ms < 0) throw new Error("Write a time such as 90m or 3d.");
    return Promise.resolve({ms});
  });
  const aheadMs = (ahead * kWeek) / kSliderSteps;
  const later = ahead === 0 ? "now" : `${span(aheadMs)} later`;
  const slide = () => {
    setAhead(0);
    void move(() => Promise.resolve({ms: aheadMs}));
  };
  useEffect(() => {
    if (!playing || busy) return;
    const timer = setTimeout(() => void move(() => Promise.resolve({ms: kHour})), 1000);
    return () => clearTimeout(timer);
  }, [playing, busy]);

  if (!rights.clock) return <><Heading title="Clock" /><Empty title="This server follows the real clock."><p class="muted">A test server started with --clock virtual has one that you move.</p></Empty></>;
  return (
    <>
      <Heading title="Clock" note="virtual: it moves only when somebody moves it" />
      <Panel label="Now">
        <p class="clock-now" aria-live="polite"><strong id="clock-now">{absolute(now)}</strong> <span class="muted">{utc(now)}</span></p>
        <div class="clock-steps">
          {kSteps.map(([label, ms]) => <Button key={label} disabled={busy} onClick={() => void move(() => Promise.resolve({ms}))}>+ {label}</Button>)}
          <Button kind="primary" icon="clock" disabled={busy} onClick={() => void jump()}>Jump to the next due job</Button>
          <Button icon={playing ? "pause" : "play"} pressed={playing} onClick={() => setPlaying(!playing)}>{playing ? "Stop" : "Play: an hour each second"}</Button>
        </div>
        <form class="form-row" onSubmit={(event) => { event.preventDefault(); void byText(); }}>
          <Input label="By" name="by" value={custom} onInput={setCustom} help="90m, 3d" mono />
          <Button type="submit" disabled={busy}>Advance</Button>
        </form>
        <form class="form-row clock-slider" onSubmit={(event) => { event.preventDefault(); slide(); }}>
          <Field label="The week ahead" help="Steps of ten minutes.">
            {(id, about) => (
              <input id={id} type="range" min={0} max={kSliderSteps} value={ahead} aria-describedby={about} aria-valuetext={later} disabled={busy}
                     onInput={(event) => setAhead(Number(event.currentTarget.value))} />
            )}
          </Field>
          <Button type="submit" disabled={busy || ahead === 0}>{ahead === 0 ? "Move there" : `Move to ${later}`}</Button>
        </form>
        <Failure error={error} />
      </Panel>
      <ClockFigures />
      <FutureLoad />
    </>
  );
}

function ClockFigures() {
  const figures = useStore(figuresStore);
  if (!figures) return null;
  const {totals} = figures;
  return (
    <Stats label="Figures">
      <Stat label="Due">{count(totals.ready)}</Stat>
      <Stat label="Future">{count(Number(totals.scheduled) - Number(totals.ready))}</Stat>
      <Stat label="Leased">{count(totals.leased)}</Stat>
      <Stat label="Dead">{count(totals.dead)}</Stat>
      <Stat label="Acknowledged" note={plural(totals.delivered, "delivery", "deliveries")}>{count(totals.acked)}</Stat>
    </Stats>
  );
}
