// A canvas that is as wide as its place, sharp on any screen, and drawn again when size, data or colours change.
import {useEffect, useRef, useState} from "preact/hooks";
import type {RefObject} from "preact";
import {useStore} from "../live/store";
import {coloursStore} from "../live/theme";
import {ticks, timeTicks} from "./scale";

export interface Area {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Pen {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  colour: (name: string) => string;
}

export function useCanvas(height: number, draw: (pen: Pen) => void): {canvas: RefObject<HTMLCanvasElement | null>; width: number} {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  useStore(coloursStore);

  useEffect(() => {
    const place = canvas.current?.parentElement;
    if (!place) return;
    const observer = new ResizeObserver(() => setWidth(place.clientWidth));
    observer.observe(place);
    setWidth(place.clientWidth);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || width === 0) return;
    const scale = window.devicePixelRatio || 1;
    element.width = Math.round(width * scale);
    element.height = Math.round(height * scale);
    element.style.setProperty("width", width + "px");
    element.style.setProperty("height", height + "px");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const styles = getComputedStyle(element);
    context.font = `11px ${styles.fontFamily}`;
    draw({context, width, height, colour: (name) => styles.getPropertyValue("--" + name).trim()});
  });

  return {canvas, width};
}

export interface Axes {
  from: number;
  to: number;
  max: number;
  format: (value: number) => string;
}

/** Draws grid and labels; returns the area for the data and the top of its scale. */
export function drawAxes({context, width, height, colour}: Pen, {from, to, max, format}: Axes): {area: Area; top: number} {
  const values = ticks(max, 3);
  const top = values[values.length - 1]!;
  const left = Math.ceil(Math.max(...values.map((value) => context.measureText(format(value)).width))) + 10;
  const area = {left, top: 8, width: width - left - 6, height: height - 30};
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const value of values) {
    const y = Math.round(area.top + area.height * (1 - value / top)) + 0.5;
    context.strokeStyle = colour(value === 0 ? "line-strong" : "line");
    context.beginPath();
    context.moveTo(area.left, y);
    context.lineTo(area.left + area.width, y);
    context.stroke();
    context.fillStyle = colour("muted");
    context.fillText(format(value), area.left - 8, y);
  }
  context.textBaseline = "top";
  context.textAlign = "center";
  for (const {at, label} of timeTicks(from, to, area.width / 80)) {
    const x = area.left + (area.width * (at - from)) / (to - from);
    const half = context.measureText(label).width / 2;
    if (x + half > width || x - half < area.left - 8) continue;
    context.fillText(label, x, area.top + area.height + 8);
  }
  return {area, top};
}
