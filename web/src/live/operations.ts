// Operations that this page began: they run on the server, and are watched here until the viewer has seen their outcome.
// An action on jobs of several keys is several operations, because a selector takes one key.
import {operations as calls} from "../api/calls";
import {ApiError, messageOf} from "../api/client";
import type {OperateBody, Operation} from "../api/types";
import {live, modeStore} from "./live";
import {onSessionEnd} from "./session";
import {Store} from "./store";

export interface Watched {
  id: string;
  operation: Operation;
  rate?: number;
  confirmed?: number;         // so many jobs, and no more
  lost?: string | undefined;  // why it cannot be watched any more
}

export const watchedStore = new Store<Watched[]>([]);

const kSilenceMs = 3000;  // the stream tells of a running operation about once a second
const kAskMs = 1000;
const kEarlyMax = 50;
const heardAt = new Map<string, number>();
const early = new Map<string, Operation>();  // the stream may tell of an operation before its beginning is answered

export function isRunning({operation, lost}: Watched): boolean {
  return operation.state === "running" && !lost;
}

/** Whether it ended because more jobs match than the viewer has confirmed. */
export function foundMore({operation, confirmed}: Watched): boolean {
  return operation.state === "failed" && confirmed !== undefined && operation.matched > confirmed;
}

function update(id: string, change: Partial<Watched>): void {
  heardAt.set(id, Date.now());
  watchedStore.set(watchedStore.get().map((each) => (each.id === id ? {...each, ...change} : each)));
}

async function begin(topic: string, body: OperateBody): Promise<string> {
  const answer = await calls.begin(topic, body);
  const id = answer.id!;
  const operation = early.get(id) ?? answer;
  const {rate, matched_max: confirmed} = body;
  watchedStore.set([{id, operation, ...(rate ? {rate} : {}), ...(confirmed === undefined ? {} : {confirmed})}, ...watchedStore.get()]);
  live.version += 1;
  return id;
}

export function forget(id: string): void {
  heardAt.delete(id);
  watchedStore.set(watchedStore.get().filter((each) => each.id !== id));
}

/** Resolves when `holds` does; it looks whenever an operation has moved. */
function until(holds: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!holds()) return;
      stop();
      resolve();
    };
    const stop = watchedStore.subscribe(look);
    look();
  });
}

const runs = (id: string) => watchedStore.get().some((each) => each.id === id && isRunning(each));

const warn = (event: BeforeUnloadEvent) => event.preventDefault();

/** Begins all of them: at once as far as the server lets so many run, and one after the other if a rate holds for all together.
    The page has to stay open until the last has begun, and the browser asks before it closes it. */
export async function beginAll(topic: string, bodies: OperateBody[], onBegun: (id: string) => void): Promise<void> {
  const begun: string[] = [];
  const one = async (body: OperateBody): Promise<string> => {
    for (;;) {
      try {
        return await begin(topic, body);
      } catch (error) {
        const mine = begun.filter(runs);
        if (!(error instanceof ApiError && error.code === "overloaded") || mine.length === 0) throw error;
        await until(() => !mine.every(runs));
      }
    }
  };
  if (bodies.length > 1) addEventListener("beforeunload", warn);
  try {
    for (const body of bodies) {
      if (body.rate) await until(() => !begun.some(runs));
      begun.push(await one(body));
      onBegun(begun[begun.length - 1]!);
    }
  } finally {
    removeEventListener("beforeunload", warn);
  }
}

live.onOperation((operation) => {
  const {id} = operation;
  if (id === undefined) return;
  if (watchedStore.get().some((each) => each.id === id)) return update(id, {operation, lost: undefined});
  early.delete(id);
  early.set(id, operation);
  if (early.size > kEarlyMax) early.delete(early.keys().next().value!);
});

onSessionEnd(() => {
  heardAt.clear();
  early.clear();
  watchedStore.set([]);
});

/** Why an operation cannot be watched any more; nothing if another try may succeed. */
function whyLost(error: unknown): string | undefined {
  if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 403)) return undefined;
  if (error.status === 403) return messageOf(error);
  if (error.code === "topic_not_found") return "The topic was dropped, and its operations with it.";
  return "The server that answers does not know the operation: it was started again, which ends an operation, or it is another node of the cluster. "
    + "What was changed stays changed.";
}

/** What the stream does not tell of is asked for, also if the page is paused: the viewer's own action goes on. */
async function askAgain(): Promise<void> {
  for (const each of watchedStore.get()) {
    const {id, operation} = each;
    if (!isRunning(each)) continue;
    if (modeStore.get() === "live" && Date.now() - (heardAt.get(id) ?? 0) < kSilenceMs) continue;
    try {
      update(id, {operation: await calls.show(operation.topic, id)});
    } catch (error) {
      const lost = whyLost(error);
      if (lost) update(id, {lost});
    }
  }
}

let asking = false;

setInterval(() => {
  if (asking) return;
  asking = true;
  void askAgain().finally(() => (asking = false));
}, kAskMs);
