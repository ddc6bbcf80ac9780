// What surrounds every page: the ways to the others, the search, and whether what is shown is live.
import type {ComponentChildren} from "preact";
import {useEffect, useState} from "preact/hooks";
import {messageOf} from "../api/client";
import {href} from "../lib/route";
import {visible} from "../lib/text";
import {useNow} from "../live/clock";
import {figuresStore, live, type Mode, modeStore} from "../live/live";
import {logout, useRights, useSession} from "../live/session";
import {useStore} from "../live/store";
import {nextTheme, themeStore} from "../live/theme";
import {absolute, clock, utc} from "../lib/time";
import {compact} from "../lib/format";
import {Button} from "./basics";
import {Icon, type IconName} from "./icons";
import {Search} from "./search";
import {Text} from "./text";
import {toast} from "./toast";

const kPages: [string, string, IconName][] = [
  ["", "Overview", "overview"], ["topics", "Topics", "topics"], ["jobs", "Jobs", "jobs"], ["leases", "Leases", "leases"], ["dead", "Dead letters", "dead"],
  ["deliveries", "Deliveries", "deliveries"], ["nodes", "Nodes", "nodes"], ["alerts", "Alerts", "alerts"], ["clock", "Clock", "clock"],
];

interface Props {
  page: string;
  onHelp: () => void;
  children: ComponentChildren;
}

export function Shell({page, onHelp, children}: Props) {
  const rights = useRights();
  const [menu, setMenu] = useState(false);
  useEffect(() => setMenu(false), [page]);
  return (
    <div class={`shell ${menu ? "menu-open" : ""}`}>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>Skip to the content</a>
      <header class="top">
        <span class="only-narrow"><Button icon="menu" label="Menu" kind="quiet" pressed={menu} onClick={() => setMenu(!menu)} /></span>
        <a class="brand" href={href([])} aria-label="Tocsin, overview"><img src="favicon.svg" width="22" height="22" alt="" /><span>Tocsin</span></a>
        {rights.observe && <Search />}
        <div class="top-right">
          <LiveState />
          <ThemeButton />
          <span class="only-wide"><Button icon="help" label="Keyboard" kind="quiet" onClick={onHelp} /></span>
          <Account />
        </div>
      </header>
      <nav class="side" aria-label="Pages"><Pages page={page} /></nav>
      <main id="content" tabIndex={-1}>
        <OfflineBanner />
        {children}
      </main>
    </div>
  );
}

function Pages({page}: {page: string}) {
  const rights = useRights();
  const figures = useStore(figuresStore);
  const dead = Number(figures?.totals.dead ?? 0);
  return (
    <ul>
      {kPages.filter(([path]) => (path === "clock" ? rights.clock : rights.observe)).map(([path, name, icon]) => (
        <li key={path}>
          <a href={href(path ? [path] : [])} aria-current={path === page ? "page" : undefined}>
            <Icon name={icon} /><span>{name}</span>
            {path === "dead" && dead > 0 && <span class="count">{compact(dead)}</span>}
          </a>
        </li>
      ))}
    </ul>
  );
}

const kModes: Record<Mode, [string, string]> = {
  connecting: ["connecting", "plain"], live: ["live", "good"], polling: ["every 2 s", "warn"], paused: ["paused", "warn"], offline: ["offline", "bad"],
};

function LiveState() {
  const mode = useStore(modeStore);
  const now = useNow();
  const [text, tone] = kModes[mode];
  const paused = mode === "paused";
  return (
    <div class="live">
      <span class={`live-state ${tone}`} role="status" aria-live="polite" data-mode={mode}><i class="pulse" />{text}</span>
      <span class="server-time only-wide" title={`The server's time\n${absolute(now)}\n${utc(now)}`}>{clock(now)}</span>
      <Button id="pause" icon={paused ? "play" : "pause"} label={paused ? "Go on" : "Pause"} kind="quiet" pressed={paused} onClick={togglePause} />
    </div>
  );
}

export function togglePause(): void {
  if (modeStore.get() === "paused") live.resume();
  else live.pause();
}

const kThemeIcons = {auto: "auto", light: "sun", dark: "moon"} as const;

function ThemeButton() {
  const theme = useStore(themeStore);
  return <Button id="theme" icon={kThemeIcons[theme]} label={`Colours: ${theme === "auto" ? "as the system" : theme}`} kind="quiet" onClick={nextTheme} />;
}

function Account() {
  const {authentication, name, scopes, prefix} = useSession();
  if (!authentication) return null;
  return (
    <div class="account">
      <span class="only-wide" title={visible(`${scopes.join(", ")}${prefix ? `, topics that begin with ${prefix}` : ""}`)}><Text value={name} /></span>
      <Button id="logout" icon="logout" label="Log out" kind="quiet" onClick={() => void logout().catch((error: unknown) => toast(`You are still logged in: ${messageOf(error)}`, "bad"))} />
    </div>
  );
}

function OfflineBanner() {
  const mode = useStore(modeStore);
  if (mode !== "offline") return null;
  return <div class="note bad banner" role="alert">The server does not answer. What is shown is what it last said; this page goes on by itself when it is back.</div>;
}
