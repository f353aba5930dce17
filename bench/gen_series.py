#!/usr/bin/env python3
"""Deterministic GPU-like telemetry: G gpus x 20 metrics x S seconds at 1 s.
usage: gen_series.py [--fmt prom|openmetrics|columns|csvstat] [--gpus 8] [--secs 86400] [--t0 EPOCH] [--seed 7]
 prom        : text exposition with ms timestamps, time-major (as VictoriaMetrics /api/v1/import/prometheus wants)
 openmetrics : family-major, timestamps in s, for `promtool tsdb create-blocks-from openmetrics` (ends with # EOF)
 columns     : binary, for series_bench: gpu by gpu and metric by metric, S int64 values each
 csvstat     : per-metric min/max/distinct (sanity)
The values are identical in every format (same seed).  Each series has its own random.Random(seed,gpu,metric)."""
import argparse, array, random, sys
M=[ # name, kind
('gpu_temp_c','walk',(30,88,1,0.25)),('gpu_mem_temp_c','walk',(35,95,1,0.2)),
('gpu_power_mw','power',None),('gpu_energy_mj_total','energy',None),
('gpu_sm_clock_mhz','clk',(210,1980,15)),('gpu_mem_clock_mhz','clkfix',(2619,)),('gpu_video_clock_mhz','clk',(210,1545,15)),
('gpu_util_pct','util',None),('gpu_mem_util_pct','util',None),('gpu_enc_util_pct','zero',None),('gpu_dec_util_pct','zero',None),
('gpu_fb_used_bytes','mem',None),('gpu_fb_free_bytes','memfree',None),('gpu_fan_pct','walk',(30,100,1,0.05)),
('gpu_pcie_tx_kbps','traffic',None),('gpu_pcie_rx_kbps','traffic',None),('gpu_pcie_replay_total','rarectr',1e-5),
('gpu_ecc_sbe_total','rarectr',2e-5),('gpu_throttle_reasons','flags',None),('gpu_procs','procs',None)]
TOTAL=85899345920
def phases(seed,g,S):
    """job phases of one GPU: list of (end_second, busy) """
    r=random.Random(f'{seed}/{g}/ph'); t=0; busy=r.random()<.7; out=[]
    while t<S:
        t+=int(r.expovariate(1/ (5400 if busy else 1200)))+60; out.append((t,busy,r.randint(1,9))); busy=not busy
    return out
def series(seed,g,name,kind,p,S):
    r=random.Random(f'{seed}/{g}/{name}'); ph=phases(seed,g,S); pi=0; cur=None; v=0; rnd=r.random; out=[0]*S
    if kind=='walk': v=p[0]+r.randint(5,20)
    if kind=='energy': rp=random.Random(f'{seed}/{g}/gpu_power_mw'); 
    if kind=='energy':
        pw=series(seed,g,'gpu_power_mw','power',None,S); e=r.randint(10**9,10**10)
        for t in range(S): e+=pw[t]; out[t]=e
        return out
    if kind=='memfree': return [TOTAL-x for x in series(seed,g,'gpu_fb_used_bytes','mem',None,S)]
    lvl=0; nxt=0; base=0
    for t in range(S):
        while t>=ph[pi][0]: pi+=1
        busy=ph[pi][1]; k=ph[pi][2]
        if pi!=cur: cur=pi; nxt=t
        if kind=='walk':
            tgt=(p[0]+(p[1]-p[0])*(.75 if busy else .15)); 
            if rnd()<p[3]: v+= 1 if rnd()<(.5+max(-.45,min(.45,(tgt-v)/20))) else -1
        elif kind=='power':
            base=(420000+k*25000) if busy else 68000+k*300
            v=int(base+r.gauss(0,9000 if busy else 250))
        elif kind=='clk':
            if t>=nxt: v=(p[1]-p[2]*r.randint(0,12)) if busy else p[0]+p[2]*(rnd()<.1); nxt=t+r.randint(2,60)
        elif kind=='clkfix': v=p[0]
        elif kind=='util':
            if busy: v=100 if rnd()<.6 else r.randint(80,99)
            else: v=0 if rnd()<.97 else r.randint(1,5)
        elif kind=='zero': v=0
        elif kind=='mem':
            if t>=nxt: v=(k*8*1024**3+r.randint(0,512)*2097152) if busy else 557842432; nxt=t+r.randint(30,900)
        elif kind=='traffic': v=int(abs(r.gauss(2_000_000*k,400_000))) if busy else (0 if rnd()<.8 else r.randint(1,300))
        elif kind=='rarectr':
            if rnd()<p: v+=1
        elif kind=='flags':
            if t>=nxt: v=(4 if rnd()<.2 else 0) if busy else 1; nxt=t+r.randint(5,300)
        elif kind=='procs': v=k if busy else 0
        out[t]=v
    return out
def main():
    a=argparse.ArgumentParser(); a.add_argument('--fmt',default='prom'); a.add_argument('--gpus',type=int,default=8)
    a.add_argument('--secs',type=int,default=86400); a.add_argument('--t0',type=int,default=1790000000-1790000000%86400); a.add_argument('--seed',type=int,default=7)
    o=a.parse_args(); W=sys.stdout.write
    if o.fmt=='csvstat':
        for n,k,p in M:
            d=series(o.seed,0,n,k,p,o.secs); print(n,min(d),max(d),len(set(d)))
        return
    if o.fmt=='columns':
        for g in range(o.gpus):
            for n,k,p in M: array.array('q',series(o.seed,g,n,k,p,o.secs)).tofile(sys.stdout.buffer)
        return
    if o.fmt=='openmetrics':
        for n,k,p in M:
            # every family is declared gauge so that counter/_total naming rules do not interfere
            W(f'# TYPE {n} gauge\n')
            for g in range(o.gpus):
                L=f'{n}{{host="n0",gpu="{g}"}} '
                W(''.join([f'{L}{v} {o.t0+t}\n' for t,v in enumerate(series(o.seed,g,n,k,p,o.secs))]))
        W('# EOF\n'); return
    cols=[(f'{n}{{host="n0",gpu="{g}"}} ',series(o.seed,g,n,k,p,o.secs)) for g in range(o.gpus) for n,k,p in M]
    for t in range(o.secs):
        ts=f' {(o.t0+t)*1000}\n'
        W(''.join([L+str(d[t])+ts for L,d in cols]))
main()
