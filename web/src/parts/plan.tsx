// The next hours of every GPU: who has it, who gets it next. Bars say in words what they show.
import type { JSX } from 'preact';
import type { QueueGpu } from '../api/types';
import { calendarQuery, holder, Kept, keptSentence } from '../format/calendar';
import { layPlan, planSentence, Slot } from '../format/jobs';
import { href } from '../live/route';
import { store } from '../live/store';
import { gpuHref } from './job_state';
import { Axis } from './timeline';

const pct = (v: number): string => `${(v * 100).toFixed(2)}%`;

function Bars({ slots, gpu, from, to, now }: { slots: Slot[]; gpu: string; from: number; to: number; now: number }): JSX.Element {
  return (
    <ul class="lanes plan" aria-label={`Plan of ${gpu}`}>
      {layPlan(slots, from, to).map(({ slot, left, width, isOpen }) => {
        const text = planSentence(slot, gpu, now);
        const common = { class: `slot ${slot.kind}${isOpen ? ' open' : ''}`, style: { left: pct(left), width: pct(width) }, title: text, 'aria-label': text };
        const label = <span class="label" aria-hidden="true">{slot.user ? `${slot.user} · ` : ''}{slot.name}</span>;
        return (
          <li key={`${slot.kind} ${slot.job} ${slot.from}`}>
            {slot.job === null ? <span role="img" {...common}>{label}</span> : <a data-job={slot.job} href={href(`jobs/${slot.job}`)} {...common}>{label}</a>}
          </li>
        );
      })}
    </ul>
  );
}

/** What is reserved, below the bars: hatched, with a label where there is room, and a way to the calendar. */
function Reserved({ kept, gpu, from, to, now }: { kept: Kept[]; gpu: string; from: number; to: number; now: number }): JSX.Element | null {
  const seen = kept.filter((k) => k.from < to && k.to > from);
  if (!seen.length) return null;
  return (
    <ul class="lanes kept" aria-label={`Reservations of ${gpu}`}>
      {seen.map((k) => {
        const left = Math.max(0, (k.from - from) / (to - from));
        const text = keptSentence(k, gpu);
        return <li key={`${k.of.id} ${k.from}`}><a class={`kept${k.of.state === 'unused' && k.from <= now ? ' unused' : ''}`} data-reservation={k.of.id} href={href('calendar', calendarQuery(Math.max(k.from, now), now))} title={text} aria-label={text} style={{ left: pct(left), width: pct(Math.min(1, (k.to - from) / (to - from)) - left) }}><span class="label" aria-hidden="true">for {holder(k.of)}{k.of.note ? `: ${k.of.note}` : ''}</span></a></li>;
      })}
    </ul>
  );
}

export function Plan({ gpus, slots, kept, now, hours }: { gpus: QueueGpu[]; slots: Slot[]; kept: Kept[]; now: number; hours: number }): JSX.Element {
  const to = now + hours * 3600;
  const isKept = kept.some((k) => k.from < to && k.to > now);
  return (
    <section class="panel timeline" aria-label="Plan">
      <header><h2>Plan</h2><p class="sub">the next {hours === 1 ? 'hour' : `${hours} hours`}, from time limits and history</p></header>
      {gpus.map((g) => (
        <div class="row" key={g.uuid}>
          <a class="gpuname" href={gpuHref(g)}>{store.nodes().length > 1 && <span class="nodename">{g.node} </span>}GPU {g.name}</a>
          <div class="planrow">
            <Bars slots={slots.filter((s) => s.gpu === g.uuid)} gpu={`GPU ${g.name}`} from={now} to={to} now={now} />
            <Reserved kept={kept.filter((k) => k.gpu === g.uuid)} gpu={`GPU ${g.name}`} from={now} to={to} now={now} />
          </div>
        </div>
      ))}
      <div class="row"><span /><Axis from={now} to={to} /></div>
      <p class="legend tasks"><span><i class="key slot running" aria-hidden="true" />runs</span><span><i class="key slot planned" aria-hidden="true" />planned</span><span><i class="key slot foreign" aria-hidden="true" />outside the queue</span><span><i class="key slot out" aria-hidden="true" />out of service</span>{isKept && <span><i class="key kept" aria-hidden="true" /><a class="link" href={href('calendar')}>reserved</a></span>}</p>
    </section>
  );
}
