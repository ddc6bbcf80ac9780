// Moments: relative or absolute in the viewer's zone, and UTC on hover.
import {live} from "../live/live";
import {useNow} from "../live/clock";
import {absolute, relative, span, utc} from "../lib/time";

export function Moment({at, show = "relative"}: {at: number | null | undefined; show?: "relative" | "absolute" | "both"}) {
  const now = useNow();
  if (at === null || at === undefined) return <span class="muted">–</span>;
  const text = show === "relative" ? relative(at, now) : absolute(at);
  const date = new Date(at);
  return (
    <time class="moment" dateTime={Number.isNaN(date.getTime()) ? undefined : date.toISOString()}
          title={`${absolute(at)}\n${utc(at)}\n${relative(at, now)}`}>
      {text}
      {show === "both" && <span class="muted"> {relative(at, now)}</span>}
    </time>
  );
}

/** How long something has been so, or how long until it is. */
export function Since({at}: {at: number}) {
  useNow();
  return <span class="moment" title={`${absolute(at)}\n${utc(at)}`}>{span(Math.max(0, live.now() - at))}</span>;
}
