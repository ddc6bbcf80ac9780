// Which page is shown, and the keys that lead to them.
import type {ComponentChildren} from "preact";
import {useEffect, useLayoutEffect, useRef, useState} from "preact/hooks";
import {go, parseHash, type Route} from "./lib/route";
import {visible} from "./lib/text";
import {live} from "./live/live";
import {loadSession, type Rights, sessionStore, useRights, viewerOf} from "./live/session";
import {useStore} from "./live/store";
import {AlertsPage} from "./pages/alerts";
import {ClockPage} from "./pages/clock";
import {DeadPage} from "./pages/dead";
import {DeliveriesPage} from "./pages/deliveries";
import {JobPage} from "./pages/job";
import {JobsPage} from "./pages/jobs";
import {LeasesPage} from "./pages/leases";
import {LoginPage} from "./pages/login";
import {NoViewPage} from "./pages/no_view";
import {NodesPage} from "./pages/nodes";
import {OverviewPage} from "./pages/overview";
import {TopicPage} from "./pages/topic";
import {TopicsPage} from "./pages/topics";
import {Button, Empty, Note} from "./ui/basics";
import {Boundary} from "./ui/boundary";
import {HelpDialog, kGoKeys} from "./ui/help";
import {Shell, togglePause} from "./ui/shell";
import {Toasts} from "./ui/toast";
import {Tray} from "./ui/tray";

function pageOf({path, query}: Route, rights: Rights): ComponentChildren {
  const [first, second, third, fourth] = path;
  const isJob = first === "topics" && third === "jobs" && fourth !== undefined;
  if (!rights.observe && !isJob) return <NoViewPage />;
  switch (first) {
    case undefined: return <OverviewPage />;
    case "topics":
      if (second === undefined) return <TopicsPage query={query} />;
      if (isJob) return <JobPage key={JSON.stringify([second, fourth])} topic={second} id={fourth} jobKey={query.get("key") ?? undefined} />;
      return <TopicPage key={second} topic={second} query={query} />;
    case "jobs": return <JobsPage query={query} />;
    case "leases": return <LeasesPage query={query} />;
    case "dead": return <DeadPage query={query} />;
    case "deliveries": return <DeliveriesPage />;
    case "nodes": return <NodesPage />;
    case "alerts": return <AlertsPage />;
    case "clock": return <ClockPage />;
    default: return <Empty title="There is no such page."><a href="#/">Overview</a></Empty>;
  }
}

function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onChange = () => setHash(location.hash);
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return parseHash(hash);
}

const kNoText = new Set(["checkbox", "radio", "button", "submit", "reset"]);

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (target instanceof HTMLInputElement) return !kNoText.has(target.type);
  return target instanceof HTMLElement && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName));
}

const kGoMs = 1500;  // between `g` and the page's key

function useKeys(onHelp: () => void): void {
  useEffect(() => {
    let goAt = 0;
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const page = Date.now() - goAt < kGoMs ? kGoKeys[event.key] : undefined;
      goAt = 0;
      if (page) return go(page[0] ? [page[0]] : []);
      if (event.key === "g") goAt = Date.now();
      else if (event.key === "?") onHelp();
      else if (event.key === "p") togglePause();
      else if (event.key === "/") {
        event.preventDefault();
        document.getElementById("search")?.focus();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function Ready() {
  const route = useRoute();
  const rights = useRights();
  const [help, setHelp] = useState(false);
  useKeys(() => setHelp(true));
  useEffect(() => {
    live.start();
    return () => live.stop();
  }, []);
  const [first = ""] = route.path;
  const place = route.path.join("/");
  const arrived = useRef(false);  // the first page leaves the focus where the browser put it
  // Before the page is painted: focus that moves later would take it from whoever presses `/` as soon as the page is seen.
  useLayoutEffect(() => {
    document.title = place === "" ? "Tocsin" : `${visible(route.path.join(" / "))} – Tocsin`;
    window.scrollTo(0, 0);
    const searching = document.activeElement?.id === "search";
    if (arrived.current && !searching) document.querySelector<HTMLElement>("main h1")?.focus({preventScroll: true});
    arrived.current = true;
  }, [place]);
  return (
    <Shell page={first} onHelp={() => setHelp(true)}>
      <Boundary key={place}>{pageOf(route, rights)}</Boundary>
      <Tray />
      <Toasts />
      {help && <HelpDialog onClose={() => setHelp(false)} />}
    </Shell>
  );
}

export function App() {
  const state = useStore(sessionStore);
  useEffect(() => { void loadSession(); }, []);
  switch (state.kind) {
    case "loading": return <div class="skeleton" />;
    case "unreachable":
      return <main class="login"><div class="panel"><h1>Tocsin</h1><Note tone="bad">{state.message}</Note><Button onClick={() => void loadSession()}>Try again</Button></div></main>;
    case "login": return <LoginPage message={state.message} />;
    case "ready": return <Ready key={viewerOf(state.session)} />;
  }
}
