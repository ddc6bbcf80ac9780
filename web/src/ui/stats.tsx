// Figures in large type.
import type {ComponentChildren} from "preact";

interface StatProps {
  label: string;
  children: ComponentChildren;
  note?: ComponentChildren;
  tone?: "warn" | "bad" | undefined;
  link?: string;
  title?: string;
}

export function Stat({label, children, note, tone, link, title}: StatProps) {
  const inner = (
    <>
      <span class="stat-label">{label}</span>
      <span class="stat-value" title={title}>{children}</span>
      {note && <span class="stat-note">{note}</span>}
    </>
  );
  return link ? <a class={`stat ${tone ?? ""}`} href={link}>{inner}</a> : <div class={`stat ${tone ?? ""}`}>{inner}</div>;
}

export function Stats({children, label}: {children: ComponentChildren; label: string}) {
  return <section class="stats" aria-label={label}>{children}</section>;
}
