// Small things that many pages use: a meter, an amount, a chip, a segment of buttons, a problem.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ABSENT } from '../format/numbers';
import type { Level } from '../format/health';

interface MeterProps {
  name: string;
  share: number | undefined; // how full
  outline?: number; // a second, weaker figure behind it
  tick?: number; // a limit on the same scale
  value: ComponentChildren;
  level?: string;
  title?: string;
}

const pct = (v: number): string => `${(Math.min(1, Math.max(0, v)) * 100).toFixed(1)}%`;

export function Meter({ name, share, outline, tick, value, level, title }: MeterProps): JSX.Element {
  return (
    <div class={`meter ${level ?? ''}`} title={title}>
      <span class="name">{name}</span>
      <span class="track" aria-hidden="true">
        {outline !== undefined && <span class="outline" style={{ width: pct(outline) }} />}
        {share !== undefined && <span class="fill" style={{ width: pct(share) }} />}
        {tick !== undefined && <span class="tick" style={{ left: pct(tick) }} />}
      </span>
      <span class="val">{value}</span>
    </div>
  );
}

export function Absent({ why }: { why: string }): JSX.Element {
  return <span class="absent" title={why}><span aria-hidden="true">{ABSENT}</span><span class="unseen">not known: {why}</span></span>;
}

export function Chip({ level, children, title }: { level?: Level | 'who'; children: ComponentChildren; title?: string }): JSX.Element {
  return <span class={`chip ${level ?? ''}`} title={title}>{children}</span>;
}

interface SegmentProps<T extends string> {
  label: string;
  options: { key: T; name: string; title?: string }[];
  value: T | undefined;
  onPick: (key: T) => void;
}

export function Segment<T extends string>({ label, options, value, onPick }: SegmentProps<T>): JSX.Element {
  return (
    <div class="segment" role="group" aria-label={label}>
      {options.map((o) => <button type="button" key={o.key} aria-pressed={o.key === value} title={o.title} onClick={() => onPick(o.key)}>{o.name}</button>)}
    </div>
  );
}

export function Problem({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="problem" role="alert">{children}</p>;
}

/** Shown only when it takes long enough to wonder. */
export function Busy({ what }: { what: string }): JSX.Element | null {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setLate(true), 200);
    return () => window.clearTimeout(timer);
  }, []);
  return isLate ? <p class="busy" role="status"><i class="spin" aria-hidden="true" />{what}</p> : null;
}

export function PageHead({ title, crumb, children }: { title: ComponentChildren; crumb?: ComponentChildren; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="bar">
      <h1>{title}</h1>
      {crumb && <span class="crumb">{crumb}</span>}
      <span class="spacer" />
      {children}
    </div>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · gpumgr` : 'gpumgr';
  }, [title]);
}
