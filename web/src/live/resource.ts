// What a page shows, loaded once, and again when the server says that something changed.
import {useCallback, useEffect, useRef, useState} from "preact/hooks";
import {live, modeStore} from "./live";
import {sessionStore} from "./session";

export interface Resource<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  reload: () => void;
}

const kMovesMs = 10_000;
const kLagMs = 1500;  // the server sorts topics by figures that may be a second old: what was loaded so soon after a change is loaded again

interface Options {
  every?: number;    // not again sooner than this, in ms; Infinity: only when reload is called
  always?: boolean;  // also if nothing changed: what is shown moves with the time
}

interface Held<T> {
  key: string | null;
  data?: T;
  error?: unknown;
  loading: boolean;
}

/** Whether a page may ask by itself. */
function mayLoad(): boolean {
  const mode = modeStore.get();
  return !document.hidden && (mode === "live" || mode === "polling") && sessionStore.get().kind === "ready";
}

/** Loads for `key`; null loads nothing. What another key showed is forgotten. */
export function useResource<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>, options: Options = {}): Resource<T> {
  const [held, setHeld] = useState<Held<T>>({key, loading: key !== null});
  const latest = useRef({load, version: -1, began: 0, at: 0, abort: undefined as AbortController | undefined});
  latest.current.load = load;

  const run = useCallback(async () => {
    if (key === null) return;
    const now = latest.current;
    now.abort?.abort();
    const abort = new AbortController();
    now.abort = abort;
    const began = Date.now();
    let version = live.version;
    setHeld((before) => (before.key === key ? {...before, loading: true} : {key, loading: true}));
    try {
      const data = await now.load(abort.signal);
      if (!abort.signal.aborted) setHeld({key, data, loading: false});
    } catch (error) {
      version = -1;  // try again, even if nothing changes
      if (!abort.signal.aborted) setHeld((before) => ({...before, key, error, loading: false}));
    }
    if (abort.signal.aborted) return;
    now.abort = undefined;
    now.version = version;
    now.began = began;
    now.at = Date.now();
  }, [key]);

  useEffect(() => {
    void run();
    return () => {
      latest.current.abort?.abort();
      latest.current.abort = undefined;
    };
  }, [run]);

  const every = Math.max(1000, options.every ?? 2000);
  useEffect(() => {
    const timer = setInterval(() => {
      const now = latest.current;
      if (!mayLoad() || now.abort || Date.now() - now.at < every) return;
      const moved = options.always && Date.now() - now.at >= Math.max(every, kMovesMs);
      if (moved || now.version !== live.version || now.began < live.changedAt + kLagMs) void run();
    }, 250);
    return () => clearInterval(timer);
  }, [run, every, options.always]);

  const current = held.key === key ? held : {key, loading: key !== null};
  return {data: current.data, error: current.error, loading: current.loading, reload: run};
}

const kSoonestMs = 1000;  // a virtual clock may never reach the moment
const kAfterMs = 100;

/** Loads again when the first of these moments has passed. For deadlines: nothing tells that one was put off. */
export function useReloadAfter(resource: Resource<unknown>, moments: number[]): void {
  useEffect(() => {
    const next = Math.min(...moments.filter((at) => at >= live.now()));
    if (next === Infinity) return;
    const timer = setTimeout(() => { if (mayLoad()) resource.reload(); }, Math.max(kSoonestMs, next - live.now()) + kAfterMs);
    return () => clearTimeout(timer);
  }, [resource.data]);
}
