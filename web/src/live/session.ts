// Who the viewer is, and what they may do. The server decides; this only says which buttons are worth showing.
import {session as calls} from "../api/calls";
import {isOffline, messageOf, onUnauthenticated} from "../api/client";
import type {Session} from "../api/types";
import {Store, useStore} from "./store";

export type SessionState =
  | {kind: "loading"}
  | {kind: "unreachable"; message: string}
  | {kind: "login"; message?: string}
  | {kind: "ready"; session: Session};

export const sessionStore = new Store<SessionState>({kind: "loading"});

/** Whether the server has answered. */
export async function loadSession(signal?: AbortSignal): Promise<boolean> {
  try {
    const session = await calls.show(signal);
    if (sessionStore.get().kind !== "login") sessionStore.set({kind: "ready", session});  // or the viewer has logged out meanwhile
    return true;
  } catch (error) {
    const {kind} = sessionStore.get();  // "login" after a 401: onUnauthenticated below
    if (kind === "loading" || kind === "unreachable") sessionStore.set({kind: "unreachable", message: messageOf(error)});
    return !isOffline(error);
  }
}

export async function login(token: string): Promise<void> {
  sessionStore.set({kind: "ready", session: await calls.begin(token)});
}

/** Calls `forget` when the session is over: the next viewer may be another one. */
export function onSessionEnd(forget: () => void): void {
  sessionStore.subscribe(() => {
    if (sessionStore.get().kind === "login") forget();
  });
}

export async function logout(): Promise<void> {
  await calls.end();
  sessionStore.set({kind: "login", message: "You are logged out."});
}

onUnauthenticated(() => {
  const before = sessionStore.get();
  if (before.kind === "login") return;
  const ended = "The session is over: its access token was revoked or has changed.";
  sessionStore.set(before.kind === "ready" ? {kind: "login", message: ended} : {kind: "login"});
});

export interface Rights {
  observe: boolean;   // lists, figures and events; without it, only jobs that are named
  submit: boolean;
  admin: boolean;
  node: boolean;      // figures, nodes and the history of the whole node
  clock: boolean;
  payloads: boolean;  // of the jobs of lists, and to search in
  payload: boolean;   // of a job that is named
}

export function rightsOf(session: Session): Rights {
  const has = (scope: string) => session.scopes.includes(scope) || session.scopes.includes("admin");
  const everywhere = session.prefix === "";
  return {
    observe: has("observe"),
    submit: has("submit"),
    admin: has("admin"),
    node: everywhere && has("observe"),
    clock: everywhere && has("admin") && session.clock === "virtual",
    payloads: has("consume"),
    payload: has("consume") || has("submit"),
  };
}

/** What a page may show and do follows from this: it is another page if this changes. */
export function viewerOf(session: Session): string {
  return JSON.stringify([rightsOf(session), session.prefix]);
}

const kNobody: Session = {name: "", scopes: [], prefix: "", authentication: true, clock: "real", version: "", now_ms: 0};

export function useSession(): Session {
  const state = useStore(sessionStore);
  return state.kind === "ready" ? state.session : kNobody;
}

export function useRights(): Rights {
  return rightsOf(useSession());
}
