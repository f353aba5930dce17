// A chart in its frame: title, the sentence that says what it shows, a table of the same values on demand.
import { useState } from 'preact/hooks';
import type { ComponentChildren, JSX } from 'preact';
import { show } from '../format/numbers';
import { moment } from '../format/times';
import { Plot, PlotProps } from './plot';

const ROWS_MAX = 60;

function ValueTable(p: PlotProps): JSX.Element {
  const inView = p.time.map((_, i) => i).filter((i) => p.isBins || p.from === undefined || p.to === undefined || ((p.time[i] as number) >= p.from && (p.time[i] as number) <= p.to));
  const every = Math.max(1, Math.ceil(inView.length / ROWS_MAX));
  const rows = inView.filter((i, k) => k % every === 0 && p.lines.some((l) => typeof l.values[i] === 'number'));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${p.name}, as a table`}>
      <table>
        <thead><tr><th>{p.isBins ? 'Around' : 'Time'}</th>{p.lines.map((l) => <th class="num" key={l.label}>{l.label}</th>)}</tr></thead>
        <tbody>
          {rows.map((i) => (
            <tr key={p.time[i]}>
              <td>{p.isBins ? (p.xWords?.(p.time[i] as number) ?? p.time[i]) : moment(p.time[i])}</td>
              {p.lines.map((l) => {
                const low = l.min?.[i];
                const high = l.max?.[i];
                return <td class="num" key={l.label}>{show(p.unit, l.values[i])}{typeof low === 'number' && typeof high === 'number' && <small> {show(p.unit, low)}…{show(p.unit, high)}</small>}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface PanelProps extends PlotProps {
  title: string;
  sub?: ComponentChildren;
  note?: ComponentChildren;
  error?: string;
  isEmpty?: boolean;
  emptyWords?: string;
}

export function ChartPanel({ title, sub, note, error, isEmpty, emptyWords, ...plot }: PanelProps): JSX.Element {
  const [isTable, setTable] = useState(false);
  return (
    <section class="panel chart" aria-label={title}>
      <header>
        <div class="title"><h2>{title}</h2>{sub && <p class="sub">{sub}</p>}</div>
        <button type="button" class="quiet" aria-pressed={isTable} onClick={() => setTable(!isTable)} title="The same values as a table">Table</button>
      </header>
      {error && <p class="problem" role="status">{error}</p>}
      {isEmpty && !plot.isLoading && !error ? <p class="empty" style={{ minHeight: `${plot.height ?? 200}px` }}>{emptyWords ?? 'Nothing was stored in this time.'}</p> : isTable ? <ValueTable {...plot} /> : <Plot {...plot} />}
      {note}
    </section>
  );
}
