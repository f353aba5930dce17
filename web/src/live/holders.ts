// Whose the cards are by the queue, for pages that show cards: a card that a job holds and leaves idle is not free.
import { useEffect } from 'preact/hooks';
import type { Queue } from '../api/types';
import { useAsk } from './ask';
import { holdersOf } from './state';
import { store } from './store';

export function useHolders(): void {
  const { answer } = useAsk<Queue>('queue?limit=0', 5, 'jobs');
  useEffect(() => { if (answer) store.setHolders(holdersOf(answer.running)); }, [answer]);
}
