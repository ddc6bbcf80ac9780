// Changes of one job: when it is due, and its payload.
import {useState} from "preact/hooks";
import {jobs as calls} from "../api/calls";
import type {Job} from "../api/types";
import {textOf, toBase64, utf8} from "../lib/bytes";
import {mixesLineEnds, withLineEndsOf} from "../lib/text";
import {inputMoment, parseSpan, readInput} from "../lib/time";
import {live} from "../live/live";
import {Button, Failure, Note} from "../ui/basics";
import {Dialog} from "../ui/dialog";
import {Field, Input, Segments} from "../ui/fields";
import {toast} from "../ui/toast";
import {payloadBytes} from "./payload";

interface Props {
  topic: string;
  job: Job;
  onClose: () => void;
  onDone: () => void;
}

const kOutcomes: Record<string, string> = {
  amended: "The job was changed.",
  in_flight: "A consumer has the job: nothing was changed.",
  finished: "The job is dead, done or cancelled: nothing was changed.",
  unknown: "The job is no longer stored.",
  changed_meanwhile: "The job was tried again meanwhile: nothing was changed. Look at it again.",
};

function useAmend({topic, job, onClose, onDone}: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const amend = async (change: object) => {
    if (busy) return;
    setBusy(true);
    try {
      const {outcome} = await calls.amend(topic, job.id, job.key, change);
      toast(kOutcomes[outcome] ?? outcome, outcome === "amended" ? "good" : "bad");
      onDone();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return {busy, error, setError, amend};
}

export function RescheduleDialog(props: Props) {
  const {busy, error, setError, amend} = useAmend(props);
  const [mode, setMode] = useState("in");
  const [delay, setDelay] = useState("10m");
  const [due] = useState(props.job.due_ms ?? live.now());
  const [at, setAt] = useState(inputMoment(due));
  const save = () => {
    const value = mode === "in" ? parseSpan(delay) : readInput(at, due);
    if (value === null || value < 0) setError(new Error("Write a time such as 10m or 2h."));
    else void amend(mode === "in" ? {delay_ms: value} : {due_ms: value});
  };
  return (
    <Dialog title="Reschedule the job" onClose={props.onClose} onSubmit={save}>
      <div class="dialog-body">
        <Segments label="When" value={mode} onChange={setMode} options={[["in", "From now"], ["at", "At a time"]]} />
        {mode === "in" ? <Input label="From now" name="delay" value={delay} onInput={setDelay} help="10m, 2h, 1d 12h" mono />
          : <Input label="Due" name="due" type="datetime-local" step="1" value={at} onInput={setAt} help="in your zone" />}
        <Failure error={error} />
      </div>
      <footer class="dialog-foot">
        <Button kind="quiet" onClick={props.onClose}>Close</Button>
        <Button type="submit" kind="primary" busy={busy}>Reschedule</Button>
      </footer>
    </Dialog>
  );
}

export function PayloadDialog(props: Props) {
  const {busy, error, amend} = useAmend(props);
  const raw = payloadBytes(props.job) ?? new Uint8Array();
  const before = textOf(raw);
  const [text, setText] = useState(before ?? "");
  const save = () => {
    const exact = utf8(text);
    const change = textOf(exact) === text ? {payload: text} : {payload_base64: toBase64(exact)};
    void amend({...change, attempt: props.job.attempt});
  };
  return (
    <Dialog title="Change the payload" onClose={props.onClose} onSubmit={save} wide>
      <div class="dialog-body">
        {before !== null && mixesLineEnds(before) && <Note tone="warn">The payload has line ends of several kinds. If you change it, all of them become line feeds.</Note>}
        {before === null && <Note tone="warn">The payload is not text. What you write here takes its place.</Note>}
        <Field label="Payload" help="It is sent as it stands here, to the last digit and blank.">
          {(id, about) => (
            <textarea id={id} name="payload" class="mono" rows={14} value={text} spellcheck={false} aria-describedby={about}
                      onInput={(event) => setText(withLineEndsOf(before ?? "", event.currentTarget.value))} />
          )}
        </Field>
        <Failure error={error} />
      </div>
      <footer class="dialog-foot">
        <Button kind="quiet" onClick={props.onClose}>Close</Button>
        <Button type="submit" kind="primary" busy={busy}>Save the payload</Button>
      </footer>
    </Dialog>
  );
}
