// A list of events: when, what, where, how bad.
import type { JSX } from 'preact';
import type { GpuEvent } from '../api/types';
import { moment } from '../format/times';
import { href } from '../live/route';
import { store } from '../live/store';

const MARKS: Record<string, string> = { info: '·', warning: '!', error: '!', critical: '‼' };

/** "guard_lowered" as people say it. */
export const kindWords = (kind: string): string => kind.replace(/_/g, ' ').replace(/^xid$/, 'XID').replace(/^gpu /, 'GPU ');

export function eventGpu(e: GpuEvent): { name: string; uuid?: string } | undefined {
  if (!e.gpu && (e.gpu_index === undefined || e.gpu_index === null)) return undefined;
  const index = e.gpu_index ?? (e.gpu ? store.picture.gpus.get(e.gpu)?.index : undefined);
  return { name: `GPU ${index ?? '?'}`, uuid: e.gpu ?? undefined };
}

export function EventList({ events, withGpu = true, isLive = false }: { events: GpuEvent[]; withGpu?: boolean; isLive?: boolean }): JSX.Element {
  const now = store.now();
  return (
    <ol class="events" aria-live={isLive ? 'polite' : undefined}>
      {events.map((e, i) => {
        const gpu = withGpu ? eventGpu(e) : undefined;
        return (
          <li key={e.id ?? `${e.time} ${i}`} class={e.severity}>
            <span class="mark" title={e.severity} aria-hidden="true">{MARKS[e.severity] ?? '·'}</span>
            <time dateTime={String(e.time)}>{moment(e.time, now)}</time>
            <span class="kind"><span class="unseen">{e.severity}: </span>{kindWords(e.kind)}</span>
            {withGpu && <span class="where">{gpu ? (gpu.uuid ? <a href={href(`gpus/${gpu.uuid}`)}>{gpu.name}</a> : gpu.name) : (e.node ?? 'machine')}</span>}
            <span class="text">{e.text}</span>
          </li>
        );
      })}
    </ol>
  );
}
