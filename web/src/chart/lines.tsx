// Figures over time as lines.
import {useRef, useState} from "preact/hooks";
import {clock} from "../lib/time";
import {type Area, drawAxes, type Pen, useCanvas} from "./canvas";

export interface Line {
  name: string;
  colour: string;  // of the style sheet
  values: (number | null)[];
  fill?: boolean;
}

interface Props {
  at: number[];
  lines: Line[];
  format: (value: number) => string;
  label: string;
  height?: number;
}

export function LineChart({at, lines, format, label, height = 170}: Props) {
  const area = useRef<Area>(null);
  const [hover, setHover] = useState<number | null>(null);
  const from = at[0] ?? 0;
  const to = Math.max(from + 1, at[at.length - 1] ?? 1);

  const draw = (pen: Pen) => {
    const all = lines.flatMap(({values}) => values.filter((value) => value !== null));
    const axes = drawAxes(pen, {from, to, max: all.reduce((most, value) => Math.max(most, value), 0), format});
    area.current = axes.area;
    for (const line of lines) drawLine(pen, axes.area, axes.top, at, line, from, to);
    if (hover !== null && at[hover] !== undefined) drawCursor(pen, axes.area, (at[hover] - from) / (to - from));
  };
  const {canvas, width} = useCanvas(height, draw);

  const onMove = (event: PointerEvent) => {
    if (!area.current || !canvas.current || at.length === 0) return;
    const x = event.clientX - canvas.current.getBoundingClientRect().left;
    const moment = from + ((x - area.current.left) / area.current.width) * (to - from);
    let nearest = 0;
    at.forEach((each, i) => {
      if (Math.abs(each - moment) < Math.abs(at[nearest]! - moment)) nearest = i;
    });
    setHover(nearest);
  };
  const last = lines.map(({name, values}) => `${name} ${values.length && values[values.length - 1] !== null ? format(values[values.length - 1]!) : "none"}`);
  const x = hover === null || !area.current ? 0 : area.current.left + area.current.width * ((at[hover]! - from) / (to - from));
  return (
    <div class="chart">
      <canvas ref={canvas} role="img" aria-label={`${label}. Last: ${last.join(", ")}`} onPointerMove={onMove} onPointerLeave={() => setHover(null)} />
      {hover !== null && at[hover] !== undefined && (
        <div class={`tip ${x > width / 2 ? "left" : "right"}`} style={{left: `${x}px`}}>
          <strong>{clock(at[hover])}</strong>
          {lines.map(({name, colour, values}) => (
            <div class="tip-row" key={name}>
              <span><i class={`dot ${colour}`} /> {name}</span>
              <span>{values[hover] === null || values[hover] === undefined ? "–" : format(values[hover])}</span>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

function drawLine({context, colour}: Pen, area: Area, top: number, at: number[], line: Line, from: number, to: number): void {
  const x = (moment: number) => area.left + (area.width * (moment - from)) / (to - from);
  const y = (value: number) => area.top + area.height * (1 - value / top);
  context.strokeStyle = context.fillStyle = colour(line.colour);
  context.lineWidth = 1.6;
  context.lineJoin = "round";
  let begun: number | null = null;
  let last = 0;
  const finish = () => {
    if (begun === null) return;
    context.stroke();
    if (line.fill) {
      context.lineTo(x(last), area.top + area.height);
      context.lineTo(x(begun), area.top + area.height);
      context.globalAlpha = 0.12;
      context.fill();
      context.globalAlpha = 1;
    }
    begun = null;
  };
  at.forEach((moment, i) => {
    const value = line.values[i];
    if (value === null || value === undefined) return finish();
    if (begun === null) {
      begun = moment;
      context.beginPath();
      context.moveTo(x(moment), y(value));
      if (line.values[i + 1] === null || i === at.length - 1) context.lineTo(x(moment) + 1, y(value));
    } else {
      context.lineTo(x(moment), y(value));
    }
    last = moment;
  });
  finish();
  context.lineWidth = 1;
}

function drawCursor({context, colour}: Pen, area: Area, share: number): void {
  const x = Math.round(area.left + area.width * share) + 0.5;
  context.strokeStyle = colour("line-strong");
  context.beginPath();
  context.moveTo(x, area.top);
  context.lineTo(x, area.top + area.height);
  context.stroke();
}

export function Legend({items}: {items: {name: string; colour: string}[]}) {
  return (
    <ul class="legend">
      {items.map(({name, colour}) => <li key={name}><i class={`dot ${colour}`} /> {name}</li>)}
    </ul>
  );
}
