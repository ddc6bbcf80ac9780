// Who holds which job, since when and until when; and the way to take it back.
import {useEffect, useState} from "preact/hooks";
import {leases as calls} from "../api/calls";
import type {Lease} from "../api/types";
import {count} from "../lib/format";
import {readOn} from "../lib/pages";
import {href, replaceQuery} from "../lib/route";
import {live} from "../live/live";
import {useNow} from "../live/clock";
import {useReloadAfter, useResource} from "../live/resource";
import {useRights} from "../live/session";
import {Badge, Button, Empty, Heading, Loaded, Panel} from "../ui/basics";
import {Confirm} from "../ui/confirm";
import {CursorPager, LookOn, useCursors} from "../ui/pager";
import {jobHref} from "../ui/samples";
import {Text} from "../ui/text";
import {Moment, Since} from "../ui/time";
import {toast} from "../ui/toast";
import {TopicInput} from "../ui/topic_input";

const kPage = 100;

/** What became of a lease that was to be revoked. */
export function revokedText(outcome: string): string {
  if (outcome === "revoked") return "The lease is revoked: the job is due again.";
  if (outcome === "changed_meanwhile") return "Somebody else holds it now: nothing was changed. Look again who it is.";
  return `Nobody holds the job any more (${outcome}).`;
}

export function LeasesPage({query}: {query: URLSearchParams}) {
  const topic = query.get("topic") ?? "";
  const holder = query.get("holder") ?? "";
  const [name, setName] = useState(topic);
  const {cursors, cursor, setCursors, startOver} = useCursors();
  const page = useResource(`leases ${topic} ${holder} ${cursor ?? ""}`, (signal) =>
    readOn((next) => calls.list(topic || undefined, {limit: kPage, holder, cursor: next}, signal), cursor), {every: 2000, always: true});
  useReloadAfter(page, (page.data?.items ?? []).map(({lease_deadline_ms}) => lease_deadline_ms));
  useEffect(() => startOver(page.error), [page.error]);
  const set = (next: {topic: string; holder: string}) => {
    setCursors([]);
    replaceQuery(next);
  };
  return (
    <>
      <Heading title="Leases" note="jobs that consumers have at the moment" />
      <Panel flush label="Leases">
        <form class="table-tools" onSubmit={(event) => event.preventDefault()}>
          <TopicInput value={name} onInput={setName} onChoose={(next) => { setName(next); set({topic: next, holder}); }} />
          <input name="holder" type="search" placeholder="holder" aria-label="Holder" value={holder} autoComplete="off"
                 onChange={(event) => set({topic, holder: event.currentTarget.value})} />
        </form>
        <Loaded resource={page}>
          {(data) => (data.items.length === 0 && data.cursor ? <LookOn onClick={() => setCursors([...cursors, data.cursor!])} />
            : data.items.length === 0 ? <Empty title="Nobody holds a job."><p class="muted">A consumer that reserves jobs has a lease on each until it acknowledges it, gives it back, or the lease ends.</p></Empty>
            : <Table leases={data.items} reload={page.reload} />)}
        </Loaded>
        <CursorPager cursors={cursors} next={page.data?.cursor} onChange={setCursors} />
      </Panel>
    </>
  );
}

function Table({leases, reload}: {leases: Lease[]; reload: () => void}) {
  const rights = useRights();
  const now = useNow();
  const [asked, setAsked] = useState<Lease | null>(null);
  const revoke = async ({topic, id, key, attempt}: Lease) => {
    const {outcome} = await calls.revoke(topic, id, key, attempt);
    toast(revokedText(outcome), outcome === "revoked" ? "good" : "bad");
    live.version += 1;
    reload();
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Leases">
      <table class="cards">
        <thead><tr><th>Holder</th><th>Job</th><th>Topic</th><th>Held for</th><th>Ends</th><th class="number">Extended</th><th class="number">Attempt</th>{rights.admin && <th><span class="sr">Actions</span></th>}</tr></thead>
        <tbody>
          {leases.map((lease) => (
            <tr key={`${lease.topic} ${lease.id} ${lease.key ?? ""}`} data-id={lease.id}>
              <th scope="row"><a href={href(["leases"], {holder: lease.holder})}><Text value={lease.holder ?? "unknown"} max={60} /></a></th>
              <td class="mono" data-label="Job"><a href={jobHref(lease.topic, lease)}><Text value={lease.id} max={48} /></a></td>
              <td data-label="Topic"><a href={href(["topics", lease.topic])}><Text value={lease.topic} /></a></td>
              <td data-label="Held for">{lease.leased_ms === undefined ? "–" : <Since at={lease.leased_ms} />}</td>
              <td data-label="Ends">{lease.lease_deadline_ms < now ? <Badge tone="warn">over</Badge> : <Moment at={lease.lease_deadline_ms} />}</td>
              <td class="number" data-label="Extended">{count(lease.extensions)}</td>
              <td class="number" data-label="Attempt">{lease.attempt}<span class="muted">/{lease.max_attempts}</span></td>
              {rights.admin && <td class="row-actions"><Button kind="danger" onClick={() => setAsked(lease)}>Revoke…</Button></td>}
            </tr>
          ))}
        </tbody>
      </table>
      {asked && (
        <Confirm title="Revoke 1 lease" action="Revoke 1 lease" danger onConfirm={() => revoke(asked)} onClose={() => setAsked(null)}>
          <p><strong><Text value={asked.holder ?? "A consumer"} /></strong> holds <code><Text value={asked.id} max={80} /></code>.</p>
          <p>The job is due again at once, and this attempt is used up ({asked.attempt} of {asked.max_attempts}). The consumer is not told: its work may go on, and its ack will be refused. Stop it first if that can do harm.</p>
        </Confirm>
      )}
    </div>
  );
}
