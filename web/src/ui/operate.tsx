// An action on many jobs: what exactly, a dry run, a confirmation that names the count, progress, and the outcomes.
import {useEffect, useRef, useState} from "preact/hooks";
import {operations as calls} from "../api/calls";
import {isOffline, messageOf} from "../api/client";
import type {Action, OperateBody, Operation} from "../api/types";
import {count, plural} from "../lib/format";
import {href} from "../lib/route";
import {type Selector, isEmpty, toText, toWhere} from "../lib/selector";
import {live} from "../live/live";
import {beginAll, foundMore, isRunning, type Watched, watchedStore} from "../live/operations";
import {useStore} from "../live/store";
import {Button, Failure, Note} from "./basics";
import {Dialog} from "./dialog";
import {Input} from "./fields";
import {type Draft, type Mode, emptyDraft, OperateForm, readDraft} from "./operate_form";
import {changedBy, OperationView} from "./operation_view";
import {JobSamples} from "./samples";
import {Text} from "./text";
import {toast} from "./toast";

export interface Plan {
  topic: string;
  action: Action;
  wheres: Selector[];  // several if jobs with different keys were selected
  mode?: Mode;
  at?: number;         // where a spread or move begins unless told otherwise
  rate?: number;
}

const kVerbs: Record<Action, string> = {
  cancel: "Cancel", reschedule: "Reschedule", redrive: "Redrive", purge: "Purge", fire: "Fire", attempts: "Change attempts of",
};

const kSamples = 5;
const kTypedFrom = 100;  // a purge of so many jobs has to be typed

function bodyOf(plan: Plan, where: Selector, told: object): OperateBody {
  const body: OperateBody = {action: plan.action, where: toWhere(where), ...told};
  return isEmpty(where) ? {...body, all: true} : body;
}

/** A dry run: of each selector one. */
interface Tried {
  told: object;
  runs: Operation[];
  matched: number;
}

async function dryRun(plan: Plan, told: object): Promise<Tried> {
  const runs: Operation[] = [];
  for (const where of plan.wheres) runs.push(await calls.begin(plan.topic, {...bodyOf(plan, where, told), dry_run: true}));
  return {told, runs, matched: runs.reduce((sum, run) => sum + run.matched, 0)};
}

/** What the viewer confirms: those that the dry run has counted, and no more. */
function confirmed(plan: Plan, {told, runs}: Tried): OperateBody[] {
  return plan.wheres.flatMap((where, i) => (runs[i]!.matched > 0 ? [{...bodyOf(plan, where, told), matched_max: runs[i]!.matched}] : []));
}

/** The steps of the dialog: a dry run, and what was begun after it. */
function useSteps(plan: Plan, draft: Draft) {
  const [wrong, setWrong] = useState<{wrong: keyof Draft; why: string} | null>(null);
  const [tried, setTried] = useState<Tried | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [begun, setBegun] = useState<string[]>([]);
  const [acted, setActed] = useState(false);
  const [refused, setRefused] = useState<Watched[]>([]);
  const [mayRun, setMayRun] = useState(false);  // the answer to a confirmation was lost
  const open = useRef(true);
  useEffect(() => () => { open.current = false; }, []);
  const watched = useStore(watchedStore).filter(({id}) => begun.includes(id));

  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (failure) {
      setError(failure);
      if (!open.current) toast(`${titleOf(plan)}: ${messageOf(failure)}`, "bad");
    }
    setBusy(false);
  };
  const tryIt = () => attempt(async () => {
    setTried(null);
    const told = readDraft(plan.action, draft);
    setWrong("wrong" in told ? told : null);
    if ("body" in told) setTried(await dryRun(plan, told.body));
  });
  const confirm = () => attempt(async () => {
    setRefused([]);
    setMayRun(false);
    setActed(true);
    try {
      await beginAll(plan.topic, confirmed(plan, tried!), (id) => setBegun((before) => [...before, id]));
    } catch (failure) {
      // Only the answer may be lost. A second click must not move the same jobs twice.
      if (!isOffline(failure)) throw failure;
      setTried(null);
      setMayRun(true);
      throw new Error(`${messageOf(failure)}; the action may have begun`);
    } finally {
      live.version += 1;
    }
  });

  const running = busy || watched.some(isRunning);
  const more = watched.some(foundMore);
  useEffect(() => {
    if (running || !more) return;
    setRefused(watched);
    setBegun([]);
    void tryIt();
  }, [running, more]);
  return {wrong, tried, error, busy, acted, refused, mayRun, watched, running, tryIt, confirm, forget: () => setTried(null)};
}

function titleOf(plan: Plan): string {
  return `${kVerbs[plan.action]} jobs of ${plan.topic}`;
}

export function OperateDialog({plan, onClose}: {plan: Plan; onClose: (acted: boolean) => void}) {
  const [draft, setDraft] = useState<Draft>({...emptyDraft(plan.mode, plan.at), rate: plan.rate ? String(plan.rate) : ""});
  const [typed, setTyped] = useState("");
  const {wrong, tried, error, busy, acted, refused, mayRun, watched, running, tryIt, confirm, forget} = useSteps(plan, draft);
  useEffect(() => setTyped(""), [tried]);
  const close = () => onClose(acted);
  const title = titleOf(plan);
  if (watched.length > 0) {
    return (
      <Dialog title={title} onClose={close}>
        <div class="dialog-body">
          {watched.map((each) => <OperationView key={each.id} watched={each} />)}
          {mayRun && <MayHaveBegun topic={plan.topic} onLook={close} />}
          <Failure error={error} />
        </div>
        <footer class="dialog-foot">
          {running && <span class="muted">{busy && plan.wheres.length > 1 ? "More is to begin: leave the page open." : "It goes on if you close this."}</span>}
          <Button kind="primary" onClick={close}>{running ? "Go on working" : "Done"}</Button>
        </footer>
      </Dialog>
    );
  }
  const mayConfirm = tried !== null && tried.matched > 0 && (!mustType(plan, tried) || typed.replace(/[\s,]/g, "") === String(tried.matched));
  const submit = () => {
    if (busy) return;
    if (!tried) void tryIt();
    else if (mustType(plan, tried) && mayConfirm) void confirm();
  };
  return (
    <Dialog title={title} onClose={close} onSubmit={submit}>
      <div class="dialog-body">
        {mayRun && <MayHaveBegun topic={plan.topic} onLook={close} />}
        {refused.length > 0 && <Refused watched={refused} moves={plan.action === "reschedule"} />}
        <p class="which"><span class="muted">Which</span> <code><Text value={describe(plan.wheres)} /></code></p>
        <OperateForm action={plan.action} draft={draft} onChange={(next) => { setDraft(next); forget(); }} wrong={wrong} />
        <Failure error={error} />
        {tried && <DryRun tried={tried} />}
        {tried && mustType(plan, tried) && <Input label={`Type ${tried.matched} to confirm`} name="typed" value={typed} onInput={setTyped} mono />}
      </div>
      <footer class="dialog-foot">
        <Button kind="quiet" onClick={close}>Close</Button>
        {tried ? <Button onClick={() => void tryIt()} busy={busy}>Dry run again</Button> : <Button type="submit" kind="primary" busy={busy}>Dry run</Button>}
        {tried && tried.matched > 0 && (
          <Button id="confirm" kind={plan.action === "purge" || plan.action === "cancel" ? "danger" : "primary"} busy={busy} disabled={!mayConfirm}
                  onClick={() => void confirm()}>{`${kVerbs[plan.action]} ${plural(tried.matched, "job")}`}</Button>
        )}
      </footer>
    </Dialog>
  );
}

function mustType(plan: Plan, {matched}: Tried): boolean {
  return plan.action === "purge" && matched >= kTypedFrom;
}

/** More jobs match than were confirmed: what was done nevertheless, before the dry run that follows. */
function Refused({watched, moves}: {watched: Watched[]; moves: boolean}) {
  const sum = (of: (each: Watched) => number) => watched.reduce((total, each) => total + of(each), 0);
  const changed = sum(({operation}) => changedBy(operation));
  return (
    <Note tone="bad">
      <strong>More jobs match than the {count(sum(({confirmed: jobs}) => jobs ?? 0))} that you confirmed.</strong>{" "}
      {changed === 0 ? "Nothing was changed." : `${plural(changed, "job was", "jobs were")} changed before it stopped.`}
      {changed > 0 && moves && " Those may match again, and would be moved twice."} This is how many match now:
    </Note>
  );
}

/** The answer to the confirmation was lost. */
function MayHaveBegun({topic, onLook}: {topic: string; onLook: () => void}) {
  return (
    <Note tone="bad">
      <strong>The action may have begun.</strong> Look at <a href={href(["topics", topic], {tab: "operations"})} onClick={onLook}>the operations of <Text value={topic} /></a> before you begin it again.
    </Note>
  );
}

function describe(wheres: Selector[]): string {
  const ids = wheres.flatMap((where) => where.ids ?? []);
  if (wheres.length > 1 || ids.length > 3) return `${plural(ids.length, "selected job")}`;
  return isEmpty(wheres[0]!) ? "every job of the topic" : toText(wheres[0]!);
}

function DryRun({tried: {runs, matched}}: {tried: Tried}) {
  const samples = runs.flatMap((run) => run.samples ?? []).slice(0, kSamples);
  return (
    <div class="dry-run" role="status">
      <Note tone={matched > 0 ? "info" : "plain"}>
        <strong>{plural(matched, "job matches", "jobs match")}</strong>
        <span class="muted"> of {count(runs.reduce((sum, run) => sum + run.looked, 0))} that were looked at. Nothing was changed.</span>
      </Note>
      {samples.length > 0 && <JobSamples topic={runs[0]!.topic} jobs={samples} />}
    </div>
  );
}
