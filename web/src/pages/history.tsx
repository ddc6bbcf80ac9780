// The last hour: what came in and went out, and how late it was.
import {topics as calls} from "../api/calls";
import type {History} from "../api/types";
import {Legend, LineChart} from "../chart/lines";
import {compact, rate} from "../lib/format";
import {span} from "../lib/time";
import {useResource} from "../live/resource";
import {Empty, Loaded, Panel} from "../ui/basics";

const kFlow = [["accepted", "in", "c1"], ["acked", "done", "c3"], ["nacked", "failed", "c4"]] as const;
const kLateness = [["lateness_p99_ms", "p99", "c5"], ["lateness_p50_ms", "p50", "c2"]] as const;
const kStored = [["ready", "due", "c2"], ["leased", "leased", "c3"], ["dead", "dead", "c4"]] as const;

type Rows = readonly (readonly [string, string, string])[];

function Chart({history, rows, format, label}: {history: History; rows: Rows; format: (value: number) => string; label: string}) {
  const lines = rows.map(([name, text, colour], i) => ({name: text, colour, values: history.series[name] ?? [], fill: i === 0}));
  return (
    <>
      <LineChart at={history.at_ms} lines={lines} format={format} label={label} />
      <Legend items={lines} />
    </>
  );
}

export function HistoryPanels({topic}: {topic?: string}) {
  const history = useResource(`history ${topic ?? ""}`, (signal) => calls.history(topic, signal), {every: 10_000, always: true});
  const panel = (title: string, note: string, rows: Rows, format: (value: number) => string) => (
    <Panel title={title} note={note}>
      <Loaded resource={history}>
        {(data) => (data.at_ms.length > 1 ? <Chart history={data} rows={rows} format={format} label={title} />
          : <Empty title="Nothing is recorded yet."><p class="muted">A point is added every {span(data.step_ms)}.</p></Empty>)}
      </Loaded>
    </Panel>
  );
  return (
    <div class="columns three">
      {panel("Jobs a second", "last hour", kFlow, rate)}
      {panel("Lateness", "due to delivered, last hour", kLateness, span)}
      {panel("Waiting", "last hour", kStored, compact)}
    </div>
  );
}
