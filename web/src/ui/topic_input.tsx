// The name of a topic, with those that the server knows to choose from.
import {useId} from "preact/hooks";
import {topics as calls} from "../api/calls";
import {useResource} from "../live/resource";

interface Props {
  value: string;
  onInput: (value: string) => void;
  onChoose: (topic: string) => void;
  label?: string;
}

export function TopicInput({value, onInput, onChoose, label = "Topic"}: Props) {
  const id = useId();
  const found = useResource(`names ${value}`, (signal) => calls.list({filter: value, limit: 20}, signal), {every: 60_000});
  const names = found.data?.topics.map(({topic}) => topic) ?? [];
  return (
    <span class="topic-input">
      <label class="sr" for={id}>{label}</label>
      <input id={id} name="topic" type="search" list={id + "-names"} value={value} placeholder="topic" autoComplete="off" spellcheck={false}
             onInput={(event) => {
               const next = event.currentTarget.value;
               onInput(next);
               if (names.includes(next) && !(event instanceof InputEvent && event.inputType === "insertText")) onChoose(next);
             }}
             onKeyDown={(event) => event.key === "Enter" && onChoose(event.currentTarget.value)}
             onChange={(event) => onChoose(event.currentTarget.value)} />
      <datalist id={id + "-names"}>{names.map((name) => <option key={name} value={name} />)}</datalist>
    </span>
  );
}
