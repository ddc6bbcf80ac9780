// What happens on the server, as it happens: one stream of server-sent events, and polling while there is none.
//
// `version` rises whenever something changed that a page may show; pages look at it before they load again, so an idle
// server is left alone. Paused means that nothing at all is asked for.
import {node, session as sessionCalls} from "../api/calls";
import {addressOf, ApiError} from "../api/client";
import type {FiguresEvent, Operation, Stats} from "../api/types";
import {parseExact, stringifyExact} from "../lib/json";
import {loadSession, rightsOf, sessionStore} from "./session";
import {Store} from "./store";

export type Mode = "connecting" | "live" | "polling" | "paused" | "offline";

const kPollMs = 2000;
const kPollWaitMs = 5000;
const kSilenceMs = 6000;       // a new stream begins with an event, and figures come each second
const kQuietMs = 45_000;        // without figures nothing may come for long: a new stream shows whether the server is there
const kStreamAgainMs = 15_000;  // after a stream was refused or stayed silent
const kHiddenMs = 30_000;       // a tab that is hidden for so long needs no stream
const kKinds = ["figures", "topic_changed", "topic_dropped", "operation", "alert", "node", "log"];

export const modeStore = new Store<Mode>("connecting");
export const figuresStore = new Store<FiguresEvent | null>(null);
/** Rises when the server was started again: it knows no cursor that it gave before. */
export const runStore = new Store(0);
/** Rises each second while not paused: relative times count on. */
export const tickStore = new Store(0);

/** Aborts then. AbortSignal.timeout is younger than some browsers that the dashboard is built for. */
function within(ms: number): AbortSignal {
  const abort = new AbortController();
  setTimeout(() => abort.abort(), ms);
  return abort.signal;
}

type OperationListener = (operation: Operation) => void;

class Live {
  changedAt = 0;  // when `version` rose last
  private count = 0;
  private source: EventSource | null = null;
  private spoke = false;  // whether an event came from `source`
  private cut = false;    // the stream was cut, and none has opened since
  private topics: string[] = [];
  private poll: number | undefined;
  private asking = false;
  private streamAgain: number | undefined;
  private heardAt = 0;
  private started = false;
  private hiding: number | undefined;
  private offset = 0;  // the server's clock minus this one
  private frozen: number | null = null;  // the time of a virtual clock
  private readonly operationListeners = new Set<OperationListener>();

  constructor() {
    setInterval(() => this.tick(), 1000);
    sessionStore.subscribe(() => {
      const state = sessionStore.get();
      if (state.kind === "ready") this.noteTime(state.session.now_ms);
    });
    document.addEventListener("visibilitychange", () => this.onVisibility());
    addEventListener("pagehide", () => this.suspend());  // the browser may keep the page, to come back to it
    addEventListener("pageshow", () => this.onVisibility());
  }

  get version(): number {
    return this.count;
  }

  set version(next: number) {
    this.count = next;
    this.changedAt = Date.now();
  }

  /** The server's time. */
  now(): number {
    return this.frozen ?? Date.now() + this.offset;
  }

  start(): void {
    this.started = true;
    if (modeStore.get() === "paused") return;
    this.open();
    if (this.seesFigures()) void this.ask();  // the stream's first figures come after a second
  }

  stop(): void {
    this.started = false;
    this.suspend();
    modeStore.set("connecting");  // the next viewer has not paused
    figuresStore.set(null);       // and may see less
  }

  pause(): void {
    this.close();
    modeStore.set("paused");
  }

  resume(): void {
    modeStore.set("connecting");
    this.version += 1;
    this.open();
    void loadSession();  // the rights may have changed meanwhile
  }

  /** The stream tells of these topics each second as well. */
  focus(topics: string[]): void {
    if (topics.join("\n") === this.topics.join("\n")) return;
    this.topics = topics;
    if (this.source) this.open();
  }

  onOperation(listener: OperationListener): () => void {
    this.operationListeners.add(listener);
    return () => this.operationListeners.delete(listener);
  }

  noteTime(now_ms: number): void {
    const state = sessionStore.get();
    const isVirtual = state.kind === "ready" && state.session.clock === "virtual";
    this.frozen = isVirtual ? now_ms : null;
    this.offset = now_ms - Date.now();
  }

  /** Without a connection until somebody looks again. */
  private suspend(): void {
    clearTimeout(this.hiding);
    this.close();
    if (modeStore.get() !== "paused") modeStore.set("connecting");
  }

  /** A browser opens six connections to a server, for all its tabs: one that nobody sees must not keep one. */
  private onVisibility(): void {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = window.setTimeout(() => this.suspend(), kHiddenMs);
    else if (this.started && modeStore.get() !== "paused" && !this.source && this.poll === undefined) this.resume();
  }

  private close(): void {
    this.closeStream();
    this.stopPolling();
  }

  private closeStream(): void {
    this.source?.close();
    this.source = null;
    clearTimeout(this.streamAgain);
  }

  private stopPolling(): void {
    clearInterval(this.poll);
    this.poll = undefined;
  }

  /** Polling, if there is any, goes on until the stream speaks. */
  private open(): void {
    this.closeStream();
    if (!this.mayListen()) return this.startPolling();
    // Who gets no figures hears of the topics instead: nothing else tells that jobs have come or gone.
    const kinds = this.topics.length || !this.seesFigures() ? [...kKinds, "topic"] : kKinds;
    const source = new EventSource(addressOf("/v1/events", {kinds: kinds.join(","), topics: this.topics.join(",")}));
    this.source = source;
    this.spoke = false;
    this.heardAt = Date.now();
    const on = (kind: string, take: (event: unknown) => void) => source.addEventListener(kind, (event) => {
      this.hear();
      take(parseExact((event as MessageEvent<string>).data));
    });
    on("figures", (event) => this.takeFigures(event as FiguresEvent));
    on("operation", (event) => {
      for (const listener of this.operationListeners) listener(event as Operation);
      this.version += 1;
    });
    on("reset", (event) => {
      const {reason, now_ms} = event as {reason: string; now_ms: number};
      this.noteTime(now_ms);
      this.version += 1;
      if (reason !== "unknown") return;
      runStore.set(runStore.get() + 1);
      void loadSession();  // its version may have changed
    });
    for (const kind of ["topic", "topic_changed", "topic_dropped", "alert", "node", "log"]) on(kind, () => (this.version += 1));
    // A new stream says "reset" at once. One that goes on where it was says nothing, and a proxy may let only the head through.
    source.onopen = () => { if (this.spoke) this.hear(); };
    source.onerror = () => this.onStreamError(source);
  }

  private hear(): void {
    this.spoke = true;
    this.cut = false;
    this.heardAt = Date.now();
    this.stopPolling();
    modeStore.set("live");
  }

  private onStreamError(source: EventSource): void {
    if (source !== this.source) return;
    if (source.readyState === EventSource.CLOSED) this.fallBack();
    else if (this.poll === undefined) void this.onCut(source);
  }

  /** The browser tries again by itself. Meanwhile the session tells whether the server is there, and whether the viewer's
      rights are still the same: if not, the server has ended the stream. */
  private async onCut(source: EventSource): Promise<void> {
    const again = this.cut;
    this.cut = true;
    const answers = await loadSession(within(kPollWaitMs));
    if (source !== this.source || source.readyState === EventSource.OPEN || this.poll !== undefined) return;
    if (!answers) {
      modeStore.set("offline");
    } else if (modeStore.get() === "offline") {
      modeStore.set("connecting");
      this.open();  // the browser may wait longer before it tries
    } else if (again) {
      this.fallBack();
    }
  }

  /** Polls, and tries the stream again after a while. */
  private fallBack(): void {
    this.closeStream();
    void loadSession();  // a session that is over becomes the login page
    this.startPolling();
    this.streamAgain = window.setTimeout(() => this.open(), kStreamAgainMs);
  }

  private startPolling(): void {
    if (this.poll !== undefined) return;
    this.poll = window.setInterval(() => void this.ask(), kPollMs);
    void this.ask();
  }

  private mayListen(): boolean {
    const state = sessionStore.get();
    return state.kind === "ready" && rightsOf(state.session).observe;
  }

  private seesFigures(): boolean {
    const state = sessionStore.get();
    return state.kind === "ready" && rightsOf(state.session).node;
  }

  private async ask(): Promise<void> {
    if (sessionStore.get().kind !== "ready" || document.hidden || this.asking) return;
    this.asking = true;
    const signal = within(kPollWaitMs);
    try {
      if (this.seesFigures()) {
        const stats = await node.stats(signal);
        if (this.seesFigures()) this.takeStats(stats);
      } else {
        await sessionCalls.show(signal);
        this.version += 1;
      }
      if (this.poll !== undefined) this.onPolled();
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) void loadSession();  // the rights have changed
      else if (this.poll !== undefined) modeStore.set("offline");
    }
    this.asking = false;
  }

  private onPolled(): void {
    const wasOffline = modeStore.get() === "offline";
    modeStore.set("polling");
    if (wasOffline) this.open();
  }

  private takeFigures(figures: FiguresEvent): void {
    this.noteTime(figures.now_ms);
    const before = figuresStore.get();
    if (!before || stringifyExact(before.totals) !== stringifyExact(figures.totals)) this.version += 1;
    figuresStore.set(figures);
  }

  /** The event that the stream would have sent, as far as it is known. */
  private takeStats(stats: Stats): void {
    const before = figuresStore.get();
    const seconds = before ? Math.max(0.001, (stats.now_ms - before.now_ms) / 1000) : 1;
    const perSecond = (name: keyof FiguresEvent["rates"]) =>
      before ? Math.max(0, Number(stats.totals[name]) - Number(before.totals[name])) / seconds : 0;
    this.takeFigures({
      now_ms: stats.now_ms, seconds, topics: stats.topics, totals: stats.totals, conservation: stats.conservation,
      rates: {accepted: perSecond("accepted"), delivered: perSecond("delivered"), acked: perSecond("acked"),
              nacked: perSecond("nacked"), expired: perSecond("expired"), died: perSecond("died")},
      lateness_ms: null, oldest_age_ms: null,
    });
  }

  private tick(): void {
    if (modeStore.get() === "paused") return;
    tickStore.set(tickStore.get() + 1);
    const state = sessionStore.get();
    if (!this.source || state.kind !== "ready") return;
    const silent = Date.now() - this.heardAt;
    const hearsEachSecond = this.seesFigures();
    if (!this.spoke && silent > kSilenceMs) {
      this.fallBack();
    } else if (this.spoke && silent > (hearsEachSecond ? kSilenceMs : kQuietMs)) {
      if (hearsEachSecond) modeStore.set("offline");
      this.open();  // the connection may be gone without a word
    }
  }
}

export const live = new Live();
