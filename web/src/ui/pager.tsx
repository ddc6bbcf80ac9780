// From page to page of a list that goes on from a cursor.
import {useState} from "preact/hooks";
import {ApiError} from "../api/client";
import {runStore} from "../live/live";
import {useStore} from "../live/store";
import {Button, Empty} from "./basics";

interface Cursors {
  cursors: string[];           // of the pages up to this one
  cursor: string | undefined;  // of this one
  setCursors: (cursors: string[]) => void;
  startOver: (error: unknown) => void;  // if the error says that the cursor is not known
}

/** A cursor belongs to one run of the server: after a restart, or at another node of a cluster, the list begins again. */
export function useCursors(): Cursors {
  const run = useStore(runStore);
  const [held, setHeld] = useState({run, cursors: [] as string[]});
  const cursors = held.run === run ? held.cursors : [];
  const setCursors = (next: string[]) => setHeld({run, cursors: next});
  const startOver = (error: unknown) => {
    if (cursors.length > 0 && error instanceof ApiError && error.status === 400 && error.field === "cursor") setCursors([]);
  };
  return {cursors, cursor: cursors[cursors.length - 1], setCursors, startOver};
}

interface Props {
  cursors: string[];  // of the pages up to this one
  next: string | undefined;
  onChange: (cursors: string[]) => void;
}

export function CursorPager({cursors, next, onChange}: Props) {
  if (cursors.length === 0 && !next) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button disabled={cursors.length === 0} onClick={() => onChange(cursors.slice(0, -1))}>Previous</Button>
      <span class="muted">page {cursors.length + 1}</span>
      <Button disabled={!next} onClick={() => onChange([...cursors, next!])}>Next</Button>
    </nav>
  );
}

/** In place of a table without rows, if more of the list follows. */
export function LookOn({onClick}: {onClick: () => void}) {
  return <Empty title="None among those that were looked at so far."><Button onClick={onClick}>Look on</Button></Empty>;
}
