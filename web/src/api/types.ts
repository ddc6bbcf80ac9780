// Answers of the API, as docs/http.md describes them. Only what the dashboard reads.
import type {Count} from "../lib/format";
import type {Selector} from "../lib/selector";

export type State = "scheduled" | "leased" | "dead" | "done" | "cancelled";

export interface Job {
  id: string;
  key?: string;
  state: State;
  trigger: "time" | "count" | "either";
  count_left?: number;
  reason?: string;
  attempt: number;
  max_attempts: number;
  due_ms: number | null;
  lease_deadline_ms?: number;
  leased_ms?: number;
  extensions?: number;
  holder?: string;
  created_ms?: number;
  last_attempt_ms?: number;
  died_ms?: number;
  finished_ms?: number;
  headers?: Record<string, string>;
  payload?: string;
  payload_base64?: string;
}

export interface Page<T> {
  items: T[];
  cursor?: string;
}

export interface Figures {
  scheduled: Count;
  ready: Count;
  leased: Count;
  dead: Count;
  bytes: Count;
  recovered: Count;
  accepted: Count;
  delivered: Count;
  acked: Count;
  nacked: Count;
  expired: Count;
  died: Count;
  redriven: Count;
  cancelled: Count;
  purged: Count;
}

export interface Lateness {
  count: number;
  p50: number;
  p99: number;
  p999: number;
  max: number;
}

export type Delivery = {sink: string} & Record<string, string | Count | boolean>;

export interface Topic {
  topic: string;
  paused: boolean;
  slots: number;
  delivery: Delivery;
  figures: Figures;
  lateness_ms: Lateness;
  oldest_age_ms: number | null;
  [setting: string]: unknown;
}

export interface Lease {
  topic: string;
  id: string;
  key?: string;
  attempt: number;
  max_attempts: number;
  lease_deadline_ms: number;
  leased_ms?: number;
  extensions: number;
  holder?: string;
}

export interface Tally {
  total: number;
  looked: number;
  groups: {value: string; count: number}[];
  others: number;
}

export type Action = "cancel" | "reschedule" | "redrive" | "purge" | "fire" | "attempts";

export interface OperateBody {
  action: Action;
  where: Selector;
  all?: boolean;
  dry_run?: boolean;
  matched_max?: number;  // it fails before it changes more jobs than that
  shift_ms?: number;
  to_ms?: number;
  over_ms?: number;
  max_attempts?: number;
  rate?: number;
}

export interface Operation {
  id?: string;
  topic: string;
  action: Action;
  state: "running" | "done" | "stopped" | "failed";
  looked: number;
  of: number;
  matched: number;
  outcomes: Record<string, number>;
  started_ms: number;
  ended_ms: number | null;
  error?: string;
  dry_run?: boolean;
  samples?: Job[];
}

export interface LoadSeries {
  due: number;
  total: number;
  jobs: number[];
}

export interface Load extends LoadSeries {
  from_ms: number;
  to_ms: number;
  step_ms: number;
  topics?: (LoadSeries & {topic: string})[];
}

export interface Stats {
  version: string;
  now_ms: number;
  uptime_ms: number;
  shards: number;
  connections: number;
  topics: number;
  totals: Figures;
  conservation: {in: Count; out: Count; difference: number};
  lateness_ms: Lateness;
}

export interface Member {
  id: string;
  http: string | null;
  resp: string | null;
  version: string | null;
  joined_ms: number;
  heard_ms: number;
  groups?: number;
  slots?: number | null;
  self?: boolean;
}

export interface Cluster {
  store: string;
  node: string;
  members: Member[];
  lost: Member[];
  groups: {group: number; owner: string | null; epoch: number | null; slots: number | null; next_due_ms: number | null}[];
  coordinator: {kind: string; connected: boolean; state: string};
  servers: {endpoint: string; role: string; connected: boolean; state: string; round_trip_ms: number}[];
}

/** A property of a schema of the OpenAPI document. */
export interface Property {
  type?: string | string[];
  description?: string;
  minimum?: Count;
  maximum?: Count;
  maxLength?: number;
  default?: unknown;
  enum?: string[];
}

export interface OpenApi {
  components: {schemas: Record<string, {properties?: Record<string, Property>}>};
}

export interface Session {
  name: string;
  scopes: string[];
  prefix: string;
  authentication: boolean;
  clock: "real" | "virtual";
  version: string;
  now_ms: number;
}

export interface Rates {
  accepted: number;
  delivered: number;
  acked: number;
  nacked: number;
  expired: number;
  died: number;
}

/** The event `figures`: the node's figures, each second. */
export interface FiguresEvent {
  now_ms: number;
  seconds: number;
  topics: number;
  totals: Figures;
  conservation: {in: Count; out: Count; difference: number};
  rates: Rates;
  lateness_ms: Lateness | null;  // null: not known without the stream
  oldest_age_ms: number | null;
}

export interface History {
  step_ms: number;
  at_ms: number[];
  series: Record<string, (number | null)[]>;
}

export interface LatenessHistogram extends Lateness {
  buckets: {le_ms: number; count: number}[];
}

export interface DeliveryState {
  topic: string;
  sink: string;
  target: string;
  state: string;
  in_flight: number;
  failures: number;
  last_error: string | null;
  last_error_ms: number | null;
}

export interface Probe {
  outcome: "confirmed" | "retry" | "refused";
  reason?: string;
  took_ms: number;
}

export interface Alert {
  state: "firing" | "pending" | "resolved";
  rule: string;
  topic: string | null;
  node: string | null;
  value: number;
  threshold: number;
  summary: string;
  starts_ms: number;
  ends_ms: number | null;
  labels: Record<string, string>;
  fingerprint: string;
}

export interface AlertRule {
  rule: string;
  alertname: string;
  severity: string;
  option: string | null;   // of the node, with the threshold
  setting: string | null;  // of the topic, the same
  threshold: number | null;  // of the node; null if it has none or is off
  unit: string | null;
  summary: string;         // with {topic}, {value} and the like
}

export interface Alerts {
  alerts: Alert[];
  left_out: number;
  looks: number;
  rules: AlertRule[];
}
