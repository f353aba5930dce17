// A span of history for a chart. Short live spans are fetched once and then grow with the stream; longer ones are fetched
// again when there can be something new to see. While a new span is under way the old one stays, marked as loading.
import { useEffect, useRef, useState } from 'preact/hooks';
import { getHistory, isAbort, sentence } from '../api/client';
import type { History } from '../api/types';
import { ends, Range, spanOf } from '../format/range';
import { grown, trimmed } from '../format/series';
import { store } from '../live/store';

export interface Loaded {
  history?: History;
  from: number;
  to: number;
  isLoading: boolean;
  error?: string;
  tookMs?: number;
}

const GROWS_UP_TO_S = 3600;

function latest(of: string, metric: string): number | null {
  const name = of.slice(of.indexOf(':') + 1);
  const numbers = of.startsWith('gpu:') ? store.picture.gpus.get(name)?.metrics : store.picture.nodes.get(name)?.host;
  return numbers?.[metric] ?? null;
}

export function useHistory(of: string[], metrics: string[], range: Range, width: number): Loaded {
  const now = store.now();
  const [state, setState] = useState<Loaded>(() => ({ isLoading: true, from: ends(range, now)[0], to: ends(range, now)[1] }));
  const kept = useRef<History>();
  const key = `${of.join()} ${metrics.join()} ${range.kind === 'last' ? range.seconds : `${range.from}-${range.to}`} ${width}`;

  useEffect(() => {
    if (!of.length || !metrics.length) return undefined;
    const abort = new AbortController();
    const canGrow = range.kind === 'last' && spanOf(range) <= GROWS_UP_TO_S && of.every((o) => /^(gpu|host):/.test(o));
    let timer = 0;
    let isLoading = false;
    let offTick: (() => void) | undefined;
    const settle = (history: History, tookMs?: number): void => {
      kept.current = history;
      const [from, to] = ends(range, canGrow ? Math.max(store.picture.time, history.to) : store.now());
      setState((s) => ({ history, from, to, isLoading: false, tookMs: tookMs ?? s.tookMs }));
    };
    const load = async (): Promise<void> => {
      window.clearTimeout(timer);
      isLoading = true;
      const started = performance.now();
      const [from, to] = ends(range, store.now());
      try {
        const got = await getHistory(of, metrics, from, to, width, abort.signal);
        const history = canGrow ? trimmed(got) : got;
        settle(history, performance.now() - started);
        if (range.kind === 'last' && !(canGrow && history.resolution === 'raw'))
          timer = window.setTimeout(() => void load(), Math.min(300, Math.max(5, history.step_s / 2)) * 1000);
        else if (range.kind === 'last' && !offTick) follow();
      } catch (e) {
        if (isAbort(e)) return;
        setState((s) => ({ ...s, isLoading: false, error: sentence(e) }));
        timer = window.setTimeout(() => void load(), 5000);
      }
      isLoading = false;
    };
    const follow = (): void => {
      offTick = store.on('tick', () => {
        if (kept.current && !isLoading) settle(grown(kept.current, store.picture.time, spanOf(range), latest));
      });
    };
    setState((s) => ({ ...s, isLoading: true, error: undefined, ...(s.history ? {} : { from: ends(range, store.now())[0], to: ends(range, store.now())[1] }) }));
    void load();
    const offRenewed = store.on('renewed', () => {
      if (range.kind === 'last' && !isLoading) void load();
    });
    return () => {
      offRenewed();
      abort.abort();
      window.clearTimeout(timer);
      offTick?.();
    };
  }, [key]);
  return state;
}
