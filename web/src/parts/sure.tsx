// A button for what cannot be taken back: the first click asks, the second does it. Esc, or a moment without one, takes it back.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { sentence } from '../api/client';

const PATIENCE_MS = 6000;

export function Sure({ name, ask, label, act, onProblem }: { name: string; ask: string; label: string; act: () => Promise<void>; onProblem: (text: string) => void }): JSX.Element {
  const [isAsking, setAsking] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const yes = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isAsking) return undefined;
    yes.current?.focus();
    const timer = window.setTimeout(() => setAsking(false), PATIENCE_MS);
    return () => window.clearTimeout(timer);
  }, [isAsking]);
  const go = async (): Promise<void> => {
    setBusy(true);
    try {
      await act();
      onProblem('');
    } catch (e) {
      onProblem(sentence(e));
    }
    setBusy(false);
    setAsking(false);
  };
  if (isBusy) return <button type="button" disabled>{name}…</button>;
  if (!isAsking) return <button type="button" aria-label={label} onClick={() => setAsking(true)}>{name}</button>;
  return <button type="button" class="danger" ref={yes} aria-label={`${label}: ${ask}`} onClick={() => void go()} onBlur={() => setAsking(false)} onKeyDown={(e) => { if (e.key === 'Escape') setAsking(false); }}>{ask}</button>;
}
