// Topics whose jobs the server pushes: where to, how it goes, and a probe.
import {useEffect, useState} from "preact/hooks";
import {topics as calls} from "../api/calls";
import {messageOf} from "../api/client";
import type {DeliveryState, Probe} from "../api/types";
import {count} from "../lib/format";
import {href} from "../lib/route";
import {span} from "../lib/time";
import {useResource} from "../live/resource";
import {useRights} from "../live/session";
import {Badge, Button, Command, Empty, Heading, Loaded, Panel} from "../ui/basics";
import {CursorPager, useCursors} from "../ui/pager";
import {Text} from "../ui/text";
import {Moment} from "../ui/time";
import {useCurl} from "./first_job";
import {isFailing} from "./problems";

const kPage = 50;

export function DeliveriesPage() {
  const command = useCurl();
  const {cursors, cursor, setCursors, startOver} = useCursors();
  const list = useResource(`deliveries ${cursor ?? ""}`, (signal) => calls.deliveries({limit: kPage, cursor}, signal), {every: 2000, always: true});
  useEffect(() => startOver(list.error), [list.error]);
  return (
    <>
      <Heading title="Deliveries" note="topics whose due jobs the server pushes to a receiver" />
      <Loaded resource={list}>
        {(data) => (data.items.length === 0 && cursors.length === 0 ? (
          <Empty title="No topic pushes.">
            <p class="muted">Due jobs wait for consumers that reserve them. A topic can push to a webhook, Kafka or RabbitMQ instead: in its settings, or with</p>
            <Command text={command("/v1/topics/orders", {method: "PUT", body: '{"delivery":{"sink":"webhook","url":"http://127.0.0.1:8080/jobs"}}'})} />
          </Empty>
        ) : (
          <Panel flush label="Deliveries">
            <div class="scroll" tabIndex={0} role="region" aria-label="Deliveries">
              <table class="cards">
                <thead><tr><th>Topic</th><th>Receiver</th><th>State</th><th class="number">In flight</th><th class="number">Failures in a row</th><th>Last error</th><th><span class="sr">Actions</span></th></tr></thead>
                <tbody>{data.items.map((each) => <Row key={each.topic} delivery={each} />)}</tbody>
              </table>
            </div>
            <CursorPager cursors={cursors} next={data.cursor} onChange={setCursors} />
          </Panel>
        ))}
      </Loaded>
    </>
  );
}

function toneOf(delivery: DeliveryState): "good" | "warn" | "bad" {
  if (isFailing(delivery)) return "bad";
  return delivery.state === "delivering" ? "good" : "warn";
}

function Row({delivery}: {delivery: DeliveryState}) {
  const rights = useRights();
  const {topic, sink, target, state, in_flight, failures, last_error, last_error_ms} = delivery;
  return (
    <tr data-topic={topic}>
      <th scope="row"><a href={href(["topics", topic], {tab: "settings"})}><Text value={topic} /></a></th>
      <td class="wide" data-label="Receiver"><Badge>{sink}</Badge> <span class="mono"><Text value={target} max={100} /></span></td>
      <td data-label="State"><Badge tone={toneOf(delivery)}>{state}</Badge></td>
      <td class="number" data-label="In flight">{count(in_flight)}</td>
      <td class="number" data-label="Failures in a row">{count(failures)}</td>
      <td class="wide" data-label="Last error">{last_error === null ? <span class="muted">none</span> : <><Text value={last_error} max={200} /> <span class="muted"><Moment at={last_error_ms} /></span></>}</td>
      <td class="row-actions">{rights.admin && <ProbeButton topic={topic} />}</td>
    </tr>
  );
}

const kTones = {confirmed: "good", retry: "warn", refused: "bad"} as const;

function ProbeButton({topic}: {topic: string}) {
  const [busy, setBusy] = useState(false);
  const [probe, setProbe] = useState<Probe | string | null>(null);
  const run = async () => {
    setBusy(true);
    try {
      setProbe(await calls.probe(topic));
    } catch (error) {
      setProbe(messageOf(error));
    }
    setBusy(false);
  };
  return (
    <div class="probe">
      <Button busy={busy} onClick={() => void run()}>Probe</Button>
      <span role="status">
        {typeof probe === "string" ? <span class="text-bad"><Text value={probe} /></span>
          : probe && <><Badge tone={kTones[probe.outcome]}>{probe.outcome}</Badge> <span class="muted">{span(probe.took_ms)}</span> {probe.reason && <Text value={probe.reason} max={120} />}</>}
      </span>
    </div>
  );
}
