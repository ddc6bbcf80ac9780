// What an action on many jobs needs to be told.
import type {Action, OperateBody} from "../api/types";
import {inputMoment, parseSpan, readInput} from "../lib/time";
import {live} from "../live/live";
import {Input, Segments} from "./fields";

export type Mode = "shift" | "move" | "spread";

export interface Draft {
  mode: Mode;
  shift: string;
  to: string;
  at: number;  // what `to` showed at first, to the millisecond
  over: string;
  attempts: string;
  rate: string;
}

export function emptyDraft(mode: Mode = "shift", at = live.now() + 3_600_000): Draft {
  return {mode, shift: "+1h", to: inputMoment(at), at, over: "1h", attempts: "16", rate: ""};
}

type Told = Pick<OperateBody, "shift_ms" | "to_ms" | "over_ms" | "max_attempts" | "rate">;

/** The fields of the call, or what is wrong with which field. */
export function readDraft(action: Action, draft: Draft): {body: Told} | {wrong: keyof Draft; why: string} {
  const body: Told = {};
  if (action === "reschedule" && draft.mode === "shift") {
    const shift = parseSpan(draft.shift);
    if (shift === null || shift === 0) return {wrong: "shift", why: "a time such as 30m, +2h or -1d"};
    body.shift_ms = shift;
  } else if (action === "reschedule") {
    const to = readInput(draft.to, draft.at);
    if (to === null) return {wrong: "to", why: "a time such as 2026-11-18 14:00 or now+1h"};
    body.to_ms = to;
    if (draft.mode === "spread") {
      const over = parseSpan(draft.over);
      if (over === null || over <= 0) return {wrong: "over", why: "a time such as 10m or 2h"};
      body.over_ms = over;
    }
  }
  if (action === "attempts") {
    if (!/^\d+$/.test(draft.attempts) || Number(draft.attempts) < 1 || Number(draft.attempts) > 1000) {
      return {wrong: "attempts", why: "a number from 1 to 1000"};
    }
    body.max_attempts = Number(draft.attempts);
  }
  if (draft.rate.trim() !== "") {
    const rate = Number(draft.rate.replace(/[\s,_]/g, ""));
    if (!Number.isInteger(rate) || rate < 1 || rate > 1_000_000) return {wrong: "rate", why: "a number from 1 to 1,000,000"};
    body.rate = rate;
  }
  return {body};
}

const kAbout: Record<Action, string> = {
  cancel: "Scheduled jobs that match are cancelled: they are never delivered. Jobs that a consumer has stay.",
  reschedule: "Scheduled jobs that match get another due time. No job is moved twice.",
  redrive: "Dead letters that match become due again, with all their attempts.",
  purge: "Scheduled jobs and dead letters that match are removed for good.",
  fire: "Scheduled jobs that match become due now, whatever they wait for.",
  attempts: "Jobs that match get another number of attempts.",
};

interface Props {
  action: Action;
  draft: Draft;
  onChange: (draft: Draft) => void;
  wrong: {wrong: keyof Draft; why: string} | null;
}

export function OperateForm({action, draft, onChange, wrong}: Props) {
  const set = (name: keyof Draft) => (value: string) => onChange({...draft, [name]: value});
  const errorOf = (name: keyof Draft) => (wrong?.wrong === name ? wrong.why : undefined);
  return (
    <>
      <p class="muted">{kAbout[action]}</p>
      {action === "reschedule" && (
        <Segments label="How" value={draft.mode} onChange={set("mode")}
                  options={[["shift", "Shift"], ["move", "Move to a time"], ["spread", "Spread evenly"]]} />
      )}
      <div class="form-row">
        {action === "reschedule" && draft.mode === "shift" && (
          <Input label="Shift by" name="shift" value={draft.shift} onInput={set("shift")} error={errorOf("shift")}
                 help="later: 30m, +2h; earlier: -1d" mono />
        )}
        {action === "reschedule" && draft.mode !== "shift" && (
          <Input label={draft.mode === "move" ? "New due time" : "From"} name="to" type="datetime-local" step="1" value={draft.to}
                 onInput={set("to")} error={errorOf("to")} help="in your zone" />
        )}
        {action === "reschedule" && draft.mode === "spread" && (
          <Input label="Over" name="over" value={draft.over} onInput={set("over")} error={errorOf("over")} help="10m, 2h" mono />
        )}
        {action === "attempts" && (
          <Input label="Attempts" name="attempts" value={draft.attempts} onInput={set("attempts")} error={errorOf("attempts")} mono />
        )}
        <Input label="Jobs a second, at most" name="rate" value={draft.rate} onInput={set("rate")} error={errorOf("rate")}
               placeholder="no limit" help="spares the consumers" mono />
      </div>
    </>
  );
}
