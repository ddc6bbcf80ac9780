// The nodes that share the store, what each owns, and how the store is.
import {node as calls} from "../api/calls";
import type {Cluster, Member, Stats as NodeStats} from "../api/types";
import {count, plural} from "../lib/format";
import {span} from "../lib/time";
import {useResource} from "../live/resource";
import {useRights} from "../live/session";
import {Badge, Empty, Heading, Loaded, Note, Panel} from "../ui/basics";
import {Stat, Stats} from "../ui/stats";
import {Text} from "../ui/text";
import {Moment} from "../ui/time";

export function NodesPage() {
  const rights = useRights();
  const state = useResource(rights.node ? "nodes" : null, async (signal) => ({cluster: await calls.cluster(signal), stats: await calls.stats(signal)}),
                            {every: 2000, always: true});
  if (!rights.node) return <><Heading title="Nodes" /><Empty title="Your access token is for some topics: it does not show nodes." /></>;
  return (
    <>
      <Heading title="Nodes" note={state.data && <>as <span class="mono"><Text value={state.data.cluster.node} /></span> knows them</>} />
      <Loaded resource={state}>
        {({cluster, stats}) => (
          <>
            <Node cluster={cluster} stats={stats} />
            {cluster.lost.map((member) => (
              <Note key={member.id} tone="bad"><strong><Text value={member.id} /></strong> vanished without leaving; last heard <Moment at={member.heard_ms} />.</Note>
            ))}
            <Members cluster={cluster} />
            {cluster.servers.length > 0 && <Servers cluster={cluster} />}
          </>
        )}
      </Loaded>
    </>
  );
}

function Node({cluster, stats}: {cluster: Cluster; stats: NodeStats}) {
  const {coordinator} = cluster;
  return (
    <Stats label="This node">
      <Stat label="Version">{stats.version}</Stat>
      <Stat label="Up for">{span(stats.uptime_ms)}</Stat>
      <Stat label="Store" note={cluster.servers.length > 0 ? plural(cluster.servers.length, "server") : "embedded"}>{cluster.store}</Stat>
      <Stat label="Coordination" note={coordinator.state} tone={coordinator.connected ? undefined : "bad"}>{coordinator.kind}</Stat>
      <Stat label="Shards">{stats.shards}</Stat>
      <Stat label="Connections">{count(stats.connections)}</Stat>
      <Stat label="Topics">{count(stats.topics)}</Stat>
    </Stats>
  );
}

function ownedBy(member: Member, cluster: Cluster): number {
  return member.groups ?? cluster.groups.filter(({owner}) => owner === member.id).length;
}

function Members({cluster}: {cluster: Cluster}) {
  return (
    <Panel title="Members" flush note={plural(cluster.members.length, "node")}>
      <div class="scroll" tabIndex={0} role="region" aria-label="Members">
        <table class="cards">
          <thead><tr><th>Node</th><th>HTTP</th><th>RESP</th><th>Version</th><th>Joined</th><th>Heard</th><th class="number">Groups</th><th class="number">Slots with jobs</th></tr></thead>
          <tbody>
            {cluster.members.map((member) => (
              <tr key={member.id}>
                <th scope="row" class="mono"><Text value={member.id} /> {member.self && <Badge tone="info">this one</Badge>}</th>
                <td class="mono" data-label="HTTP"><Text value={member.http ?? "–"} /></td>
                <td class="mono" data-label="RESP"><Text value={member.resp ?? "–"} /></td>
                <td data-label="Version"><Text value={member.version ?? "–"} /></td>
                <td data-label="Joined"><Moment at={member.joined_ms} /></td>
                <td data-label="Heard"><Moment at={member.heard_ms} /></td>
                <td class="number" data-label="Groups">{ownedBy(member, cluster)}</td>
                <td class="number" data-label="Slots with jobs">{member.slots ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Servers({cluster}: {cluster: Cluster}) {
  return (
    <Panel title="Store" flush note="the servers behind the nodes">
      <div class="scroll" tabIndex={0} role="region" aria-label="Store">
        <table class="cards">
          <thead><tr><th>Server</th><th>Role</th><th>State</th><th class="number">Round trip</th></tr></thead>
          <tbody>
            {cluster.servers.map((server) => (
              <tr key={server.endpoint}>
                <th scope="row" class="mono"><Text value={server.endpoint} /></th>
                <td data-label="Role">{server.role}</td>
                <td data-label="State"><Badge tone={server.connected ? "good" : "bad"}><Text value={server.state} /></Badge></td>
                <td class="number" data-label="Round trip">{span(server.round_trip_ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
