// The search in the head of every page: topics by name, jobs by a selector, pages.
import {useEffect, useRef, useState} from "preact/hooks";
import {topics as calls} from "../api/calls";
import {href} from "../lib/route";
import {parseText, toQuery, toText} from "../lib/selector";
import {live} from "../live/live";
import {useRights} from "../live/session";
import {kGoKeys} from "./help";
import {Icon} from "./icons";
import {Text} from "./text";

interface Hit {
  link: string;
  text: string;
  kind: string;
}

const kDelayMs = 150;
const kHits = 8;

async function find(text: string, signal: AbortSignal): Promise<Hit[]> {
  const {selector, topic, errors} = parseText(text, live.now());
  const hits: Hit[] = [];
  if (topic && errors.length === 0) hits.push({link: href(["jobs"], {topic, ...toQuery(selector)}), text: `${topic}: ${toText(selector) || "all jobs"}`, kind: "jobs"});
  const words = text.trim().split(/\s+/);
  const found = await calls.list({filter: topic ?? words[0]!, limit: kHits}, signal);
  for (const each of found.topics) {
    hits.push({link: href(["topics", each.topic]), text: each.topic, kind: "topic"});
    const rest = parseText(words.slice(1).join(" "), live.now());
    if (!topic && words.length > 1 && rest.errors.length === 0) {
      hits.push({link: href(["jobs"], {topic: each.topic, ...toQuery(rest.selector)}), text: `${each.topic}: ${toText(rest.selector)}`, kind: "jobs"});
    }
  }
  return hits;
}

function pagesFor(text: string, clock: boolean): Hit[] {
  const word = text.trim().toLowerCase();
  return Object.values(kGoKeys).filter(([page, name]) => word !== "" && name.startsWith(word) && (page !== "clock" || clock))
    .map(([page]) => ({link: href(page ? [page] : []), text: page || "overview", kind: "page"}));
}

export function Search() {
  const rights = useRights();
  const [text, setText] = useState("");
  const [hits, setHits] = useState<Hit[]>([]);
  const [at, setAt] = useState(0);
  const [open, setOpen] = useState(false);
  const input = useRef<HTMLInputElement>(null);

  useEffect(() => {
    setAt(0);
    const pages = pagesFor(text, rights.clock);
    setHits(pages);
    if (text.trim() === "") return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      find(text, abort.signal).then((found) => setHits([...pages, ...found].slice(0, 2 * kHits)), () => { if (!abort.signal.aborted) setHits(pages); });
    }, kDelayMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);

  const choose = (hit: Hit) => {
    location.hash = hit.link;
    setText("");
    setOpen(false);
    input.current?.blur();
  };
  const onKey = (event: KeyboardEvent) => {
    const move = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (move !== 0 && hits.length > 0) {
      event.preventDefault();
      setAt((at + move + hits.length) % hits.length);
    } else if (event.key === "Enter" && hits[at]) {
      choose(hits[at]);
    } else if (event.key === "Escape") {
      setText("");
      input.current?.blur();
    }
  };
  const shown = open && hits.length > 0;
  return (
    <div class="search" role="search" aria-label="Everything">
      <span class="search-field">
        <Icon name="search" />
        <input id="search" ref={input} type="text" role="combobox" aria-label="Search" aria-expanded={shown} aria-controls="hits" aria-autocomplete="list"
               aria-activedescendant={shown ? `hit-${at}` : undefined} placeholder="Search topics and jobs" autoComplete="off" spellcheck={false} value={text}
               onInput={(event) => { setText(event.currentTarget.value); setOpen(true); }} onKeyDown={onKey} onFocus={() => setOpen(true)} onBlur={() => setOpen(false)} />
        <kbd aria-hidden="true">/</kbd>
      </span>
      <ul id="hits" role="listbox" aria-label="Found" class={shown ? "hits" : "hits none"}>
        {shown && hits.map((hit, i) => (
          <li key={hit.link} id={`hit-${i}`} role="option" aria-selected={i === at} class={i === at ? "at" : ""}
              onMouseDown={(event) => { event.preventDefault(); choose(hit); }}>
            <Text value={hit.text} /><span class="muted">{hit.kind}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
