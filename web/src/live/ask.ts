// An answer of the API that is kept up to date: asked for again every so often, and at once when told to.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, isAbort, sentence } from '../api/client';
import { store } from './store';

export interface Asked<T> {
  answer: T | undefined;
  problem: string;
  again: () => void;
}

/** topic: news of the stream after which it is asked for again, at most once a second. */
export function useAsk<T>(path: string, everyS: number, topic?: string): Asked<T> {
  const [answer, set] = useState<T>();
  const [problem, setProblem] = useState('');
  const load = useRef(() => {});
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    let askedAt = 0;
    let isAsking = false;
    const ask = async (): Promise<void> => {
      window.clearTimeout(timer);
      if (isAsking) return;
      isAsking = true;
      askedAt = performance.now();
      try {
        set(await get<T>(path, {}, abort.signal));
        setProblem('');
      } catch (e) {
        if (isAbort(e)) return;
        setProblem(sentence(e));
      }
      isAsking = false;
      timer = window.setTimeout(() => void ask(), everyS * 1000);
    };
    load.current = () => void ask();
    void ask();
    const off = topic ? store.on(topic, () => {
      if (isAsking) return;
      window.clearTimeout(timer);
      timer = window.setTimeout(() => void ask(), Math.max(0, 1000 - (performance.now() - askedAt)));
    }) : undefined;
    return () => {
      off?.();
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [path, everyS, topic]);
  return { answer, problem, again: () => load.current() };
}
