// Text of strangers. It is only ever made of text nodes, isolated from the text around it.
import {runsOf} from "../lib/text";

interface Props {
  value: string;
  lines?: boolean;  // line feeds and tabs are kept
  max?: number;     // characters that are shown
}

export function Text({value, lines = false, max}: Props) {
  const cut = max !== undefined && value.length > max;
  const runs = runsOf(cut ? value.slice(0, max) : value, lines);
  return (
    <bdi class="stranger" title={cut ? runsOf(value.slice(0, 1000)).map((run) => run.text).join("") : undefined}>
      {runs.map((run, i) => (run.hidden
        ? <span key={i} class="hidden-char" title={run.hidden}>{run.text}</span>
        : run.text))}
      {cut && "…"}
    </bdi>
  );
}
