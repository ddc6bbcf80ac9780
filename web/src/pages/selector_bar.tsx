// Which jobs: typed as one line, or put together by clicks. Both are the same selector, which is in the page's address.
import {useEffect, useState} from "preact/hooks";
import {type Selector, kStates, parseText, toText} from "../lib/selector";
import {inputMoment, kHour, parseMoment} from "../lib/time";
import {live} from "../live/live";
import {useRights} from "../live/session";
import {Button, Note} from "../ui/basics";
import {Icon} from "../ui/icons";
import {TopicInput} from "../ui/topic_input";

interface Props {
  topic: string;
  selector: Selector;
  onChange: (topic: string, selector: Selector) => void;
}

export function SelectorBar({topic, selector, onChange}: Props) {
  const text = toText(selector);
  const [typed, setTyped] = useState(text);
  const [name, setName] = useState(topic);
  const [errors, setErrors] = useState<string[]>([]);
  useEffect(() => { setTyped(text); setErrors([]); }, [text]);
  useEffect(() => setName(topic), [topic]);

  const apply = () => {
    const parsed = parseText(typed, live.now());
    setErrors(parsed.errors);
    if (parsed.errors.length === 0) onChange(parsed.topic ?? name, parsed.selector);
  };
  return (
    <div class="selector">
      <form class="selector-line" role="search" aria-label="Jobs" onSubmit={(event) => { event.preventDefault(); apply(); }}>
        <TopicInput value={name} onInput={setName} onChoose={(next) => onChange(next, selector)} />
        <span class="search-field">
          <Icon name="search" />
          <input name="selector" class="mono" type="search" aria-label="Selector" value={typed} autoComplete="off" spellcheck={false}
                 placeholder={'state:dead reason:"timed out" due:now..now+1h order-'} onInput={(event) => setTyped(event.currentTarget.value)} />
        </span>
        <Button type="submit" kind="primary">Search</Button>
      </form>
      {errors.map((error) => <Note key={error} tone="bad">{error}</Note>)}
      <States selector={selector} onChange={(next) => onChange(topic, next)} />
      <Builder selector={selector} onChange={(next) => onChange(topic, next)} />
    </div>
  );
}

interface PartProps {
  selector: Selector;
  onChange: (selector: Selector) => void;
}

function States({selector, onChange}: PartProps) {
  const chosen = selector.state ?? [];
  const toggle = (state: string) => {
    const next = chosen.includes(state) ? chosen.filter((each) => each !== state) : [...chosen, state];
    const {state: _, ...rest} = selector;
    onChange(next.length ? {...rest, state: next} : rest);
  };
  return (
    <div class="segments wrap" role="group" aria-label="States">
      <button type="button" aria-pressed={chosen.length === 0} onClick={() => { const {state: _, ...rest} = selector; onChange(rest); }}>all</button>
      {kStates.map((state) => (
        <button key={state} type="button" aria-pressed={chosen.includes(state)} onClick={() => toggle(state)}>{state}</button>
      ))}
    </div>
  );
}

type TextName = "ids" | "id_prefix" | "key" | "header" | "payload" | "reason" | "reason_is" | "holder" | "attempts_min" | "attempts_max";
type TimeName = "due_from_ms" | "due_to_ms" | "created_from_ms" | "created_to_ms" | "died_from_ms" | "died_to_ms";

const kTexts: [TextName, string, string][] = [
  ["ids", "Ids", "a,b,c"], ["id_prefix", "Id begins with", "order-"], ["key", "Key", "ann"], ["header", "Header", "name=value"],
  ["payload", "Payload contains", "text"], ["reason", "Reason contains", "timed out"], ["reason_is", "Whole reason", "timed out after 5 s"], ["holder", "Held by", "worker-3"],
  ["attempts_min", "Attempts from", "3"], ["attempts_max", "Attempts to", "5"],
];
const kTimes: [TimeName, string][] = [
  ["due_from_ms", "Due from"], ["due_to_ms", "Due before"], ["created_from_ms", "Created from"], ["created_to_ms", "Created before"],
  ["died_from_ms", "Died from"], ["died_to_ms", "Died before"],
];

function withField(selector: Selector, name: TextName | TimeName, value: string): Selector {
  const {[name]: _, ...rest} = selector;
  if (value === "") return rest;
  if (name === "ids") return {...rest, ids: value.split(",").filter((id) => id !== "")};
  if (name.endsWith("_ms")) {
    const at = parseMoment(value, live.now());
    return at === null ? rest : {...rest, [name]: at};
  }
  return {...rest, [name]: name.startsWith("attempts") ? Number(value) : value};
}

function Builder({selector, onChange}: PartProps) {
  const rights = useRights();
  const quick: [string, Selector][] = [
    ["Due in the next hour", {state: ["scheduled"], due_from_ms: live.now(), due_to_ms: live.now() + kHour}],
    ["Failed at least once", {state: ["scheduled"], attempts_min: 1}],
    ["Died in the last hour", {state: ["dead"], died_from_ms: live.now() - kHour}],
  ];
  return (
    <details class="builder">
      <summary>Filters</summary>
      <div class="builder-fields">
        {kTexts.filter(([name]) => name !== "payload" || rights.payloads).map(([name, label, hint]) => (
          <label key={name}>
            <span>{label}</span>
            <input name={name} placeholder={hint} value={String(selector[name] ?? "")} inputMode={name.startsWith("attempts") ? "numeric" : "text"}
                   onChange={(event) => onChange(withField(selector, name, event.currentTarget.value))} />
          </label>
        ))}
        {kTimes.map(([name, label]) => (
          <label key={name}>
            <span>{label}</span>
            <input name={name} type="datetime-local" step="1" value={selector[name] === undefined ? "" : inputMoment(selector[name])}
                   onChange={(event) => onChange(withField(selector, name, event.currentTarget.value))} />
          </label>
        ))}
      </div>
      <div class="builder-quick">
        {quick.map(([label, next]) => <Button key={label} onClick={() => onChange(next)}>{label}</Button>)}
        <Button kind="quiet" onClick={() => onChange({})}>Clear all</Button>
      </div>
    </details>
  );
}
