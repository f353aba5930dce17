// Numbers as people read them: rounded to what matters, with their unit, absent as a dash. Pure.

export const ABSENT = '–';
const SPACE = '\u202f'; // narrow and unbroken: a unit stays with its number

export interface Amount {
  text: string;
  unit: string;
}

const isNumber = (v: number | null | undefined): v is number => typeof v === 'number' && Number.isFinite(v);

export function fixed(v: number, digits: number): string {
  const rounded = v.toFixed(digits);
  const [whole = '', part] = (Number(rounded) === 0 ? rounded.replace('-', '') : rounded).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',').replace('-', '\u2212');
  return part ? `${grouped}.${part}` : grouped;
}

/** As many digits as tell something: 3.41, 54.2, 324. */
export function digitsOf(v: number): number {
  const size = Math.abs(v);
  return size === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
}

function scaled(v: number, step: number, units: string[]): Amount {
  let i = 0;
  let n = v;
  while (Math.abs(n) >= step * 0.9995 && i < units.length - 1) {
    n /= step;
    i++;
  }
  return { text: fixed(n, i === 0 ? 0 : digitsOf(n)), unit: units[i] ?? '' };
}

/** A value of the catalogue in one of its units. Ratios become per cent, hertz MHz, bytes binary multiples. */
export function amount(unit: string, v: number | null | undefined): Amount {
  if (!isNumber(v)) return { text: ABSENT, unit: '' };
  switch (unit) {
    case 'celsius': return { text: fixed(v, 0), unit: '°C' };
    case 'watts': return Math.abs(v) >= 10000 ? { text: fixed(v / 1000, 1), unit: 'kW' } : { text: fixed(v, 0), unit: 'W' };
    case 'ratio': return { text: fixed(v * 100, v !== 0 && Math.abs(v) < 0.01 ? 1 : 0), unit: '%' };
    case 'hertz': return { text: fixed(v / 1e6, 0), unit: 'MHz' };
    case 'bytes': return scaled(v, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
    case 'bytes_per_second': return scaled(v, 1000, ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s']);
    case 'joules': return v >= 3.6e6 ? { text: fixed(v / 3.6e6, digitsOf(v / 3.6e6)), unit: 'kWh' } : { text: fixed(v / 3600, digitsOf(v / 3600)), unit: 'Wh' };
    case 'seconds': return Math.abs(v) >= 60 ? { text: duration(v), unit: '' } : v !== 0 && Math.abs(v) < 0.1 ? { text: fixed(v * 1000, digitsOf(v * 1000)), unit: 'ms' } : { text: fixed(v, digitsOf(v)), unit: 's' };
    case 'bool': return { text: v >= 0.995 ? 'yes' : v <= 0.005 ? 'no' : fixed(v * 100, 0), unit: v > 0.005 && v < 0.995 ? '%' : '' };
    default: return { text: fixed(v, Number.isInteger(v) ? 0 : digitsOf(v)), unit: '' };
  }
}

export function words(a: Amount): string {
  return a.unit ? `${a.text}${SPACE}${a.unit}` : a.text;
}

export const show = (unit: string, v: number | null | undefined): string => words(amount(unit, v));
export const celsius = (v: number | null | undefined): string => show('celsius', v);
export const watts = (v: number | null | undefined): string => show('watts', v);
export const percent = (v: number | null | undefined): string => show('ratio', v);
export const bytes = (v: number | null | undefined): string => show('bytes', v);
export const megahertz = (v: number | null | undefined): string => show('hertz', v);

/** Used of total in the total's unit: "53.5 / 140 GiB". */
export function bytesOf(used: number | undefined, total: number | undefined): { used: string; total: string } {
  if (!isNumber(total)) return { used: bytes(used), total: '' };
  let unit = 1;
  let name = 'B';
  for (const next of ['KiB', 'MiB', 'GiB', 'TiB', 'PiB']) {
    if (total < unit * 1024 * (name === 'GiB' ? 10 : 1)) break;
    unit *= 1024;
    name = next;
  }
  const whole = `${fixed(total / unit, total / unit >= 100 ? 0 : 1)}${SPACE}${name}`;
  return { used: isNumber(used) ? fixed(used / unit, used === 0 ? 0 : used / unit >= 100 ? 0 : 1) : ABSENT, total: whole };
}

/** "42 s", "3 min", "3 h 12 min", "2 d 4 h": two parts at most. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s}${SPACE}s`;
  const parts: [number, string][] = [[Math.floor(s / 86400), 'd'], [Math.floor(s / 3600) % 24, 'h'], [Math.floor(s / 60) % 60, 'min']];
  const first = parts.findIndex(([n]) => n > 0);
  return parts.slice(first, first + 2).filter(([n]) => n > 0).map(([n, u]) => `${n}${SPACE}${u}`).join(' ');
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n}${SPACE}${n === 1 ? one : many}`;
}

export function share(part: number | undefined, whole: number | undefined): number | undefined {
  return isNumber(part) && isNumber(whole) && whole > 0 ? Math.min(1, Math.max(0, part / whole)) : undefined;
}
