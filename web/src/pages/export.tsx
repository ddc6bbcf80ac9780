// Jobs as a file, page by page: the lines that `tocsin export` writes and `tocsin import` reads.
import {useEffect, useRef, useState} from "preact/hooks";
import {jobs as calls} from "../api/calls";
import {ApiError} from "../api/client";
import type {Job} from "../api/types";
import {utf8} from "../lib/bytes";
import {download} from "../lib/copy";
import {bytes, count, plural} from "../lib/format";
import {stringifyExact} from "../lib/json";
import type {Selector} from "../lib/selector";
import {quote} from "../lib/shell";
import {visible} from "../lib/text";
import {Button, Failure, Note} from "../ui/basics";
import {Dialog} from "../ui/dialog";

const kBytesMax = 256 * 1024 * 1024;  // a browser keeps the whole file in memory
const kPage = 1000;

interface State {
  jobs: number;
  bytes: number;
  ended: boolean;
  cut: boolean;
  error?: unknown;
}

/** All jobs that match, or some that were selected. */
export type Exported = {where: Selector} | {jobs: Job[]};

async function* pagesOf(topic: string, from: Exported, signal: AbortSignal): AsyncGenerator<Job[]> {
  if ("where" in from) {
    let cursor: string | undefined;
    do {
      const page = await calls.list(topic, from.where, {limit: kPage, cursor}, signal);
      yield page.items;
      cursor = page.cursor;
    } while (cursor);
    return;
  }
  // One by one: many ids make an address too long, and an id may have a comma.
  for (const {id, key} of from.jobs) {
    try {
      yield [await calls.show(topic, id, key, signal)];
    } catch (error) {
      if (!(error instanceof ApiError && error.code === "not_found")) throw error;
    }
  }
}

async function collect(topic: string, from: Exported, signal: AbortSignal, onProgress: (state: State) => void): Promise<string[]> {
  const parts: string[] = [];
  const state: State = {jobs: 0, bytes: 0, ended: false, cut: false};
  for await (const jobs of pagesOf(topic, from, signal)) {
    const text = jobs.map((job) => stringifyExact({topic, ...job}) + "\n").join("");
    parts.push(text);
    state.jobs += jobs.length;
    state.bytes += utf8(text).length;
    state.cut = state.bytes > kBytesMax;
    onProgress({...state});
    if (state.cut) break;
  }
  onProgress({...state, ended: true});
  return parts;
}

export function ExportDialog({topic, from, onClose}: {topic: string; from: Exported; onClose: () => void}) {
  const [state, setState] = useState<State>({jobs: 0, bytes: 0, ended: false, cut: false});
  const parts = useRef<string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    collect(topic, from, abort.signal, setState)
      .then((all) => (parts.current = all))
      .catch((error: unknown) => { if (!abort.signal.aborted) setState((before) => ({...before, ended: true, error})); });
    return () => abort.abort();
  }, []);
  const save = () => {
    download(`${visible(topic)}-jobs.jsonl`, "application/x-ndjson", parts.current);
    onClose();
  };
  return (
    <Dialog title={`Export jobs of ${topic}`} onClose={onClose}>
      <div class="dialog-body">
        <p aria-live="polite"><strong>{plural(state.jobs, "job")}</strong>, {bytes(state.bytes)}{!state.ended && " so far"}</p>
        <p class="muted">One job in a line, as JSON: what <code>tocsin export</code> writes and <code>tocsin import</code> reads.</p>
        {state.cut && <Note tone="warn">The file ends after {count(state.jobs)} jobs, because a browser keeps all of it in memory. For more: <code>tocsin export {visible(quote(topic))} --output jobs.jsonl</code></Note>}
        <Failure error={state.error} />
      </div>
      <footer class="dialog-foot">
        <Button kind="quiet" onClick={onClose}>Close</Button>
        <Button kind="primary" disabled={!state.ended || state.jobs === 0} onClick={save}>{`Save ${plural(state.jobs, "job")}`}</Button>
      </footer>
    </Dialog>
  );
}
