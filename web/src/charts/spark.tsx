// The last minutes of a card's temperature on its overview card: a line, coloured by how hot it is now, and its target.
import { useEffect, useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import { heatOf, targetOf } from '../format/health';
import { useTopics } from '../live/hooks';
import { store, TRAIL_SECONDS } from '../live/store';
import { colour, faded, onTheme } from '../live/theme';

const LOW_C = 20;

function paint(canvas: HTMLCanvasElement, uuid: string): void {
  const trail = store.trails.get(uuid);
  const gpu = store.picture.gpus.get(uuid);
  const target = gpu && targetOf(gpu);
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const ctx = canvas.getContext('2d');
  if (!ctx || !width) return;
  const ratio = devicePixelRatio;
  if (canvas.width !== Math.round(width * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  const now = store.picture.time || store.now();
  const top = Math.max(target ?? 84, ...(trail?.value.map((v) => v ?? 0) ?? [])) + 3;
  const x = (t: number): number => width - ((now - t) / TRAIL_SECONDS) * width;
  const y = (v: number): number => height - 1 - ((v - LOW_C) / (top - LOW_C)) * (height - 3);
  if (target !== undefined) {
    ctx.strokeStyle = faded('faint', 0.75);
    ctx.setLineDash([3, 4]);
    ctx.beginPath();
    ctx.moveTo(0, Math.round(y(target)) + 0.5);
    ctx.lineTo(width, Math.round(y(target)) + 0.5);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  if (!trail) return;
  const runs: [number, number][][] = [[]];
  trail.time.forEach((t, i) => {
    const v = trail.value[i];
    const before = trail.time[i - 1];
    if (typeof v !== 'number' || (before !== undefined && t - before > 6)) runs.push([]);
    if (typeof v === 'number') runs[runs.length - 1]?.push([x(t), y(v)]);
  });
  const level = gpu ? heatOf(gpu) : 'none';
  const name = level === 'none' ? 'faint' : `${level}-fill`;
  for (const run of runs) {
    const first = run[0];
    const end = run[run.length - 1];
    if (!first || !end) continue;
    const line = new Path2D();
    run.forEach(([a, b], i) => (i ? line.lineTo(a, b) : line.moveTo(a, b)));
    const area = new Path2D(line);
    area.lineTo(end[0], height);
    area.lineTo(first[0], height);
    area.closePath();
    ctx.fillStyle = faded(name, 0.14);
    ctx.fill(area);
    ctx.strokeStyle = colour(name);
    ctx.lineWidth = 1.5;
    ctx.lineJoin = 'round';
    ctx.stroke(line);
  }
}

export function Spark({ uuid }: { uuid: string }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  useTopics('tick', 'list');
  const draw = (): void => {
    if (canvas.current) paint(canvas.current, uuid);
  };
  useEffect(draw);
  useEffect(() => {
    const off = onTheme(draw);
    const observer = new ResizeObserver(draw);
    if (canvas.current) observer.observe(canvas.current);
    return () => {
      off();
      observer.disconnect();
    };
  }, [uuid]);
  return <canvas class="spark" ref={canvas} aria-hidden="true" />;
}
