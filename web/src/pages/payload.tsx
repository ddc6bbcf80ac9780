// A payload as text, JSON or hex. Hidden until asked for, because payloads may be about people.
import {useMemo, useState} from "preact/hooks";
import type {Job} from "../api/types";
import {fromBase64, hexDump, textOf, utf8} from "../lib/bytes";
import {bytes as byteText} from "../lib/format";
import {prettyJson} from "../lib/json";
import {Store, useStore} from "../live/store";
import {useRights} from "../live/session";
import {Button, Copy, Empty, Panel} from "../ui/basics";
import {Check, Segments} from "../ui/fields";
import {Text} from "../ui/text";

const kKey = "tocsin-show-payloads";
const kShownMax = 64 * 1024;  // characters at first
const shownStore = new Store(localStorage.getItem(kKey) === "yes");

export function payloadBytes(job: Job): Uint8Array | null {
  if (job.payload_base64 !== undefined) return fromBase64(job.payload_base64);
  return job.payload === undefined ? null : utf8(job.payload);
}

export function PayloadPanel({job, onChange}: {job: Job; onChange?: (() => void) | undefined}) {
  const rights = useRights();
  const always = useStore(shownStore);
  const [asked, setAsked] = useState(false);
  const raw = useMemo(() => payloadBytes(job), [job.payload, job.payload_base64]);
  const actions = raw && onChange && <Button onClick={onChange}>Change…</Button>;
  const setAlways = (next: boolean) => {
    localStorage.setItem(kKey, next ? "yes" : "no");
    shownStore.set(next);
  };
  if (!raw) {
    return (
      <Panel title="Payload">
        <p class="muted">{rights.payload ? "The job has no payload." : "Your access token does not show payloads."}</p>
      </Panel>
    );
  }
  return (
    <Panel title="Payload" note={byteText(raw.length)} actions={actions}>
      {!asked && !always
        ? <Empty title="Hidden until you ask for it."><Button icon="eye" onClick={() => setAsked(true)}>Show the payload</Button></Empty>
        : <PayloadView raw={raw} />}
      <Check label="Always show payloads in this browser" checked={always} onChange={setAlways} />
    </Panel>
  );
}

function PayloadView({raw}: {raw: Uint8Array}) {
  const text = useMemo(() => textOf(raw), [raw]);
  const json = useMemo(() => (text === null ? null : prettyJson(text)), [text]);
  const [chosen, setChosen] = useState<string | null>(null);
  const [whole, setWhole] = useState(false);
  const kind = chosen ?? (json !== null ? "json" : text !== null ? "text" : "hex");
  const shown = kind === "json" ? json : kind === "text" ? text : hexDump(raw);
  const options: [string, string][] = [...(text === null ? [] : [["text", "Text"] as [string, string]]),
                                       ...(json === null ? [] : [["json", "JSON"] as [string, string]]), ["hex", "Hex"]];
  const cut = !whole && shown !== null && shown.length > kShownMax;
  return (
    <>
      <div class="payload-tools">
        <Segments label="Show as" value={kind} options={options} onChange={setChosen} />
        <Copy text={shown ?? ""} label="Copy the payload" />
      </div>
      {raw.length === 0 ? <p class="muted">It is empty.</p> : (
        <pre class="payload" tabIndex={0} aria-label="Payload"><Text value={(cut ? shown!.slice(0, kShownMax) : shown) ?? ""} lines /></pre>
      )}
      {cut && <Button onClick={() => setWhole(true)}>Show all {byteText(shown!.length)}</Button>}
    </>
  );
}
