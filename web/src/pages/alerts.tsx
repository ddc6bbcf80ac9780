// Alerts: those that fire, those about to, those that are over, and what the server watches.
import {alerts as calls} from "../api/calls";
import type {Alert, AlertRule} from "../api/types";
import {templateText, thresholdText} from "../lib/alert_text";
import {plural} from "../lib/format";
import {href} from "../lib/route";
import {useResource} from "../live/resource";
import {Badge, Empty, Heading, Loaded, Panel} from "../ui/basics";
import {Text} from "../ui/text";
import {Moment} from "../ui/time";

export function AlertsPage() {
  const list = useResource("alerts", (signal) => calls.list(signal), {every: 2000, always: true});
  return (
    <>
      <Heading title="Alerts" note="what the server itself watches, with or without Prometheus" />
      <Loaded resource={list}>
        {({alerts, left_out, rules}) => (
          <>
            <Panel flush title="Now" note={left_out > 0 && `${plural(left_out, "more alert")} found no room`}>
              {alerts.length === 0 ? <Empty title="No alert fires, and none fired in the last hour." /> : <Table alerts={alerts} />}
            </Panel>
            <Panel flush title="Rules" note="thresholds are options of the server; a topic can have its own"><Rules rules={rules} /></Panel>
          </>
        )}
      </Loaded>
    </>
  );
}

const kTones = {firing: "bad", pending: "warn", resolved: "good"} as const;

function Table({alerts}: {alerts: Alert[]}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Alerts">
      <table class="cards">
        <thead><tr><th>Alert</th><th>State</th><th>Severity</th><th>About</th><th>What</th><th>Since</th><th>Until</th></tr></thead>
        <tbody>
          {alerts.map((alert) => (
            <tr key={`${alert.fingerprint} ${alert.starts_ms}`} data-alert={alert.rule}>
              <th scope="row">{alert.rule.replace(/_/g, " ")}</th>
              <td data-label="State"><Badge tone={kTones[alert.state]}>{alert.state}</Badge></td>
              <td data-label="Severity">{alert.labels["severity"] ?? "–"}</td>
              <td data-label="About">{alert.topic !== null ? <a href={href(["topics", alert.topic])}><Text value={alert.topic} /></a> : <Text value={alert.node ?? "this node"} />}</td>
              <td class="wide" data-label="What"><Text value={alert.summary} /></td>
              <td data-label="Since"><Moment at={alert.starts_ms} /></td>
              <td data-label="Until"><Moment at={alert.ends_ms} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Rules({rules}: {rules: AlertRule[]}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Rules">
      <table class="cards">
        <thead><tr><th>Rule</th><th>Severity</th><th>Threshold</th><th>What it says</th><th>Option</th><th>Setting of a topic</th></tr></thead>
        <tbody>
          {rules.map((rule) => (
            <tr key={rule.rule} data-rule={rule.rule}>
              <th scope="row">{rule.rule.replace(/_/g, " ")}</th>
              <td data-label="Severity">{rule.severity}</td>
              <td data-label="Threshold">{thresholdText(rule.threshold, rule.unit) ?? <span class="muted">{rule.option === null ? "–" : "off"}</span>}</td>
              <td class="wide" data-label="What it says">{templateText(rule.summary, rule.threshold, rule.unit)}</td>
              <td class="mono" data-label="Option">{rule.option ?? "–"}</td>
              <td class="mono" data-label="Setting">{rule.setting ?? "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
