// The server's time in components.
import {live, tickStore} from "./live";
import {useStore} from "./store";

/** Renders the component again each second, unless paused. */
export function useNow(): number {
  useStore(tickStore);
  return live.now();
}
