// A question before something that cannot be undone.
import type {ComponentChildren} from "preact";
import {useState} from "preact/hooks";
import {visible} from "../lib/text";
import {Button, Failure} from "./basics";
import {Dialog} from "./dialog";
import {Input} from "./fields";

interface Props {
  title: string;
  children: ComponentChildren;
  action: string;           // the button
  danger?: boolean;
  typed?: string;           // what has to be typed first
  onConfirm: () => Promise<void>;
  onClose: () => void;
}

export function Confirm({title, children, action, danger, typed, onConfirm, onClose}: Props) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const isTyped = typed === undefined || text === typed || text === visible(typed);
  const confirm = async () => {
    setBusy(true);
    try {
      await onConfirm();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose} onSubmit={() => { if (isTyped && !busy) void confirm(); }}>
      <div class="dialog-body">
        {children}
        {typed !== undefined && <Input label={`Type ${visible(typed)} to confirm`} name="typed" value={text} onInput={setText} mono />}
        <Failure error={error} />
      </div>
      <footer class="dialog-foot">
        <Button kind="quiet" onClick={onClose}>Close</Button>
        <Button id="confirm" type="submit" kind={danger ? "danger" : "primary"} busy={busy} disabled={!isTyped}>{action}</Button>
      </footer>
    </Dialog>
  );
}
