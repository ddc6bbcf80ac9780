// What became of an action, in a corner, for some seconds.
import {visible} from "../lib/text";
import {onSessionEnd} from "../live/session";
import {Store, useStore} from "../live/store";
import {Button} from "./basics";

interface Toast {
  id: number;
  text: string;
  tone: "good" | "bad" | "plain";
}

const kShownMs = 6000;
const toasts = new Store<Toast[]>([]);
let last = 0;
/** How many dialogs are open: the toasts are inside of them then, because a modal dialog covers everything else. */
export const dialogsStore = new Store(0);

onSessionEnd(() => toasts.set([]));

export function toast(text: string, tone: Toast["tone"] = "good"): void {
  const id = ++last;
  toasts.set([...toasts.get().slice(-3), {id, text, tone}]);
  if (tone !== "bad") setTimeout(() => remove(id), kShownMs);
}

function remove(id: number): void {
  toasts.set(toasts.get().filter((each) => each.id !== id));
}

export function Toasts({inDialog = false}: {inDialog?: boolean}) {
  const shown = useStore(toasts);
  if (inDialog !== useStore(dialogsStore) > 0) return null;
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({id, text, tone}) => (
        <div key={id} class={`toast ${tone}`}>
          <span>{visible(text)}</span>
          <Button icon="close" label="Dismiss" kind="quiet" onClick={() => remove(id)} />
        </div>
      ))}
    </div>
  );
}
