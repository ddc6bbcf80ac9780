// Dead letters, grouped by the reason why they died.
import type {ComponentChildren} from "preact";
import {useEffect, useState} from "preact/hooks";
import {jobs as calls, topics as topicCalls} from "../api/calls";
import type {Tally, Topic} from "../api/types";
import {utf8} from "../lib/bytes";
import {count, percent, plural} from "../lib/format";
import {href, replaceQuery} from "../lib/route";
import {type Selector, toQuery} from "../lib/selector";
import {useResource} from "../live/resource";
import {useRights} from "../live/session";
import {useTopicSize} from "../live/topic_size";
import {Bar, Button, Empty, Heading, Loaded, Panel} from "../ui/basics";
import {OperateDialog, type Plan} from "../ui/operate";
import {Text} from "../ui/text";
import {ExportDialog} from "./export";

const kTopics = 30;
const kRedriveRate = 500;  // jobs a second, unless the viewer says otherwise: a redrive must not be the next incident

export function DeadPage({query}: {query: URLSearchParams}) {
  const list = useResource("dead", (signal) => topicCalls.list({sort: "dead", order: "desc", limit: kTopics}, signal), {every: 3000});
  const withDead = (list.data?.topics ?? []).filter(({figures}) => Number(figures.dead) > 0);
  const chosen = query.get("topic") ?? "";
  const first = withDead[0]?.topic;
  // The choice stays, whichever topic has most dead letters later: nothing moves under the cursor.
  useEffect(() => { if (chosen === "" && first !== undefined) replaceQuery({topic: first}); }, [chosen, first]);
  return (
    <>
      <Heading title="Dead letters" note="jobs that used up their attempts, or were refused for good" />
      <Loaded resource={list}>
        {() => chosen === "" && withDead.length === 0 && (
          <Empty title="There are no dead letters."><p class="muted">A job becomes one when its last attempt failed. It stays here until somebody redrives or purges it.</p></Empty>
        )}
      </Loaded>
      {chosen !== "" && (
        <div class="columns list-first">
          <Panel title="Topics" flush>
            <TopicList topics={withDead} chosen={chosen} />
            {withDead.length === kTopics && list.data!.total > kTopics && (
              <p class="hint">These have most. <a href={href(["topics"], {sort: "dead", order: "desc"})}>All topics by dead letters</a></p>
            )}
          </Panel>
          <Reasons key={chosen} topic={chosen} />
        </div>
      )}
    </>
  );
}

function TopicList({topics, chosen}: {topics: Topic[]; chosen: string}) {
  return (
    <ul class="list">
      {topics.map(({topic, figures}) => (
        <li key={topic}>
          <button type="button" aria-current={topic === chosen ? "true" : undefined} onClick={() => replaceQuery({topic})}>
            <Text value={topic} /><span class="number">{count(figures.dead)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

const kAllDead: Selector = {state: ["dead"]};

const kWholeReasonMax = 252;  // bytes; the server counts longer reasons by their first 256, less a character that would be cut

/** The dead letters that are counted under this reason. */
function whereOf(reason: string): Selector {
  return {state: ["dead"], ...(utf8(reason).length <= kWholeReasonMax ? {reason_is: reason} : {reason})};
}

function Reasons({topic}: {topic: string}) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [exported, setExported] = useState<Selector | null>(null);
  const [asked, setAsked] = useState(false);
  const size = useTopicSize(topic);
  const tally = useResource<Tally>(size.small || asked ? `reasons ${topic}` : null, (signal) => calls.tally(topic, kAllDead, "reason", signal),
                                   {every: size.small ? 5000 : Infinity});
  const buttons = (where: Selector) => <Buttons topic={topic} where={where} onPlan={setPlan} onExport={setExported} />;
  const tooLarge = !size.small && !asked && size.jobs !== undefined && !tally.data;
  return (
    <Panel flush title={<>Reasons in <a href={href(["topics", topic])}><Text value={topic} /></a></>} note={tally.data && plural(tally.data.total, "dead letter")}
           actions={<>
             {!size.small && asked && <Button icon="reload" busy={tally.loading} onClick={tally.reload}>Reload</Button>}
             {tally.data && tally.data.total > 0 && buttons(kAllDead)}
           </>}>
      {tooLarge ? (
        <Empty title={`${topic} has ${plural(size.jobs!, "job")}: they are looked through only when you ask.`}>
          <Button onClick={() => setAsked(true)}>Group the dead letters by reason</Button>
        </Empty>
      ) : (
        <Loaded resource={tally}>
          {(data) => (data.groups.length === 0 ? <Empty title="This topic has no dead letters." /> : <ReasonTable topic={topic} tally={data} buttons={buttons} />)}
        </Loaded>
      )}
      {plan && <OperateDialog plan={plan} onClose={(acted) => { setPlan(null); if (acted) tally.reload(); }} />}
      {exported && <ExportDialog topic={topic} from={{where: exported}} onClose={() => setExported(null)} />}
    </Panel>
  );
}

interface ButtonsProps {
  topic: string;
  where: Selector;
  onPlan: (plan: Plan) => void;
  onExport: (where: Selector) => void;
}

function Buttons({topic, where, onPlan, onExport}: ButtonsProps) {
  const rights = useRights();
  return (
    <>
      {rights.admin && <Button onClick={() => onPlan({topic, action: "redrive", wheres: [where], rate: kRedriveRate})}>Redrive…</Button>}
      {rights.admin && <Button kind="danger" onClick={() => onPlan({topic, action: "purge", wheres: [where]})}>Purge…</Button>}
      {rights.payloads && <Button icon="download" onClick={() => onExport(where)}>Export…</Button>}
    </>
  );
}

interface TableProps {
  topic: string;
  tally: Tally;
  buttons: (where: Selector) => ComponentChildren;
}

function ReasonTable({topic, tally, buttons}: TableProps) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Reasons">
      <table class="reasons cards">
        <thead><tr><th>Reason</th><th class="number">Dead letters</th><th class="share">Share</th><th><span class="sr">Actions</span></th></tr></thead>
        <tbody>
          {tally.groups.map(({value, count: jobs}) => (
            <tr key={value} data-reason={value}>
              <th scope="row" class="wide">{/* no selector means the jobs without a reason */ value === "" ? <span class="muted">no reason</span>
                : <a href={href(["jobs"], {topic, ...toQuery(whereOf(value))})}><Text value={value} max={160} /></a>}</th>
              <td class="number" data-label="Dead letters">{count(jobs)}</td>
              <td class="share" data-label="Share"><Bar share={jobs / tally.total} tone="bad" /> <span class="muted">{percent(jobs, tally.total)}</span></td>
              <td class="row-actions">{value !== "" && buttons(whereOf(value))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {tally.others > 0 && <p class="hint">{plural(tally.others, "dead letter")} of other reasons are not listed: only the largest groups are.</p>}
    </div>
  );
}
