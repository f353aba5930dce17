// What a change changes, before it is made: from and to, row by row.
import type { JSX } from 'preact';
import type { Change } from '../api/types_work';

/** What a value is called; undefined: as it stands. */
export type ChangeWords = (key: string, value: unknown) => string | undefined;

const plain = (v: unknown): string => (typeof v === 'string' ? v || '""' : JSON.stringify(v));

export function Changes({ changes, sub, words, names }: { changes: Change[]; sub: string; words?: ChangeWords; names?: Record<string, string> }): JSX.Element {
  const shown = (key: string, v: unknown): JSX.Element => (v === null || v === undefined ? <span class="dim">none</span> : <code>{words?.(key, v) ?? plain(v)}</code>);
  return (
    <section class="panel" aria-label="What changes" aria-live="polite">
      <header><h2>What changes</h2><p class="sub">{changes.length ? sub : 'nothing: it is so already'}</p></header>
      {changes.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="Changes as a table"><table class="jobs changes">
        <thead><tr><th>What</th><th>From</th><th>To</th></tr></thead>
        <tbody>{changes.map((c) => <tr key={c.key}><td>{names?.[c.key] ?? c.key.replace('.', ': ')}</td><td data-label="From" class="was">{shown(c.key, c.from)}</td><td data-label="To" class="is">{shown(c.key, c.to)}</td></tr>)}</tbody>
      </table></div>}
    </section>
  );
}

/** In its place until somebody asks. */
export const NoChanges = (): JSX.Element => <section class="panel foretold" aria-label="What changes"><header><h2>What changes</h2></header><p class="empty">Shown before anything is done.</p></section>;
