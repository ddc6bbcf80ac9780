// Jobs of a topic by any selector; actions on some of them, or on all that match.
import {useEffect, useState} from "preact/hooks";
import {jobs as calls, topics as topicCalls} from "../api/calls";
import type {Action, Job, Tally} from "../api/types";
import {count, plural} from "../lib/format";
import {readOn} from "../lib/pages";
import {href, replaceQuery} from "../lib/route";
import {type Selector, fromQuery, isEmpty, toQuery} from "../lib/selector";
import {useResource} from "../live/resource";
import {useRights} from "../live/session";
import {type TopicSize, useTopicSize} from "../live/topic_size";
import {Button, Command, Empty, Heading, Loaded, Panel} from "../ui/basics";
import {Select} from "../ui/fields";
import {OperateDialog, type Plan} from "../ui/operate";
import {CursorPager, LookOn, useCursors} from "../ui/pager";
import {Text} from "../ui/text";
import {toast} from "../ui/toast";
import {ExportDialog} from "./export";
import {useSubmitCommand} from "./first_job";
import {JobTable, type Selection} from "./job_table";
import {SelectorBar} from "./selector_bar";

const kPage = 50;

export function JobsPage({query}: {query: URLSearchParams}) {
  const topic = query.get("topic") ?? "";
  const selector = fromQuery(query);
  const sort = query.get("sort") ?? "none";
  const change = (nextTopic: string, next: Selector, nextSort = sort) =>
    replaceQuery({topic: nextTopic, ...toQuery(next), sort: nextSort === "none" ? undefined : nextSort});
  return (
    <>
      <Heading title="Jobs" note="of one topic, by anything that is known about them" />
      <SelectorBar topic={topic} selector={selector} onChange={(nextTopic, next) => change(nextTopic, next)} />
      {topic === "" ? <ChooseTopic onChoose={(name) => change(name, selector)} />
        : <Found key={topic + JSON.stringify(selector) + sort} topic={topic} selector={selector} sort={sort}
                 onSort={(next) => change(topic, selector, next)} />}
    </>
  );
}

function ChooseTopic({onChoose}: {onChoose: (topic: string) => void}) {
  const topics = useResource("choose", (signal) => topicCalls.list({limit: 12, sort: "scheduled", order: "desc"}, signal), {every: 3000});
  return (
    <Panel title="Choose a topic">
      <Loaded resource={topics}>
        {(data) => (data.topics.length === 0 ? <Empty title="There is no topic yet."><a href={href([])}>The overview shows how the first job gets in.</a></Empty> : (
          <div class="chips">
            {data.topics.map(({topic, figures}) => (
              <Button key={topic} onClick={() => onChoose(topic)}><Text value={topic} /> <span class="muted">{count(figures.scheduled)}</span></Button>
            ))}
          </div>
        ))}
      </Loaded>
    </Panel>
  );
}

interface FoundProps {
  topic: string;
  selector: Selector;
  sort: string;
  onSort: (sort: string) => void;
}

function Found({topic, selector, sort, onSort}: FoundProps) {
  const {cursors, cursor, setCursors, startOver} = useCursors();
  const [selected, setSelected] = useState<Selection>(new Map());
  const [round, setRound] = useState(0);  // of actions: each is followed by another count
  const size = useTopicSize(topic);
  const scans = sort !== "none" || !isEmpty(selector);  // it may look at all jobs of the topic
  const every = !scans ? 2000 : !size.small ? Infinity : sort !== "none" ? 10_000 : 5000;
  const page = useResource(`jobs ${topic} ${JSON.stringify(selector)} ${sort} ${cursor ?? ""}`, (signal) =>
    readOn((next) => calls.list(topic, selector, {sort, limit: kPage, cursor: next}, signal), cursor), {every});
  useEffect(() => startOver(page.error), [page.error]);
  const onDone = (acted: boolean) => {
    if (!acted) return;
    setSelected(new Map());
    setRound(round + 1);
    page.reload();
  };
  return (
    <Panel flush label="Jobs that match"
           title={<Matches topic={topic} selector={selector} round={round} size={size} />}
           actions={<>
             {every === Infinity && size.jobs !== undefined && <Button icon="reload" busy={page.loading} onClick={page.reload} title={`A topic of ${count(size.jobs)} jobs is looked through only when you ask`}>Reload</Button>}
             <Select label="Sort" name="sort" value={sort} onChange={onSort} options={[["none", "no order"], ["due", "due time"], ["created", "created"]]} />
           </>}>
      <ActionBar topic={topic} selector={selector} selected={selected} onDone={onDone} onClear={() => setSelected(new Map())} />
      <Loaded resource={page}>
        {(data) => (data.items.length === 0 && data.cursor ? <LookOn onClick={() => setCursors([...cursors, data.cursor!])} />
          : data.items.length === 0 && cursors.length === 0 ? <NoJobs topic={topic} selector={selector} />
          : <JobTable topic={topic} jobs={data.items} selected={selected} onSelect={setSelected} />)}
      </Loaded>
      <CursorPager cursors={cursors} next={page.data?.cursor} onChange={setCursors} />
    </Panel>
  );
}

interface MatchesProps {
  topic: string;
  selector: Selector;
  round: number;
  size: TopicSize;
}

/** How many match: once for each selector, not again and again. */
function Matches({topic, selector, round, size}: MatchesProps) {
  const [asked, setAsked] = useState(-1);  // the round in which the viewer asked
  const counts = size.small || asked === round;
  const tally = useResource<Tally>(counts ? `tally ${topic} ${JSON.stringify(selector)} ${round}` : null,
                                   (signal) => calls.tally(topic, selector, "nothing", signal), {every: size.small ? 30_000 : Infinity});
  if (tally.data) return <span class="matches" aria-live="polite">{plural(tally.data.total, "job matches", "jobs match")}</span>;
  if (!counts && size.jobs !== undefined) return <Button onClick={() => setAsked(round)}>Count among {count(size.jobs)}</Button>;
  return <span class="muted">{tally.loading ? "counting" : ""}</span>;
}

function NoJobs({topic, selector}: {topic: string; selector: Selector}) {
  const command = useSubmitCommand();
  if (!isEmpty(selector)) return <Empty title="No job matches."><p class="muted">Fewer filters find more. A job that is done is forgotten unless the topic has a retention_ms.</p></Empty>;
  return (
    <Empty title="The topic has no jobs.">
      <Command text={command(topic, 60_000)} />
    </Empty>
  );
}

const kActions: [Action, string, boolean][] = [
  ["reschedule", "Reschedule", false], ["fire", "Fire", false], ["redrive", "Redrive", false], ["attempts", "Attempts", false],
  ["cancel", "Cancel", true], ["purge", "Purge", true],
];

/** The selected jobs as selectors: ids of one key each, because an own id counts together with its key. */
function wheresOf(selected: Job[]): Selector[] {
  const byKey = new Map<string, string[]>();
  for (const {id, key} of selected) byKey.set(key ?? "", [...(byKey.get(key ?? "") ?? []), id]);
  return [...byKey].map(([key, ids]) => (key ? {ids, key} : {ids}));
}

interface BarProps {
  topic: string;
  selector: Selector;
  selected: Selection;
  onDone: (acted: boolean) => void;
  onClear: () => void;
}

function ActionBar({topic, selector, selected, onDone, onClear}: BarProps) {
  const rights = useRights();
  const [plan, setPlan] = useState<Plan | null>(null);
  const [exporting, setExporting] = useState(false);
  const some = selected.size > 0;
  const close = (acted: boolean) => {
    setPlan(null);
    onDone(acted);
  };
  const act = (action: Action) => {
    const wheres = some ? wheresOf([...selected.values()]) : [selector];
    const listed = some && wheres.flatMap(({ids}) => ids ?? []).find((id) => id.includes(","));
    if (listed) toast(`The API takes ids with commas between them, so it cannot name ${listed}. Act on that job on its own page.`, "bad");
    else setPlan({topic, action, wheres});
  };
  return (
    <div class="action-bar" role="toolbar" aria-label="Actions">
      <span class="action-which" aria-live="polite">
        {some ? <><strong>{count(selected.size)} selected</strong> <Button kind="quiet" onClick={onClear}>all that match instead</Button></>
          : <strong>All that match</strong>}
      </span>
      {rights.admin && kActions.map(([action, label, danger]) => (
        <Button key={action} {...(danger ? {kind: "danger" as const} : {})}
                onClick={() => act(action)}>{label}…</Button>
      ))}
      {rights.payloads && <Button icon="download" onClick={() => setExporting(true)}>Export…</Button>}
      {plan && <OperateDialog plan={plan} onClose={close} />}
      {exporting && <ExportDialog topic={topic} from={some ? {jobs: [...selected.values()]} : {where: selector}} onClose={() => setExporting(false)} />}
    </div>
  );
}
