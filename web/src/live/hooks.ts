// How components listen: each re-renders only when its own topic has news.
import { useEffect, useReducer } from 'preact/hooks';
import type { Gpu, Node } from '../api/types';
import { Status, store } from './store';

export function useTopics(...topics: string[]): void {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const offs = topics.map((t) => store.on(t, () => again(undefined as never)));
    return () => offs.forEach((off) => off());
  }, [topics.join(' ')]);
}

export function useGpu(uuid: string): Gpu | undefined {
  useTopics(`gpu:${uuid}`, 'list');
  return store.picture.gpus.get(uuid);
}

export function useNode(name: string): Node | undefined {
  useTopics(`node:${name}`, 'list');
  return store.picture.nodes.get(name);
}

export function useStatus(): Status {
  useTopics('status');
  return store.status;
}

/** Re-renders every so many seconds: for ages. */
export function useClock(everyS: number): number {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const timer = window.setInterval(() => again(undefined as never), everyS * 1000);
    return () => window.clearInterval(timer);
  }, [everyS]);
  return store.now();
}
