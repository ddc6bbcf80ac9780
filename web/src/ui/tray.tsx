// The operations that were begun here, in a corner, whatever page is open.
import {useState} from "preact/hooks";
import {forget, isRunning, watchedStore} from "../live/operations";
import {useStore} from "../live/store";
import {Button} from "./basics";
import {Icon} from "./icons";
import {OperationView} from "./operation_view";

export function Tray() {
  const watched = useStore(watchedStore);
  const [open, setOpen] = useState(true);
  if (watched.length === 0) return null;
  const running = watched.filter(isRunning).length;
  return (
    <aside class={`tray ${open ? "open" : ""}`} aria-label="Operations">
      <button type="button" class="tray-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span>{running > 0 ? `${running} running` : "Operations"}</span>
        <Icon name={open ? "down" : "up"} />
      </button>
      {open && (
        <div class="tray-list">
          {watched.map((each) => (
            <div key={each.id} class="tray-item">
              <OperationView watched={each} />
              {!isRunning(each) && (
                <Button icon="close" label="Dismiss" kind="quiet" onClick={() => forget(each.id)} />
              )}
            </div>
          ))}
        </div>
      )}
    </aside>
  );
}
