// Short names of catalogue metrics, made from their names, so that a new metric needs nothing here. Pure.
const UNITS = ['bytes_per_second', 'seconds_total', 'joules_total', 'bytes_total', 'celsius', 'watts', 'ratio', 'hertz', 'bytes', 'seconds', 'total'];
const PROPER: Record<string, string> = {
  sm: 'SM', gpu: 'GPU', nvlink: 'NVLink', pcie: 'PCIe', ecc: 'ECC', dram: 'DRAM', fp64: 'FP64', fp32: 'FP32', fp16: 'FP16', bar1: 'BAR1',
  xid: 'XID', tx: 'sent', rx: 'received', cpu: 'CPU', cpus: 'CPUs', rpm: 'turns a minute', ofa: 'optical flow', jpeg: 'JPEG', hw: 'hardware', sw: 'driver', crc: 'CRC',
  iowait: 'I/O wait', load1: 'load, 1 min', load5: 'load, 5 min', load15: 'load, 15 min',
};

export function metricLabel(name: string): string {
  let rest = name.replace(/^(gpu|host)_/, '').replace(/^gpumgr_/, '');
  for (const unit of UNITS) {
    if (rest.endsWith(`_${unit}`)) {
      rest = rest.slice(0, -unit.length - 1);
      break;
    }
  }
  const text = rest.split('_').map((w) => PROPER[w] ?? w).join(' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Which shelf of a metric menu it lies on. */
export function metricShelf(name: string): string {
  if (name.startsWith('host_')) return 'Host';
  if (name.startsWith('gpumgr_')) return 'gpumgr itself';
  if (/temperature/.test(name)) return 'Temperature';
  if (/guard/.test(name)) return 'Guard';
  if (/power|energy/.test(name) && !/reason|seconds|brake/.test(name)) return 'Power';
  if (/reason|seconds_total/.test(name)) return 'Why the clocks are low';
  if (/clock|performance/.test(name)) return 'Clocks';
  if (/utilization|active|occupancy/.test(name)) return 'Utilisation and activity';
  if (/ecc|rows|pages|recovery|xid|replays|crc|recoveries/.test(name)) return 'Errors';
  if (/memory|bar1/.test(name)) return 'Memory';
  if (/pcie|nvlink/.test(name)) return 'Links';
  return 'More';
}

export function shortModel(model: string): string {
  return model.replace(/^NVIDIA /, '').replace(/^(GeForce|Tesla|Quadro) /, '');
}
