// The keys of the keyboard.
import {Dialog} from "./dialog";

export const kGoKeys: Record<string, [string, string]> = {
  o: ["", "overview"], t: ["topics", "topics"], j: ["jobs", "jobs"], l: ["leases", "leases"], d: ["dead", "dead letters"],
  v: ["deliveries", "deliveries"], n: ["nodes", "nodes"], a: ["alerts", "alerts"], c: ["clock", "clock, if it is virtual"],
};

export function HelpDialog({onClose}: {onClose: () => void}) {
  const rows: [string, string][] = [
    ["/", "search topics, jobs and pages"], ...Object.entries(kGoKeys).map(([key, [, name]]): [string, string] => [`g ${key}`, name]),
    ["p", "pause, and go on"], ["Esc", "close a dialog, clear a chosen range"], ["← →", "choose a time in a chart; with Shift a range"], ["?", "this help"],
  ];
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <div class="dialog-body">
        <dl class="keys">{rows.map(([keys, what]) => <><dt>{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{what}</dd></>)}</dl>
        <p class="muted">A search may be a part of a topic's name, or a topic and a selector, such as <code>topic:orders state:dead reason:"timed out"</code>.</p>
      </div>
    </Dialog>
  );
}
