// A job by hand, to try something.
import {useState} from "preact/hooks";
import {parseSpan} from "../lib/time";
import {live} from "../live/live";
import {Button, Failure} from "../ui/basics";
import {Dialog} from "../ui/dialog";
import {Field, Input} from "../ui/fields";
import {toast} from "../ui/toast";

interface Props {
  topic: string;
  submit: (job: object) => Promise<{jobs: {id: string; outcome: string}[]}>;
  onClose: () => void;
}

export function SubmitDialog({topic, submit, onClose}: Props) {
  const [payload, setPayload] = useState("");
  const [delay, setDelay] = useState("1m");
  const [id, setId] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const save = async () => {
    const delay_ms = parseSpan(delay);
    if (delay_ms === null || delay_ms < 0) return setError(new Error("Write a delay such as 5s, 10m or 2h."));
    setBusy(true);
    try {
      const {jobs} = await submit({payload, delay_ms, ...(id ? {id} : {})});
      toast(`${jobs[0]!.id}: ${jobs[0]!.outcome}`);
      live.version += 1;
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Submit a job to ${topic}`} onClose={onClose} onSubmit={() => { if (!busy) void save(); }}>
      <div class="dialog-body">
        <div class="form-row">
          <Input label="Due in" name="delay" value={delay} onInput={setDelay} help="5s, 10m, 2h" mono />
          <Input label="Id" name="id" value={id} onInput={setId} help="the server gives one unless you do" mono />
        </div>
        <Field label="Payload">
          {(field) => <textarea id={field} name="payload" class="mono" rows={6} value={payload} spellcheck={false} onInput={(event) => setPayload(event.currentTarget.value)} />}
        </Field>
        <Failure error={error} />
      </div>
      <footer class="dialog-foot">
        <Button kind="quiet" onClick={onClose}>Close</Button>
        <Button type="submit" kind="primary" busy={busy}>Submit 1 job</Button>
      </footer>
    </Dialog>
  );
}
