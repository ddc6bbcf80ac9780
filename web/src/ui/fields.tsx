// Form fields with their labels.
import type {ComponentChildren} from "preact";
import {useId} from "preact/hooks";

interface FieldProps {
  label: string;
  help?: ComponentChildren;
  error?: string | undefined;
  children: (id: string, describedBy: string | undefined) => ComponentChildren;
}

export function Field({label, help, error, children}: FieldProps) {
  const id = useId();
  const about = help || error ? id + "-about" : undefined;
  return (
    <div class={`field ${error ? "wrong" : ""}`}>
      <label for={id}>{label}</label>
      {children(id, about)}
      {about && <p id={about} class={error ? "field-error" : "field-help"}>{error ?? help}</p>}
    </div>
  );
}

interface InputProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  help?: ComponentChildren;
  error?: string | undefined;
  type?: "text" | "password" | "datetime-local";
  placeholder?: string;
  mono?: boolean;
  autoFocus?: boolean;
  name?: string;
  step?: string;
}

export function Input({label, value, onInput, help, error, type = "text", placeholder, mono, autoFocus, name, step}: InputProps) {
  const kind = {type} as {type: "text"};  // JSX types know one kind of input at a time
  return (
    <Field label={label} help={help} error={error}>
      {(id, about) => (
        <input id={id} name={name} class={mono ? "mono" : ""} {...kind} value={value} placeholder={placeholder} autoComplete="off"
               spellcheck={false} autoFocus={autoFocus} step={step} aria-describedby={about} aria-invalid={error ? true : undefined}
               onInput={(event) => onInput(event.currentTarget.value)} />
      )}
    </Field>
  );
}

interface SelectProps {
  label: string;
  value: string;
  options: [string, string][];
  onChange: (value: string) => void;
  help?: ComponentChildren;
  name?: string;
}

export function Select({label, value, options, onChange, help, name}: SelectProps) {
  return (
    <Field label={label} help={help}>
      {(id, about) => (
        <select id={id} name={name} value={value} aria-describedby={about} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
        </select>
      )}
    </Field>
  );
}

export function Check({label, checked, onChange, help}: {label: string; checked: boolean; onChange: (checked: boolean) => void; help?: string}) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}{help && <span class="field-help"> {help}</span>}</span>
    </label>
  );
}

interface SegmentsProps {
  label: string;
  value: string;
  options: [string, string][];
  onChange: (value: string) => void;
}

/** One of a few, as buttons in a row. */
export function Segments({label, value, options, onChange}: SegmentsProps) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([name, text]) => (
        <button key={name} type="button" aria-pressed={name === value} onClick={() => onChange(name)}>{text}</button>
      ))}
    </div>
  );
}
