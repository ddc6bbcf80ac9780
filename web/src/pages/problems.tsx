// What is wrong right now, each with the way to it.
import type {ComponentChildren} from "preact";
import {alerts as alertCalls, node, topics as topicCalls} from "../api/calls";
import {messageOf} from "../api/client";
import type {Alert, Cluster, DeliveryState, Page, Topic} from "../api/types";
import {count, plural} from "../lib/format";
import {readAll} from "../lib/pages";
import {href} from "../lib/route";
import {kMinute, span} from "../lib/time";
import {useResource} from "../live/resource";
import {type Rights, useRights} from "../live/session";
import {Icon} from "../ui/icons";
import {Text} from "../ui/text";

interface Problem {
  key: string;
  tone: "bad" | "warn";
  link: string;
  text: ComponentChildren;
}

const kShown = 8;
const kWaiting = new Set(["backlog", "late", "stalled"]);  // alerts that say of a topic that its jobs wait
const kDeliveriesPage = 1000;
const kDeliveriesPages = 10;

function ofTopics(topics: Topic[]): Problem[] {
  return topics.filter(({oldest_age_ms: age}) => age !== null && age > kMinute).map(({topic, paused, figures, oldest_age_ms: age}) => ({
    key: "topic " + topic,
    tone: paused ? "warn" : "bad",
    link: href(["topics", topic]),
    text: <><strong><Text value={topic} /></strong> {paused ? "is paused" : "stands still"}: {count(figures.ready)} due, the oldest for {span(age!)}</>,
  }));
}

const kFailing = new Set(["failing", "unreachable", "broken"]);

export function isFailing(delivery: DeliveryState): boolean {
  return kFailing.has(delivery.state);
}

function ofDeliveries({items, cursor}: Page<DeliveryState>): Problem[] {
  const failing = items.filter(isFailing).map(({topic, sink, state, last_error}): Problem => ({
    key: "delivery " + topic,
    tone: "bad",
    link: href(["deliveries"]),
    text: <>The {sink} of <strong><Text value={topic} /></strong> is {state}{last_error && <>: <Text value={last_error} max={120} /></>}</>,
  }));
  const more: Problem = {key: "more deliveries", tone: "warn", link: href(["deliveries"]), text: <>Only the first {plural(items.length, "delivery", "deliveries")} are watched here</>};
  return cursor ? [...failing, more] : failing;
}

function ofCluster(cluster: Cluster): Problem[] {
  const lost = cluster.lost.map(({id}): Problem => ({
    key: "lost " + id, tone: "bad", link: href(["nodes"]), text: <>Node <strong><Text value={id} /></strong> vanished without leaving</>,
  }));
  const down = cluster.servers.filter(({connected}) => !connected).map(({endpoint, state}): Problem => ({
    key: "server " + endpoint, tone: "bad", link: href(["nodes"]), text: <>The store at <strong><Text value={endpoint} /></strong> is not connected: <Text value={state} /></>,
  }));
  return [...lost, ...down];
}

function ofAlerts(alerts: Alert[]): Problem[] {
  return alerts.map(({fingerprint, rule, topic, summary, labels}) => ({
    key: "alert " + fingerprint,
    tone: labels["severity"] === "critical" ? "bad" : "warn",
    link: topic === null ? href(["alerts"]) : rule === "dead_letters" ? href(["dead"], {topic}) : href(["topics", topic]),
    text: <Text value={summary} />,
  }));
}

/** What an answer tells; that there is none is a problem too. */
function read<T>(what: string, link: string, answer: PromiseSettledResult<T>, problemsOf: (value: T) => Problem[]): Problem[] {
  if (answer.status === "fulfilled") return problemsOf(answer.value);
  return [{key: "unknown " + what, tone: "bad", link, text: <>The {what} are not known: {messageOf(answer.reason)}</>}];
}

async function look(rights: Rights, signal: AbortSignal): Promise<Problem[]> {
  const [alerts, topics, deliveries, cluster] = await Promise.allSettled([
    alertCalls.list(signal),
    topicCalls.list({sort: "lateness", order: "desc", limit: kShown}, signal),
    readAll((cursor) => topicCalls.deliveries({limit: kDeliveriesPage, cursor}, signal), kDeliveriesPages),
    rights.node ? node.cluster(signal) : null,
  ]);
  // An alert says it better than the figures that it is made of.
  const firing = alerts.status === "fulfilled" ? alerts.value.alerts.filter(({state}) => state === "firing") : [];
  const told = new Set(firing.filter(({rule}) => kWaiting.has(rule)).map(({topic}) => topic));
  const all = [
    ...read("nodes", href(["nodes"]), cluster, (value) => (value ? ofCluster(value) : [])),
    ...read("alerts", href(["alerts"]), alerts, () => ofAlerts(firing)),
    ...read("deliveries", href(["deliveries"]), deliveries, ofDeliveries),
    ...read("topics that wait", href(["topics"]), topics, (value) => ofTopics(value.topics.filter(({topic}) => !told.has(topic)))),
  ];
  return all.sort((a, b) => Number(a.tone === "warn") - Number(b.tone === "warn"));
}

export function Problems() {
  const rights = useRights();
  const problems = useResource("problems", (signal) => look(rights, signal), {every: 3000, always: true});
  if (!problems.data) return null;
  if (problems.data.length === 0) {
    return (
      <p class="all-well" role="status"><Icon name="check" /> Nothing is wrong: no alert fires, no topic stands still, every
        receiver{rights.node && " and every node"} answers.</p>
    );
  }
  const more = problems.data.length - kShown;
  return (
    <section class="problems" aria-label="What is wrong">
      <h2>{problems.data.length === 1 ? "One thing needs attention" : `${count(problems.data.length)} things need attention`}</h2>
      <ul>
        {problems.data.slice(0, kShown).map(({key, tone, link, text}) => (
          <li key={key} class={tone}><a href={link}><Icon name="dead" /><span>{text}</span></a></li>
        ))}
      </ul>
      {more > 0 && <p class="muted hint">and {count(more)} more</p>}
    </section>
  );
}
