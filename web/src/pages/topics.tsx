// All topics: sorted, filtered and paged by the server.
import {useState} from "preact/hooks";
import {topics as calls} from "../api/calls";
import {ApiError, messageOf} from "../api/client";
import type {Topic} from "../api/types";
import {visible} from "../lib/text";
import {count, plural} from "../lib/format";
import {go, href, replaceQuery} from "../lib/route";
import {kMinute, span} from "../lib/time";
import {live} from "../live/live";
import {useResource} from "../live/resource";
import {useRights} from "../live/session";
import {Badge, Button, Empty, Heading, Loaded, Panel} from "../ui/basics";
import {Dialog} from "../ui/dialog";
import {Input} from "../ui/fields";
import {Icon} from "../ui/icons";
import {SettingsForm} from "../ui/settings_form";
import {Text} from "../ui/text";
import {toast} from "../ui/toast";
import {FirstJob} from "./first_job";

const kPage = 50;
const kColumns: [string, string][] = [["ready", "Due"], ["lateness", "Oldest due"], ["scheduled", "Scheduled"], ["leased", "Leased"],
                                      ["dead", "Dead"], ["accepted", "Accepted"], ["delivered", "Delivered"]];

export function TopicsPage({query}: {query: URLSearchParams}) {
  const rights = useRights();
  const [creating, setCreating] = useState(false);
  const sort = query.get("sort") ?? "name";
  const order = query.get("order") ?? "asc";
  const filter = query.get("filter") ?? "";
  const offset = Number(query.get("offset") ?? "0");
  const set = (change: Record<string, string>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(change)) value === "" ? next.delete(name) : next.set(name, value);
    replaceQuery(next);
  };
  const page = useResource(`topics ${sort} ${order} ${filter} ${offset}`,
                           (signal) => calls.list({sort, order, filter, offset, limit: kPage}, signal), {every: 2000});
  const total = page.data?.total ?? 0;
  return (
    <>
      <Heading title="Topics" note={page.data && plural(total, "topic")}>
        {rights.admin && <Button icon="plus" kind="primary" onClick={() => setCreating(true)}>Create a topic…</Button>}
      </Heading>
      {page.data?.total === 0 && filter === "" ? <FirstJob /> : (
        <Panel flush label="Topics">
          <div class="table-tools">
            <label class="search-field">
              <Icon name="search" />
              <input name="filter" type="search" placeholder="part of a name" aria-label="Filter by name" value={filter} autoComplete="off"
                     onInput={(event) => set({filter: event.currentTarget.value, offset: ""})} />
            </label>
            <Pager offset={offset} total={total} onChange={(next) => set({offset: next === 0 ? "" : String(next)})} />
          </div>
          <Loaded resource={page}>
            {(data) => (data.topics.length === 0 ? <Empty title="No topic has such a name." />
              : <Table topics={data.topics} sort={sort} order={order} reload={page.reload}
                       onSort={(next) => set({sort: next, order: next === sort ? (order === "asc" ? "desc" : "asc") : next === "name" ? "asc" : "desc", offset: ""})} />)}
          </Loaded>
        </Panel>
      )}
      {creating && <CreateDialog onClose={() => setCreating(false)} />}
    </>
  );
}

function Pager({offset, total, onChange}: {offset: number; total: number; onChange: (offset: number) => void}) {
  if (total <= kPage) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button disabled={offset === 0} onClick={() => onChange(Math.max(0, offset - kPage))}>Previous</Button>
      <span class="muted" aria-live="polite">{count(offset + 1)} – {count(Math.min(total, offset + kPage))} of {count(total)}</span>
      <Button disabled={offset + kPage >= total} onClick={() => onChange(offset + kPage)}>Next</Button>
    </nav>
  );
}

interface TableProps {
  topics: Topic[];
  sort: string;
  order: string;
  onSort: (sort: string) => void;
  reload: () => void;
}

function Table({topics, sort, order, onSort, reload}: TableProps) {
  const rights = useRights();
  const head = (name: string, text: string) => (
    <th key={name} class={name === "name" ? "" : "number"} aria-sort={sort !== name ? undefined : order === "asc" ? "ascending" : "descending"}>
      <button type="button" class="sort" onClick={() => onSort(name)}>{text}{sort === name && <Icon name={order === "asc" ? "up" : "down"} />}</button>
    </th>
  );
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Topics">
      <table class="topics cards">
        <thead><tr>{head("name", "Topic")}{kColumns.map(([name, text]) => head(name, text))}{rights.admin && <th><span class="sr">Actions</span></th>}</tr></thead>
        <tbody>
          {topics.map((each) => <Row key={each.topic} topic={each} reload={reload} />)}
        </tbody>
      </table>
    </div>
  );
}

export async function setPaused(topic: string, paused: boolean): Promise<void> {
  try {
    await (paused ? calls.pause(topic) : calls.resume(topic));
    toast(paused ? `${topic} is paused: its jobs become due and wait.` : `${topic} delivers again.`);
  } catch (error) {
    toast(messageOf(error), "bad");
  }
  live.version += 1;
}

function Row({topic: report, reload}: {topic: Topic; reload: () => void}) {
  const rights = useRights();
  const {topic, figures, paused, delivery, oldest_age_ms: oldest} = report;
  const value = (name: string) => {
    if (name === "lateness") return oldest === null ? "–" : span(oldest);
    return count(figures[name as keyof typeof figures]);
  };
  const tone = (name: string) => {
    if (name === "lateness" && oldest !== null && oldest > kMinute) return "text-warn";
    if (name !== "lateness" && Number(figures[name as keyof typeof figures]) === 0) return "zero";
    return name === "dead" && Number(figures.dead) > 0 ? "text-bad" : "";
  };
  return (
    <tr data-topic={topic}>
      <th scope="row">
        <a href={href(["topics", topic])}><Text value={topic} /></a>{" "}
        {paused && <Badge tone="warn">paused</Badge>} {delivery.sink !== "pull" && <Badge>{delivery.sink}</Badge>}
      </th>
      {kColumns.map(([name, text]) => <td key={name} class={`number ${tone(name)}`} data-label={text}>{value(name)}</td>)}
      {rights.admin && (
        <td class="row-actions">
          <Button icon={paused ? "play" : "pause"} label={visible(`${paused ? "Resume" : "Pause"} ${topic}`)} kind="quiet"
                  onClick={() => void setPaused(topic, !paused).then(reload)} />
        </td>
      )}
    </tr>
  );
}

async function exists(topic: string): Promise<boolean> {
  try {
    await calls.show(topic);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === "topic_not_found") return false;
    throw error;
  }
}

function CreateDialog({onClose}: {onClose: () => void}) {
  const [name, setName] = useState("");
  const save = async (settings: object) => {
    if (name === "") throw new Error("A topic needs a name.");
    if (await exists(name)) throw new Error("There is a topic of this name: change its settings on its own page.");
    await calls.put(name, settings);
    toast(`The topic ${name} exists.`);
    onClose();
    go(["topics", name]);
  };
  return (
    <Dialog title="Create a topic" onClose={onClose} wide>
      <div class="dialog-body">
        <SettingsForm topic={null} save={save} action="Create the topic" onCancel={onClose}>
          <Input label="Name" name="name" value={name} onInput={setName} autoFocus help="1 to 256 bytes without blanks, / and braces" mono />
        </SettingsForm>
      </div>
    </Dialog>
  );
}
