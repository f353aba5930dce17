// The guard of one GPU, and setting its limit by hand: for a time, and undone by itself unless it is confirmed, so that a
// mistake heals without anybody.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { send, sentence } from '../api/client';
import type { Gpu } from '../api/types';
import { guardSentence, withheld } from '../format/health';
import { celsius, plural, show } from '../format/numbers';
import { say } from '../parts/say';

const CONFIRM_S = 60;

function Facts({ gpu }: { gpu: Gpu }): JSX.Element {
  const g = gpu.guard;
  const m = gpu.metrics;
  const rows: [string, string | undefined][] = [
    ['Mode', g?.mode],
    ['Moves', g?.lever],
    ['Target', g?.target === undefined ? undefined : celsius(g.target)],
    ['Limit', g?.limit === undefined ? undefined : `${Math.round(g.limit)} ${g.unit} of ${Math.round(g.baseline ?? g.limit)} ${g.unit}`],
    ['Reason', g?.reason],
    ['Held back for', m['gpu_guard_throttled_seconds_total'] === undefined ? undefined : `${show('seconds', m['gpu_guard_throttled_seconds_total'])} in all`],
  ];
  return <dl class="pairs">{rows.filter(([, v]) => v).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>;
}

type Step = { kind: 'idle' } | { kind: 'working' } | { kind: 'waiting'; until: number } | { kind: 'done'; text: string } | { kind: 'failed'; text: string };

function ByHand({ gpu }: { gpu: Gpu }): JSX.Element {
  const g = gpu.guard;
  const isPower = g?.unit === 'W';
  const least = isPower ? gpu.metrics['gpu_power_limit_min_watts'] : undefined;
  const most = isPower ? gpu.metrics['gpu_power_limit_max_watts'] : undefined;
  const [limit, setLimit] = useState(String(Math.round(g?.limit ?? 0)));
  const [minutes, setMinutes] = useState('30');
  const [step, setStep] = useState<Step>({ kind: 'idle' });
  const [left, setLeft] = useState(0);
  const path = `gpus/${gpu.uuid}/guard`;

  useEffect(() => {
    if (step.kind !== 'waiting') return undefined;
    const count = (): void => {
      const s = Math.max(0, Math.round((step.until - Date.now()) / 1000));
      setLeft(s);
      if (s === 0) setStep({ kind: 'done', text: 'Nobody confirmed it: the card was put back.' });
    };
    count();
    const timer = window.setInterval(count, 1000);
    return () => window.clearInterval(timer);
  }, [step]);

  const act = async (body: unknown, after: Step): Promise<void> => {
    setStep({ kind: 'working' });
    try {
      await send('POST', path, body);
      setStep(after);
      if (after.kind === 'done') say(after.text);
    } catch (e) {
      setStep({ kind: 'failed', text: sentence(e) });
    }
  };
  const set = (e: Event): void => {
    e.preventDefault();
    const body = { [isPower ? 'limit_w' : 'clock_mhz']: Number(limit), for_s: Number(minutes) * 60, confirm_s: CONFIRM_S };
    void act(body, { kind: 'waiting', until: Date.now() + CONFIRM_S * 1000 });
  };
  const isBusy = step.kind === 'working';
  return (
    <form class="byhand" onSubmit={set}>
      <h3>Set it by hand</h3>
      <div class="fields">
        <label>Limit, {g?.unit}<input type="number" required min={least} max={most} step="1" value={limit} onInput={(e) => setLimit(e.currentTarget.value)} /></label>
        <label>For, minutes<input type="number" required min="1" max="1440" value={minutes} onInput={(e) => setMinutes(e.currentTarget.value)} /></label>
        <button type="submit" class="main" disabled={isBusy}>{isBusy ? 'Setting…' : 'Set'}</button>
        <button type="button" disabled={isBusy} onClick={() => void act({ restore: true }, { kind: 'done', text: 'The card has its own limit again.' })}>Restore</button>
      </div>
      {step.kind === 'waiting' && (
        <div class="confirm" role="status">
          <p>Set. Is the card well? Unless you confirm within {plural(left, 'second')} it is put back.</p>
          <progress max={CONFIRM_S} value={left} aria-label="Time left to confirm" />
          <button type="button" class="main" onClick={() => void act({ confirm: true }, { kind: 'done', text: 'Confirmed.' })}>Keep it</button>
        </div>
      )}
      {step.kind === 'done' && <p class="good" role="status">{step.text}</p>}
      {step.kind === 'failed' && <p class="problem" role="alert">{step.text}</p>}
    </form>
  );
}

export function GuardPanel({ gpu, isAdmin }: { gpu: Gpu; isAdmin: boolean }): JSX.Element {
  const canSet = isAdmin && gpu.guard?.mode === 'acts' && !!gpu.guard.unit;
  return (
    <section class="panel" aria-label="Guard">
      <header><h2>Guard</h2><p class="sub">{withheld(gpu) > 0 ? 'holds the card back' : 'holds nothing back'}</p></header>
      <p>{guardSentence(gpu)}</p>
      <Facts gpu={gpu} />
      {canSet && <ByHand gpu={gpu} />}
    </section>
  );
}
