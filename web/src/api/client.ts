// Calls of the API: same origin, exact numbers, errors with their code and field.
import {parseExact, stringifyExact} from "../lib/json";

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly field?: string) {
    super(message);
  }
}

/** Where the API begins: a proxy may serve everything below a path. */
export const kBase = location.pathname.replace(/\/ui(\/.*)?$/, "");

type QueryValue = string | number | boolean | undefined;

export interface CallOptions {
  query?: Record<string, QueryValue>;
  body?: unknown;
  signal?: AbortSignal;
}

const unauthenticated = new Set<() => void>();

/** Calls `listener` whenever an answer says that the session is over. */
export function onUnauthenticated(listener: () => void): () => void {
  unauthenticated.add(listener);
  return () => unauthenticated.delete(listener);
}

export function addressOf(path: string, query: Record<string, QueryValue> = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return kBase + path + (text ? "?" + text : "");
}

/** A path of the API: names in it are encoded. */
export function path(parts: TemplateStringsArray, ...names: string[]): string {
  return parts.reduce((whole, part, i) => whole + encodeURIComponent(names[i - 1]!) + part);
}

const kOffline = "the server does not answer";

/** Whether no answer came: what was asked for may have happened or not. */
export function isOffline(error: unknown): boolean {
  return !(error instanceof ApiError) || error.code === "offline";
}

export async function call<T>(method: string, where: string, options: CallOptions = {}): Promise<T> {
  const init: RequestInit = {method, credentials: "same-origin", cache: "no-store"};
  if (options.signal) init.signal = options.signal;
  if (options.body !== undefined) {
    init.body = stringifyExact(options.body);
    init.headers = {"Content-Type": "application/json"};
  }
  let response: Response;
  let text: string;
  try {
    response = await fetch(addressOf(where, options.query), init);
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, "offline", kOffline);
  }
  if (response.ok) return parseExact(text) as T;
  throw errorOf(response.status, text);
}

function errorOf(status: number, text: string): ApiError {
  if (status === 401) for (const listener of unauthenticated) listener();
  try {
    const {error} = JSON.parse(text) as {error: {code: string; message: string; field?: string}};
    return new ApiError(status, error.code, error.message, error.field);
  } catch {
    return new ApiError(status, "offline", status === 502 || status === 504 ? kOffline : `the server answered ${status}`);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
