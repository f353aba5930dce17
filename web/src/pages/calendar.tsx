// Who has which GPU when: a week or a day of all GPUs, drawn like a room's calendar. A time is drawn with the pointer, or typed into
// the form; both end there, and the server has the last word.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { send, sentence } from '../api/client';
import type { Gpu, Session } from '../api/types';
import type { Reservation, ReservationEdited, Reservations } from '../api/types_work';
import { Block, blocksOf, blockSentence, bodyOf, Booking, bookingChange, bookingOf, changeWords, dayName, drawn, everyWords, holder, lengthWords, localText, midnight, Often, Span, spanOf, spanWords, wrongWith } from '../format/calendar';
import { plural } from '../format/numbers';
import { day } from '../format/times';
import { useAsk } from '../live/ask';
import { useClock, useTopics } from '../live/hooks';
import { goQuery, href, usePlace } from '../live/route';
import { store } from '../live/store';
import { Changes } from '../parts/changes';
import { say } from '../parts/say';
import { Busy, PageHead, Problem, Segment, useTitle } from '../parts/small';
import { Sure } from '../parts/sure';
import { WorkTabs } from '../parts/work_tabs';

const pct = (v: number): string => `${(v * 100).toFixed(3)}%`;
const HOURS = [0, 3, 6, 9, 12, 15, 18, 21];
const OFTEN: { key: Often; name: string }[] = [{ key: 'once', name: 'Once' }, { key: 'daily', name: 'Every day' }, { key: 'weekdays', name: 'Every weekday' }, { key: 'weekly', name: 'Every week' }];

interface Drawing {
  node: string;
  a: { row: number; x: number };
  b: { row: number; x: number };
}

function Bar({ block, gpu, now, onPick }: { block: Block; gpu: string; now: number; onPick: (id: number) => void }): JSX.Element {
  const text = blockSentence(block, gpu);
  const isUnused = block.of.state === 'unused' && block.of.next?.from === block.window.from;
  const kind = block.window.to <= now ? ' past' : isUnused ? ' unused' : '';
  return (
    <li>
      <button type="button" class={`booked${kind}`} data-reservation={block.of.id} style={{ left: pct(block.left), width: pct(block.width) }} title={text} aria-label={text} onClick={() => onPick(block.of.id)}>
        <span class="label" aria-hidden="true">{holder(block.of)}{block.of.note ? ` · ${block.of.note}` : ''}</span>
      </button>
    </li>
  );
}

/** The rows of GPUs; what is drawn on them is told when the pointer is let go. */
function Grid({ span, answer, now, mayReserve, onDrawn, onPick }: { span: Span; answer: Reservations; now: number; mayReserve: boolean; onDrawn: (gpus: Gpu[], from: number, to: number) => void; onPick: (id: number) => void }): JSX.Element {
  const gpus = store.gpus();
  const rows = useRef<(HTMLUListElement | null)[]>([]);
  const [drawing, setDrawing] = useState<Drawing>();
  const isWeek = span.days.length > 1;
  const stepS = isWeek ? 3600 : 1800;
  const place = (e: PointerEvent): { row: number; x: number } => {
    const boxes = rows.current.slice(0, gpus.length).map((el) => el?.getBoundingClientRect());
    const row = boxes.findIndex((r) => r !== undefined && e.clientY < r.bottom + 3);
    const box = boxes[row < 0 ? boxes.length - 1 : row];
    return { row: row < 0 ? gpus.length - 1 : row, x: box ? (e.clientX - box.left) / box.width : 0 };
  };
  const chosen = drawing && gpus.slice(Math.min(drawing.a.row, drawing.b.row), Math.max(drawing.a.row, drawing.b.row) + 1).filter((g) => g.node === drawing.node);
  const time = drawing && drawn(span, drawing.a.x, drawing.b.x, stepS);
  const begin = (e: PointerEvent): void => {
    if (!mayReserve || e.button !== 0 || e.pointerType === 'touch' || (e.target as Element).closest('button')) return;
    const a = place(e);
    (e.currentTarget as Element).setPointerCapture(e.pointerId);
    setDrawing({ node: gpus[a.row]?.node ?? '', a, b: a });
    e.preventDefault();
  };
  const end = (): void => {
    if (drawing && chosen?.length && time) onDrawn(chosen, time.from, time.to);
    setDrawing(undefined);
  };
  return (
    <section class={`panel timeline calendar${isWeek ? '' : ' oneday'}`} aria-label="Calendar">
      <div class="row head" aria-hidden="true"><span />
        <div class="days">{span.days.map((d) => <span key={d} class={midnight(now) === d ? 'today' : ''} style={{ width: pct((midnight(d, 1) - d) / (span.to - span.from)) }}>{isWeek ? dayName(d) : HOURS.map((h) => <i key={h} style={{ left: pct(h / 24) }}>{String(h).padStart(2, '0')}</i>)}</span>)}</div>
      </div>
      <div class={`body${mayReserve ? ' may' : ''}`} onPointerDown={begin} onPointerMove={(e) => { if (drawing) setDrawing({ ...drawing, b: place(e) }); }} onPointerUp={end} onPointerCancel={() => setDrawing(undefined)}>
        {gpus.map((g, i) => {
          const name = `GPU ${g.index}${store.nodes().length > 1 ? ` of ${g.node}` : ''}`;
          return (
            <div class="row" key={g.uuid}>
              <a class="gpuname" href={href(`gpus/${g.uuid}`)}>{store.nodes().length > 1 && <span class="nodename">{g.node} </span>}GPU {g.index}</a>
              <ul class="lanes" aria-label={`Reservations of ${name}`} data-gpu={g.uuid} ref={(el) => { rows.current[i] = el; }}>
                {span.days.map((d) => <li key={`day ${d}`} class="daymark" aria-hidden="true" style={{ left: pct((d - span.from) / (span.to - span.from)) }} />)}
                {blocksOf(g.uuid, answer.reservations, answer.windows, span).map((b) => <Bar key={`${b.of.id} ${b.window.from}`} block={b} gpu={name} now={now} onPick={onPick} />)}
                {time && chosen?.includes(g) && <li class="drawing" aria-hidden="true" style={{ left: pct((time.from - span.from) / (span.to - span.from)), width: pct((time.to - time.from) / (span.to - span.from)) }} />}
                {now > span.from && now < span.to && <li class="nowmark" aria-hidden="true" style={{ left: pct((now - span.from) / (span.to - span.from)) }} />}
              </ul>
            </div>
          );
        })}
      </div>
      <p class="legend tasks"><span><i class="key booked" aria-hidden="true" />reserved</span><span><i class="key booked unused" aria-hidden="true" />unused: everybody's until its user comes</span><span class="dim hint">{time ? spanWords(time.from, time.to) : mayReserve ? 'Draw a time on one or more GPUs to reserve it.' : ''}</span></p>
    </section>
  );
}

const NAMES: Record<string, string> = { from: 'from', for_s: 'how long', gpu_indices: 'GPUs', every: 'again', zone: 'time zone' };
const zoneHere = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** of: one that is changed; then what changes is shown first. */
function BookingForm({ first, of, isAdmin, onDone }: { first: Booking; of?: Reservation; isAdmin: boolean; onDone: (made: boolean) => void }): JSX.Element {
  const [b, setB] = useState(first);
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [told, setTold] = useState<ReservationEdited>();
  const top = useRef<HTMLFormElement>(null);
  useEffect(() => top.current?.scrollIntoView({ block: 'nearest' }), []);
  const put = (change: Partial<Booking>): void => { setProblem(''); setTold(undefined); setB((was) => ({ ...was, ...change })); };
  const toggle = (uuid: string): void => put({ gpus: b.gpus.includes(uuid) ? b.gpus.filter((u) => u !== uuid) : [...b.gpus, uuid] });
  const save = async (e: Event): Promise<void> => {
    e.preventDefault();
    const wrong = wrongWith(b);
    if (wrong) return setProblem(wrong);
    setBusy(true);
    try {
      if (of && !told) {
        setTold(await send<ReservationEdited>('PUT', `reservations/${of.id}?dry_run=1`, bookingChange(b, of, zoneHere())));
        setBusy(false);
        return;
      }
      if (of) await send('PUT', `reservations/${of.id}`, bookingChange(b, of, zoneHere()));
      const made = of ?? await send<Reservation>('POST', 'reservations', bodyOf(b, zoneHere()));
      say(`Reservation ${made.id} is ${of ? 'changed' : 'made'}.`);
      onDone(true);
    } catch (err) {
      setProblem(sentence(err));
      setTold(undefined);
      setBusy(false);
    }
  };
  const title = of ? `Edit reservation ${of.id}` : 'New reservation';
  const verb = !of ? (isBusy ? 'Reserving…' : 'Reserve') : told ? (isBusy ? 'Changing…' : `Change reservation ${of.id}`) : isBusy ? 'Asking…' : 'Show what changes';
  const nodes = store.nodes();
  return (
    <form class="panel editor booking" ref={top} onSubmit={(e) => void save(e)} aria-label={title}>
      <h2>{title}</h2>
      <div class="fields">
        <label>From<input id="book-from" type="datetime-local" required value={b.from} onInput={(e) => put({ from: e.currentTarget.value })} /></label>
        <label>To<input id="book-to" type="datetime-local" required value={b.to} onInput={(e) => put({ to: e.currentTarget.value })} /></label>
        <label>How often<select id="book-often" value={b.often} onChange={(e) => put({ often: e.currentTarget.value as Often })}>{OFTEN.map((o) => <option key={o.key} value={o.key}>{o.name}</option>)}{first.often === 'other' && of && <option value="other">{everyWords(of)}</option>}</select></label>
        {b.often !== 'once' && <label>Last day <small>(may be empty)</small><input id="book-until" type="date" value={b.until} onInput={(e) => put({ until: e.currentTarget.value })} /></label>}
      </div>
      <fieldset class="members"><legend>GPUs{nodes.length > 1 ? ` of ${b.node}` : ''}</legend>
        {nodes.length > 1 && <select aria-label="Machine" value={b.node} onChange={(e) => put({ node: e.currentTarget.value, gpus: [] })}>{nodes.map((n) => <option key={n.name} value={n.name}>{n.name}</option>)}</select>}
        {store.gpus().filter((g) => g.node === b.node).map((g) => <label key={g.uuid} class="member"><input type="checkbox" checked={b.gpus.includes(g.uuid)} onChange={() => toggle(g.uuid)} />GPU {g.index}</label>)}
      </fieldset>
      <div class="fields">
        {isAdmin && <label>For<select id="book-kind" value={b.isGroup ? 'group' : 'user'} onChange={(e) => put({ isGroup: e.currentTarget.value === 'group' })}><option value="user">a user</option><option value="group">a group</option></select></label>}
        {isAdmin && <label>{b.isGroup ? 'Group' : 'User'}<input id="book-who" required value={b.who} maxLength={63} spellcheck={false} onInput={(e) => put({ who: e.currentTarget.value })} /></label>}
        <label>What for <small>(may be empty)</small><input id="book-note" value={b.note} maxLength={120} onInput={(e) => put({ note: e.currentTarget.value })} /></label>
      </div>
      {problem && <Problem>{problem}</Problem>}
      {told && <Changes changes={told.changes} sub={told.reservation.next ? `next ${spanWords(told.reservation.next.from, told.reservation.next.to)}` : ''} words={changeWords} names={NAMES} />}
      <div class="buttons"><button type="submit" class="main" disabled={isBusy || told?.changes.length === 0}>{verb}</button><button type="button" onClick={() => onDone(false)}>Cancel</button></div>
    </form>
  );
}

const STATES = { ahead: 'ahead', now: 'now', unused: 'unused', over: 'over' } as const;

function List({ all, picked, onEdit, onProblem, again }: { all: Reservation[]; picked: number | undefined; onEdit: (r: Reservation) => void; onProblem: (text: string) => void; again: () => void }): JSX.Element {
  const rows = all.filter((r) => r.state !== 'over').sort((a, b) => (a.next?.from ?? 0) - (b.next?.from ?? 0));
  return (
    <section class="panel" aria-label="Reservations">
      <header><h2>Reservations</h2><p class="sub">{rows.length ? plural(rows.length, 'reservation') : 'nothing is reserved'}</p></header>
      {rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Reservations as a table">
          <table class="jobs">
            <thead><tr><th class="num">No.</th><th>For</th><th>GPUs</th><th>Next</th><th>How long</th><th>Again</th><th>State</th><th><span class="unseen">Actions</span></th></tr></thead>
            <tbody>{rows.map((r) => (
              <tr key={r.id} id={`reservation-${r.id}`} data-reservation={r.id} class={picked === r.id ? 'picked' : ''}>
                <td class="num" data-label="No.">{r.id}</td>
                <td>{holder(r)}{r.note && <div class="dim">{r.note}</div>}</td>
                <td data-label="GPUs">{store.nodes().length > 1 ? `${r.node}: ` : ''}{r.gpu_indices.join(', ')}</td>
                <td data-label="Next">{r.next ? spanWords(r.next.from, r.next.to) : ''}</td>
                <td data-label="How long">{lengthWords(r)}</td>
                <td data-label="Again">{everyWords(r)}{r.until ? ` until ${day(r.until - 1)}` : ''}</td>
                <td data-label="State"><span class={`jobstate ${r.state === 'now' ? 'running' : 'waiting'}`} data-state={r.state}>{STATES[r.state]}</span></td>
                <td class="num">{r.may_cancel && <span class="acts"><button type="button" aria-label={`Edit reservation ${r.id}`} onClick={() => onEdit(r)}>Edit</button><Sure name="Take back" label={`Take back reservation ${r.id}`} ask="Really take it back" onProblem={onProblem} act={async () => { await send('DELETE', `reservations/${r.id}`); say(`Reservation ${r.id} is taken back.`); again(); }} /></span>}</td>
              </tr>))}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** A phone shows a day. */
const isNarrow = (): boolean => window.matchMedia('(max-width: 640px)').matches;

export function Calendar({ who }: { who: Session['user'] }): JSX.Element {
  useTitle('Calendar');
  useTopics('list');
  const now = useClock(10);
  const { query } = usePlace();
  const [problem, setProblem] = useState('');
  const [booking, setBooking] = useState<{ first: Booking; of?: Reservation }>();
  const [picked, setPicked] = useState<number>();
  const isWeek = (query.get('span') ?? (isNarrow() ? 'day' : 'week')) === 'week';
  const step = Math.max(-52, Math.min(366, Math.trunc(Number(query.get('step') ?? 0)) || 0));
  const span = spanOf(now, isWeek, step);
  const { answer, problem: trouble, again } = useAsk<Reservations>(`reservations?from=${span.from}&to=${span.to}`, 10, 'jobs');
  if (!answer) return trouble ? <Problem>{trouble}</Problem> : <Busy what="Asking the server" />;
  const isAdmin = answer.hours_left === null;
  const mayReserve = isAdmin || (answer.hours_left ?? 0) > 0;
  const move = (by: number): void => goQuery((q) => (step + by === 0 ? q.delete('step') : q.set('step', String(step + by))), true);
  const book = (gpus: Gpu[], from: number, to: number): void => setBooking({ first: { from: localText(Math.max(from, now)), to: localText(to), gpus: gpus.map((g) => g.uuid), node: gpus[0]?.node ?? store.nodes()[0]?.name ?? '', who: isAdmin ? (who?.name ?? '') : '', isGroup: false, often: 'once', until: '', note: '' } });
  const nextHour = Math.ceil(now / 3600) * 3600;
  const pick = (id: number): void => {
    setPicked(id);
    document.getElementById(`reservation-${id}`)?.scrollIntoView({ block: 'center' });
  };
  return (
    <>
      <WorkTabs />
      <PageHead title="Calendar" crumb={isWeek ? `${day(span.from)} to ${day(span.to - 1)}` : dayName(span.from)}>
        <span class="buttons steps"><button type="button" aria-label={isWeek ? 'The seven days before' : 'The day before'} onClick={() => move(-1)}>‹</button><button type="button" onClick={() => move(-step)} disabled={step === 0}>Today</button><button type="button" aria-label={isWeek ? 'The seven days after' : 'The day after'} onClick={() => move(1)}>›</button></span>
        <Segment label="How much is shown" value={isWeek ? 'week' : 'day'} options={[{ key: 'day', name: 'Day' }, { key: 'week', name: 'Week' }]} onPick={(k) => goQuery((q) => { q.set('span', k); q.delete('step'); }, true)} />
        {mayReserve && <button type="button" class="main" onClick={() => book(store.gpus().slice(0, 1), nextHour, nextHour + 3600)}>Reserve</button>}
      </PageHead>
      {(problem || trouble) && <Problem>{problem || trouble}</Problem>}
      {!isAdmin && <p class="dim">{mayReserve ? `You may reserve ${answer.hours_left} more GPU hours of the next seven days.` : 'Only administrators reserve here.'}</p>}
      {booking && <BookingForm key={`${booking.of?.id ?? ''} ${booking.first.from} ${booking.first.to} ${booking.first.gpus.join()}`} {...booking} isAdmin={isAdmin} onDone={(made) => { setBooking(undefined); if (made) again(); }} />}
      <Grid span={span} answer={answer} now={now} mayReserve={mayReserve} onDrawn={book} onPick={pick} />
      <List all={answer.reservations} picked={picked} onEdit={(r) => setBooking({ first: bookingOf(r, zoneHere()), of: r })} onProblem={setProblem} again={again} />
    </>
  );
}
