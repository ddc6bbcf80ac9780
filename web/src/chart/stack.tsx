// Jobs by the time they are due, as stacked bars. A range can be dragged, or chosen with the arrow keys.
import {useRef, useState} from "preact/hooks";
import {compact, count} from "../lib/format";
import {absolute, clock} from "../lib/time";
import {type Area, drawAxes, type Pen, useCanvas} from "./canvas";
import {stepsPerBar} from "./scale";
import {Text} from "../ui/text";

export interface Series {
  name: string;
  colour: string;  // of the style sheet
  values: number[];
}

export interface Range {
  from: number;
  to: number;
}

interface Props {
  from: number;
  step: number;
  series: Series[];
  height?: number;
  label: string;
  range: Range | null;
  onRange: (range: Range | null) => void;
}

const kBarMin = 2.2;  // pixels

function sums(values: number[], per: number, bars: number): number[] {
  const result = new Array<number>(bars).fill(0);
  values.forEach((value, i) => (result[Math.floor(i / per)]! += value));
  return result;
}

export function StackChart({from, step, series, height = 220, label, range, onRange}: Props) {
  const steps = series[0]?.values.length ?? 0;
  const layout = useRef<{area: Area; per: number; bars: number; stacks: number[][]} | null>(null);
  const [dragged, setDragged] = useState<number | null>(null);
  const [hover, setHover] = useState<number | null>(null);
  const to = from + steps * step;

  const draw = (pen: Pen) => {
    const per = stepsPerBar(steps, (pen.width - 50) / kBarMin);
    const bars = Math.ceil(steps / per);
    const stacks = series.map(({values}) => sums(values, per, bars));
    const totals = Array.from({length: bars}, (_, i) => stacks.reduce((sum, stack) => sum + stack[i]!, 0));
    const {area, top} = drawAxes(pen, {from, to, max: Math.max(0, ...totals), format: compact});
    layout.current = {area, per, bars, stacks};
    drawBars(pen, area, top, stacks, series);
    if (range) drawRange(pen, area, (range.from - from) / (to - from), (range.to - from) / (to - from));
  };
  const {canvas, width} = useCanvas(height, draw);

  const barAt = (x: number): number => {
    const {area, bars} = layout.current!;
    return Math.max(0, Math.min(bars - 1, Math.floor(((x - area.left) / area.width) * bars)));
  };
  const choose = (a: number, b: number) => {
    const {per} = layout.current!;
    const end = Math.min(steps, (Math.max(a, b) + 1) * per);
    onRange({from: from + Math.min(a, b) * per * step, to: from + end * step});
  };
  const onPointer = (event: PointerEvent, kind: "down" | "move" | "up") => {
    if (!layout.current || !canvas.current) return;
    const bar = barAt(event.clientX - canvas.current.getBoundingClientRect().left);
    setHover(bar);
    if (kind === "down") {
      canvas.current.setPointerCapture(event.pointerId);
      setDragged(bar);
      choose(bar, bar);
    } else if (dragged !== null) {
      choose(dragged, bar);
      if (kind === "up") setDragged(null);
    }
  };
  const onKey = (event: KeyboardEvent) => {
    if (!layout.current) return;
    if (event.key === "Escape") return onRange(null);
    const move = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (move === 0) return;
    event.preventDefault();
    const size = layout.current.per * step;
    const first = range ? Math.floor((range.from - from) / size) : -1;
    const last = range ? Math.ceil((range.to - from) / size) - 1 : -1;
    const bound = (bar: number) => Math.max(0, Math.min(layout.current!.bars - 1, bar));
    if (event.shiftKey && range) choose(first, Math.max(first, bound(last + move)));
    else choose(bound(first + move), bound(first + move));
  };

  return (
    <div class="chart" role="application" aria-label={`${label}. Arrow keys choose a time, with Shift a range.`} tabIndex={0} onKeyDown={onKey}>
      <canvas ref={canvas} onPointerDown={(event) => onPointer(event, "down")} onPointerMove={(event) => onPointer(event, "move")}
              onPointerUp={(event) => onPointer(event, "up")} onPointerCancel={() => setDragged(null)} onPointerLeave={() => setHover(null)} />
      {hover !== null && layout.current && (
        <Tip bar={hover} layout={layout.current} from={from} step={step} series={series} width={width} />
      )}
    </div>
  );
}

function drawBars({context, colour}: Pen, area: Area, top: number, stacks: number[][], series: Series[]): void {
  const bars = stacks[0]?.length ?? 0;
  const pitch = area.width / bars;
  const gap = pitch > 6 ? 1 : pitch > 4 ? 0.5 : 0;
  const base = new Array<number>(bars).fill(0);
  stacks.forEach((stack, s) => {
    context.fillStyle = colour(series[s]!.colour);
    for (let i = 0; i < bars; ++i) {
      if (stack[i] === 0) continue;
      const below = base[i]!;
      base[i] = below + stack[i]!;
      const y = area.top + area.height * (1 - base[i]! / top);
      const tall = Math.max(s === 0 ? 1 : 0.5, (area.height * stack[i]!) / top);
      context.fillRect(area.left + i * pitch, y, Math.max(1, pitch - gap), tall);
    }
  });
}

function drawRange({context, colour}: Pen, area: Area, from: number, to: number): void {
  const left = area.left + area.width * Math.max(0, from);
  const right = area.left + area.width * Math.min(1, to);
  if (right <= left) return;
  context.globalAlpha = 0.16;
  context.fillStyle = colour("accent");
  context.fillRect(left, area.top, right - left, area.height);
  context.globalAlpha = 1;
  for (const x of [left, right]) context.fillRect(Math.round(x) - 0.5, area.top, 1.5, area.height);
}

interface TipProps {
  bar: number;
  layout: {area: Area; per: number; bars: number; stacks: number[][]};
  from: number;
  step: number;
  series: Series[];
  width: number;
}

function Tip({bar, layout, from, step, series, width}: TipProps) {
  const {area, per, bars, stacks} = layout;
  const at = from + bar * per * step;
  const rows = series.map(({name, colour}, i) => ({name, colour, value: stacks[i]?.[bar] ?? 0})).filter(({value}) => value > 0);
  const total = rows.reduce((sum, {value}) => sum + value, 0);
  const x = area.left + ((bar + 0.5) * area.width) / bars;
  const side = x > width / 2 ? "left" : "right";
  return (
    <div class={`tip ${side}`} style={{left: `${x}px`}}>
      <strong>{absolute(at).slice(0, -3)} – {clock(at + per * step, false)}</strong>
      <div class="tip-row"><span>jobs due</span><span>{count(total)}</span></div>
      {series.length > 1 && rows.slice(0, 8).map(({name, colour, value}) => (
        <div class="tip-row" key={name}><span><i class={`dot ${colour}`} /> <Text value={name} /></span><span>{count(value)}</span></div>
      ))}
    </div>
  );
}
