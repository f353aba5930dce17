// Units of an axis: what to divide by and what to write. Pure.
export interface AxisUnit {
  by: number;
  name: string;
}

export function axisUnit(unit: string, largest: number): AxisUnit {
  const pick = (steps: [number, string][]): AxisUnit => {
    // Nothing at all is none of the usual unit, not fractions of a byte.
    const usual = steps[steps.length - 3];
    if (largest <= 0 && usual) return { by: usual[0], name: usual[1] };
    const [by, name] = steps.find(([s]) => largest >= s) ?? (steps[steps.length - 1] as [number, string]);
    return { by, name };
  };
  switch (unit) {
    case 'celsius': return { by: 1, name: '°C' };
    case 'watts': return largest >= 20000 ? { by: 1000, name: 'kW' } : { by: 1, name: 'W' };
    case 'ratio': case 'bool': return { by: 0.01, name: '%' };
    case 'hertz': return { by: 1e6, name: 'MHz' };
    case 'bytes': return pick([[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']]);
    case 'bytes_per_second': return pick([[1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s'], [1, 'B/s']]);
    case 'joules': return pick([[3.6e6, 'kWh'], [3600, 'Wh']]);
    case 'seconds': return largest < 0.5 ? { by: 0.001, name: 'ms' } : { by: 1, name: 's' };
    default: return { by: 1, name: '' };
  }
}

/** Ends of a y axis: round, with room, and holding what must be seen. */
export function yEnds(low: number, high: number, fixedLow: number | undefined, fixedHigh: number | undefined): [number, number] {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [fixedLow ?? 0, fixedHigh ?? 1];
  const top = fixedHigh !== undefined ? Math.max(fixedHigh, high) : high;
  const bottom = fixedLow !== undefined ? Math.min(fixedLow, low) : low;
  const span = top - bottom || Math.abs(top) || 1;
  const rough = span / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? rough;
  const a = fixedLow !== undefined && fixedLow <= low ? fixedLow : Math.floor((bottom - span * 0.02) / step) * step;
  const b = fixedHigh !== undefined && fixedHigh >= high ? fixedHigh : Math.ceil((top + span * 0.02) / step) * step;
  return [a, b > a ? b : a + step];
}
