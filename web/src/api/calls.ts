// One function for each call that the dashboard makes.
import {type Selector, toQuery} from "../lib/selector";
import {call, path} from "./client";
import type * as api from "./types";

type Signal = AbortSignal | undefined;
const withSignal = (signal: Signal) => (signal ? {signal} : {});

export interface PageQuery {
  limit?: number;
  cursor?: string | undefined;
}

function pageOf<T>(items: T[], cursor: string | undefined): api.Page<T> {
  return {items, ...(cursor ? {cursor} : {})};
}

export const session = {
  show: (signal?: Signal) => call<api.Session>("GET", "/v1/session", withSignal(signal)),
  begin: (token: string) => call<api.Session>("POST", "/v1/session", {body: {token}}),
  end: () => call<{outcome: string}>("DELETE", "/v1/session"),
};

export const node = {
  stats: (signal?: Signal) => call<api.Stats>("GET", "/v1/stats", withSignal(signal)),
  cluster: (signal?: Signal) => call<api.Cluster>("GET", "/v1/cluster", withSignal(signal)),
  openApi: () => call<api.OpenApi>("GET", "/v1/openapi.json"),
  advance: (to: {ms: number} | {to_ms: number}) => call<{now_ms: number}>("POST", "/v1/clock/advance", {body: to}),
};

export interface TopicQuery {
  filter?: string;
  sort?: string;
  order?: string;
  limit?: number;
  offset?: number;
}

export interface LoadQuery {
  from?: number;
  to?: number;
  step?: number;
}

export const topics = {
  list: (query: TopicQuery, signal?: Signal) =>
    call<{total: number; topics: api.Topic[]}>("GET", "/v1/topics", {query: {...query}, ...withSignal(signal)}),
  show: (topic: string, signal?: Signal) => call<api.Topic>("GET", path`/v1/topics/${topic}`, withSignal(signal)),
  put: (topic: string, settings: object) => call<api.Topic>("PUT", path`/v1/topics/${topic}`, {body: settings}),
  drop: (topic: string) => call<{outcome: string}>("DELETE", path`/v1/topics/${topic}`),
  pause: (topic: string) => call<api.Topic>("POST", path`/v1/topics/${topic}/pause`),
  resume: (topic: string) => call<api.Topic>("POST", path`/v1/topics/${topic}/resume`),
  probe: (topic: string) => call<api.Probe>("POST", path`/v1/topics/${topic}/test`),
  lateness: (topic: string, signal?: Signal) =>
    call<api.LatenessHistogram>("GET", path`/v1/topics/${topic}/lateness`, withSignal(signal)),
  /** Of one topic, or of all. */
  history: (topic: string | undefined, signal?: Signal) =>
    call<api.History>("GET", topic === undefined ? "/v1/history" : path`/v1/topics/${topic}/history`, withSignal(signal)),
  load: (topic: string | undefined, query: LoadQuery, signal?: Signal) =>
    call<api.Load>("GET", topic === undefined ? "/v1/load" : path`/v1/topics/${topic}/load`,
                   {query: {...query, by: topic === undefined ? "topic" : undefined}, ...withSignal(signal)}),
  deliveries: async (query: PageQuery, signal?: Signal): Promise<api.Page<api.DeliveryState>> => {
    const page = await call<{deliveries: api.DeliveryState[]; cursor?: string}>("GET", "/v1/deliveries", {query: {...query}, ...withSignal(signal)});
    return pageOf(page.deliveries, page.cursor);
  },
};

export interface ListQuery extends PageQuery {
  sort?: string;
}

const keyed = (key: string | undefined) => ({query: {key}});

export const jobs = {
  list: async (topic: string, selector: Selector, query: ListQuery, signal?: Signal): Promise<api.Page<api.Job>> => {
    const page = await call<{jobs: api.Job[]; cursor?: string}>(
      "GET", path`/v1/topics/${topic}/jobs`, {query: {...toQuery(selector), ...query}, ...withSignal(signal)});
    return pageOf(page.jobs, page.cursor);
  },
  tally: (topic: string, selector: Selector, by: string, signal?: Signal) =>
    call<api.Tally>("GET", path`/v1/topics/${topic}/tally`, {query: {...toQuery(selector), by}, ...withSignal(signal)}),
  show: (topic: string, id: string, key?: string, signal?: Signal) =>
    call<api.Job>("GET", path`/v1/topics/${topic}/jobs/${id}`, {...keyed(key), ...withSignal(signal)}),
  submit: (topic: string, job: object) =>
    call<{jobs: {id: string; outcome: string}[]}>("POST", path`/v1/topics/${topic}/jobs`, {body: job}),
  cancel: (topic: string, id: string, key?: string) =>
    call<{outcome: string}>("DELETE", path`/v1/topics/${topic}/jobs/${id}`, keyed(key)),
  amend: (topic: string, id: string, key: string | undefined, change: object) =>
    call<{outcome: string}>("PATCH", path`/v1/topics/${topic}/jobs/${id}`, {...keyed(key), body: change}),
  fire: (topic: string, id: string, key?: string) =>
    call<{outcome: string}>("POST", path`/v1/topics/${topic}/jobs/${id}/fire`, keyed(key)),
  redrive: (topic: string, id: string, key?: string) =>
    call<{outcome: string}>("POST", path`/v1/topics/${topic}/dead/${id}/redrive`, keyed(key)),
  remove: (topic: string, id: string, key?: string) =>
    call<{outcome: string}>("DELETE", path`/v1/topics/${topic}/dead/${id}`, keyed(key)),
};

export interface LeaseQuery extends PageQuery {
  holder?: string;
}

export const leases = {
  /** Of one topic, or of all. */
  list: async (topic: string | undefined, query: LeaseQuery, signal?: Signal): Promise<api.Page<api.Lease>> => {
    const where = topic === undefined ? "/v1/leases" : path`/v1/topics/${topic}/leases`;
    const page = await call<{leases: api.Lease[]; cursor?: string}>("GET", where, {query: {...query}, ...withSignal(signal)});
    return pageOf(page.leases, page.cursor);
  },
  /** The lease of this attempt, and not one that another consumer has got meanwhile. */
  revoke: (topic: string, id: string, key: string | undefined, attempt: number) =>
    call<{outcome: string}>("DELETE", path`/v1/topics/${topic}/leases/${id}`, {query: {key, attempt}}),
};

export const operations = {
  begin: (topic: string, body: api.OperateBody, signal?: Signal) =>
    call<api.Operation>("POST", path`/v1/topics/${topic}/operations`, {body, ...withSignal(signal)}),
  list: (topic: string, signal?: Signal) =>
    call<{operations: api.Operation[]}>("GET", path`/v1/topics/${topic}/operations`, withSignal(signal)),
  show: (topic: string, id: string) => call<api.Operation>("GET", path`/v1/topics/${topic}/operations/${id}`),
  stop: (topic: string, id: string) => call<{outcome: string}>("DELETE", path`/v1/topics/${topic}/operations/${id}`),
};

export const alerts = {
  list: (signal?: Signal) => call<api.Alerts>("GET", "/v1/alerts", withSignal(signal)),
};
