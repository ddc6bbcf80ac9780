// The settings of a topic, each with its meaning and range. Only what was changed is sent.
import type {ComponentChildren} from "preact";
import {useEffect, useState} from "preact/hooks";
import {ApiError} from "../api/client";
import type {Topic} from "../api/types";
import {type Count, bytes as byteText, count} from "../lib/format";
import {parseSpan, span} from "../lib/time";
import {loadSchema, type Schema, type Setting} from "../live/schema";
import {Button, Failure} from "./basics";
import {Check, Input, Select} from "./fields";

type Values = Record<string, string>;

interface Props {
  topic: Topic | null;  // null: a new one
  save: (settings: object) => Promise<void>;
  action: string;
  onCancel?: () => void;
  children?: ComponentChildren;  // fields before the settings
}

const textOfValue = (value: unknown) => (value === undefined || value === null ? "" : String(value));

/** What the value means, if its number does not say it. */
function meaning(setting: Setting, text: string): string {
  if (!/^\d+$/.test(text)) return "";
  if (setting.name.endsWith("_ms") && Number(text) >= 1000) return `${span(Number(text))}. `;
  return setting.name.endsWith("_bytes") && Number(text) >= 1024 ? `${byteText(Number(text))}. ` : "";
}

function rangeOf(setting: Setting): string {
  const show = (value: Count) => (setting.name.endsWith("_ms") && Number(value) >= 1000 ? span(Number(value)) : count(value));
  if (setting.minimum === undefined) return "";
  const most = setting.maximum === undefined || Number(setting.maximum) > 1e15 ? "" : ` to ${show(setting.maximum)}`;
  return most ? `${show(setting.minimum)}${most}. ` : "";
}

function isNumber(setting: Setting): boolean {
  return setting.type === "integer";
}

/** The value to send; a time may be written as 30s. */
function valueOf(setting: Setting, text: string): unknown {
  if (setting.type === "boolean") return text === "true";
  if (!isNumber(setting)) return text;
  if (/^\d+$/.test(text)) return Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text);
  const time = setting.name.endsWith("_ms") ? parseSpan(text) : null;
  if (time === null) throw new ApiError(400, "invalid_argument", `${setting.name} takes a number${setting.name.endsWith("_ms") ? " of milliseconds, or a time such as 30s" : ""}`, setting.name);
  return time;
}

export function SettingsForm({topic, save, action, onCancel, children}: Props) {
  const [schema, setSchema] = useState<Schema | null>(null);
  const [changed, setChanged] = useState<Values>({});
  const [sink, setSink] = useState(topic?.delivery.sink ?? "pull");
  const [changedSink, setChangedSink] = useState<Values>({});
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => { loadSchema().then(setSchema, setError); }, []);
  if (!schema) return error ? <Failure error={error} /> : <div class="skeleton" />;

  const sameSink = sink === (topic?.delivery.sink ?? "pull");
  const current = (setting: Setting) => textOfValue(topic ? topic[setting.name] : setting.default);
  const currentSink = (setting: Setting) => (sameSink && topic ? textOfValue(topic.delivery[setting.name]) : "");
  const field = error instanceof ApiError ? error.field?.replace("delivery.", "") : undefined;
  const errorOf = (name: string) => (field === name && error instanceof Error ? error.message : undefined);

  const gather = () => {
    const pick = (settings: Setting[], values: Values) => Object.fromEntries(
      settings.filter(({name}) => values[name] !== undefined).map((setting) => [setting.name, valueOf(setting, values[setting.name]!)]));
    const body: Record<string, unknown> = pick(schema.topic, changed);
    const delivery = pick(schema.sinkSettings(sink), changedSink);
    if (!sameSink || Object.keys(delivery).length > 0) body["delivery"] = {sink, ...delivery};
    return body;
  };
  const submit = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await save(gather());
      setChanged({});
      setChangedSink({});
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const dirty = !sameSink || Object.keys(changed).length + Object.keys(changedSink).length > 0;
  const one = (setting: Setting, before: string, values: Values, set: (values: Values) => void) => (
    <One key={setting.name} setting={setting} value={values[setting.name] ?? before} error={errorOf(setting.name)}
         fixed={topic !== null && setting.name === "slots"}
         onChange={(value) => {
           const {[setting.name]: _, ...rest} = values;
           set(value === before ? rest : {...rest, [setting.name]: value});
         }} />
  );
  return (
    <form class="settings" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      {children}
      <div class="settings-grid">{schema.topic.map((setting) => one(setting, current(setting), changed, setChanged))}</div>
      <h3>Delivery</h3>
      <div class="settings-grid">
        <Select label="sink" name="sink" value={sink} options={schema.sinks.map((name) => [name, name])} onChange={(next) => { setSink(next); setChangedSink({}); }}
                help="pull: consumers reserve jobs. Otherwise the server pushes them." />
        {schema.sinkSettings(sink).map((setting) => one(setting, currentSink(setting), changedSink, setChangedSink))}
      </div>
      {error && !field ? <Failure error={error} /> : null}
      <footer class="form-foot">
        {onCancel && <Button kind="quiet" onClick={onCancel}>Close</Button>}
        <Button type="submit" kind="primary" busy={busy} disabled={topic !== null && !dirty}>{action}</Button>
      </footer>
    </form>
  );
}

interface OneProps {
  setting: Setting;
  value: string;
  error: string | undefined;
  fixed: boolean;
  onChange: (value: string) => void;
}

function One({setting, value, error, fixed, onChange}: OneProps) {
  if (setting.type === "boolean") {
    return <Check label={setting.name} checked={value === "true"} onChange={(on) => onChange(String(on))} help={setting.description ?? ""} />;
  }
  if (fixed) {
    return <div class="field"><span class="label">{setting.name}</span><p class="mono">{value}</p><p class="field-help">{setting.description}</p></div>;
  }
  return (
    <Input label={setting.name} name={setting.name} value={value} onInput={onChange} error={error} mono
           help={<>{isNumber(setting) && meaning(setting, value) && <strong>{meaning(setting, value)}</strong>}{setting.description} <span class="range-text">{isNumber(setting) && rangeOf(setting)}</span></>} />
  );
}
