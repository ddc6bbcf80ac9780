// Small parts that every page uses.
import type {ComponentChildren} from "preact";
import {useState} from "preact/hooks";
import {ApiError, messageOf} from "../api/client";
import type {Resource} from "../live/resource";
import {copyText} from "../lib/copy";
import {visible} from "../lib/text";
import {Icon, type IconName} from "./icons";

interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  label?: string;  // for an icon alone
  kind?: "primary" | "danger" | "quiet";
  onClick?: () => void;
  disabled?: boolean;
  busy?: boolean;
  type?: "submit" | "button";
  pressed?: boolean;
  title?: string;
  id?: string;
}

export function Button({children, icon, label, kind, onClick, disabled, busy, type = "button", pressed, title, id}: ButtonProps) {
  return (
    <button id={id} type={type} class={`button ${kind ?? ""} ${children ? "" : "square"}`} onClick={onClick} disabled={disabled || busy}
            aria-label={label} aria-pressed={pressed} aria-busy={busy} title={title ?? label}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export function Copy({text, label = "Copy", children}: {text: string; label?: string; children?: ComponentChildren}) {
  const [state, setState] = useState<"" | "copied" | "failed">("");
  const copy = async () => {
    setState((await copyText(text)) ? "copied" : "failed");
    setTimeout(() => setState(""), 1500);
  };
  return (
    <button type="button" class={`button quiet copy ${children ? "" : "square"} ${state}`} aria-label={children ? undefined : label} title={label} onClick={() => void copy()}>
      <Icon name={state === "copied" ? "check" : "copy"} />
      {children}
      <span class="sr" role="status">{state === "copied" ? "Copied" : state === "failed" ? "Not copied: select the text" : ""}</span>
    </button>
  );
}

export function Command({text}: {text: string}) {
  return (
    <div class="command">
      <code tabIndex={0}>{text}</code>
      <Copy text={text} label="Copy the command" />
    </div>
  );
}

type Tone = "good" | "warn" | "bad" | "info" | "plain";

export function Badge({tone = "plain", children}: {tone?: Tone; children: ComponentChildren}) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

const kStateTones: Record<string, Tone> = {
  scheduled: "info", ready: "warn", leased: "good", dead: "bad", done: "plain", cancelled: "plain",
};

export function StateBadge({state}: {state: string}) {
  return <Badge tone={kStateTones[state] ?? "plain"}>{state}</Badge>;
}

export function Note({tone = "plain", children}: {tone?: Tone; children: ComponentChildren}) {
  return <div class={`note ${tone}`} role={tone === "bad" ? "alert" : undefined}>{children}</div>;
}

export function Failure({error}: {error: unknown}) {
  if (!error) return null;
  const field = error instanceof ApiError ? error.field : undefined;
  return <Note tone="bad">{visible(messageOf(error))}{field && <span class="muted"> ({field})</span>}</Note>;
}

export function Empty({title, children}: {title: string; children?: ComponentChildren}) {
  return (
    <div class="empty">
      <p class="empty-title">{visible(title)}</p>
      {children}
    </div>
  );
}

interface PanelProps {
  title?: ComponentChildren;
  note?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  flush?: boolean;  // the content reaches the edges, as a table does
  label?: string;
}

export function Panel({title, note, actions, children, flush, label}: PanelProps) {
  return (
    <section class={`panel ${flush ? "flush" : ""}`} aria-label={label ?? (typeof title === "string" ? visible(title) : undefined)}>
      {(title || actions) && (
        <header class="panel-head">
          {title && <h2>{title}</h2>}
          {note && <span class="muted panel-note">{note}</span>}
          {actions && <div class="panel-actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** The page's heading, with what can be done. It names the document as well. */
export function Heading({title, kind, children, note}: {title: ComponentChildren; kind?: string; note?: ComponentChildren; children?: ComponentChildren}) {
  return (
    <div class="heading">
      <div class="heading-text">
        {kind && <p class="kind">{kind}</p>}
        <h1 tabIndex={-1}>{title}</h1>
        {note && <p class="muted">{note}</p>}
      </div>
      {children && <div class="heading-actions">{children}</div>}
    </div>
  );
}

/** What was loaded, and why it could not be loaded again. Meanwhile it goes on showing what it had. */
export function Loaded<T>({resource, children}: {resource: Resource<T>; children: (data: T) => ComponentChildren}) {
  const {data, error} = resource;
  if (data === undefined && !error) return <div class="skeleton" role="status"><span class="sr">Loading</span></div>;
  return <><Failure error={error} />{data !== undefined && children(data)}</>;
}

export function Bar({share, tone = "info"}: {share: number; tone?: Tone}) {
  const width = Math.max(0, Math.min(100, share * 100));
  return (
    <svg class={`bar ${tone}`} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-rest" width="100" height="4" />
      <rect class="bar-part" width={width} height="4" />
    </svg>
  );
}
