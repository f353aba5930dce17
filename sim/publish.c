/* From the machine's own numbers to those a driver would show. Rounding and units live here. */
#include "sim/publish.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* What the recorded H200's driver says of itself. */
static const char driver_version[] = "580.159.04", nvml_version[] = "13.580.159.04", gsp_version[] = "580.159.04";
enum { CUDA_VERSION = 13000 };

static const double util_window_s = 1.0 / 6, sample_every_s = 1.0 / 6;

static uint32_t percent(double share) { return (uint32_t)lround(fmin(fmax(share, 0), 1) * 100); }

static uint32_t milliwatts(double w) { return (uint32_t)lround(w * 1000); }

static uint64_t nanoseconds(double s) { return (uint64_t)(s * 1e9); }

static void fill_gpm(const struct plant *p, struct shm_gpm *g) {
    g->elapsed_ns = nanoseconds(p->at_s);
    for (int i = 0; i < UNIT_COUNT; i++) g->busy_ns[i] = nanoseconds(p->totals[i]);
    g->pcie_tx_bytes = (uint64_t)p->pcie_tx_bytes;
    g->pcie_rx_bytes = (uint64_t)p->pcie_rx_bytes;
    g->nvlink_tx_bytes = (uint64_t)p->nvlink_tx_bytes;
    g->nvlink_rx_bytes = (uint64_t)p->nvlink_rx_bytes;
}

static void fill_mig(const struct machine *m, uint32_t i, struct shm_state *s) {
    for (uint32_t k = 0; k < m->card[i].mig_count; k++) {
        s->mig_used_bytes[k] = tasks_memory(&m->tasks, i, k);
        s->mig_gpm[k].elapsed_ns = nanoseconds(m->plant[i].at_s);
        for (int u = 0; u < UNIT_COUNT; u++) s->mig_gpm[k].busy_ns[u] = nanoseconds(m->mig_busy_s[i][k][u]);
    }
}

static void fill_board(const struct board *b, const struct machine *m, struct shm_state *s) {
    /* What flaps is there for 0.7 s and away for 0.7 s. */
    bool away = fmod(m->now_s, 1.4) < 0.7;
    s->blind = b->blind | (away ? b->flapping : 0);
    s->lost = b->lost;
    s->hung = b->hung;
    s->hang_pid = b->hang_pid;
    memcpy(s->hang_call, b->hang_call, sizeof s->hang_call);
    memcpy(s->ecc_corrected, b->ecc_corrected, sizeof s->ecc_corrected);
    memcpy(s->ecc_uncorrected, b->ecc_uncorrected, sizeof s->ecc_uncorrected);
    s->remapped_corrected = b->remapped_corrected;
    s->remapped_uncorrected = b->remapped_uncorrected;
    s->remap_pending = b->remap_pending;
    s->remap_failed = b->remap_failed;
    s->retired_sbe = b->retired_sbe;
    s->retired_dbe = b->retired_dbe;
    s->retired_pending = b->retired_pending;
    s->recovery_action = b->recovery_action;
    s->last_xid = b->last_xid;
    s->ecc_mode = b->ecc_mode;
    s->ecc_pending = b->ecc_pending;
    s->persistence = b->persistence;
    s->compute_mode = b->compute_mode;
    s->app_clocks_restricted = !b->app_clocks_open;
    s->link_replays = b->link_replays;
    s->pcie_replays = b->pcie_replays;
}

static void fill_settings(const struct plant *p, struct shm_state *s) {
    const struct plant_settings *set = &p->set;
    s->limit_mw = s->enforced_mw = milliwatts(set->limit_w);
    s->app_gr_mhz = set->app_gr_mhz ? set->app_gr_mhz : p->card->app_gr_default_mhz;
    s->app_mem_mhz = set->app_mem_mhz ? set->app_mem_mhz : p->card->app_mem_default_mhz;
    s->lock_gr_min_mhz = set->lock_gr_min_mhz;
    s->lock_gr_max_mhz = set->lock_gr_max_mhz;
    s->lock_mem_min_mhz = set->lock_mem_min_mhz;
    s->lock_mem_max_mhz = set->lock_mem_max_mhz;
    s->acoustic_c = (int32_t)set->acoustic_c;
    for (uint32_t i = 0; i < p->card->fan_count; i++) {
        bool dead = p->world.fans_dead >> i & 1;
        s->fan[i].manual = set->fan[i].manual;
        /* A driver says the speed it asks for, also of a fan that stands; only the revolutions tell. */
        s->fan[i].pct = (uint32_t)lround(p->fan_pct[i]);
        s->fan[i].target_pct = set->fan[i].manual ? set->fan[i].pct : s->fan[i].pct;
        s->fan[i].rpm = dead ? 0 : (uint32_t)lround(p->fan_pct[i] / 100 * p->card->fan_max_rpm);
    }
}

static void fill_physics(const struct plant *p, struct shm_state *s) {
    struct plant_point second = plant_average(p, 1), window = plant_average(p, util_window_s);
    s->temp_c = (int32_t)p->sensor[0];
    s->mem_temp_c = (int32_t)p->sensor[1];
    s->margin_c = (int32_t)floor(plant_margin_c(p));
    s->pstate = p->pstate;
    s->power_avg_mw = milliwatts(second.energy_j);
    s->power_inst_mw = milliwatts(plant_power_w(p));
    s->energy_mj = (uint64_t)(p->energy_j * 1000);
    s->sm_mhz = s->gr_mhz = p->gr_mhz;
    s->mem_mhz = p->mem_mhz;
    s->video_mhz = (uint32_t)((double)p->card->video_max_mhz * p->gr_mhz / p->card->gr_max_mhz);
    s->reasons = p->reasons;
    for (int i = 0; i < 16; i++) s->reason_ns[i] = nanoseconds(p->reason_s[i]);
    s->util_gpu = percent(window.busy_s);
    s->util_mem = percent(window.mem_busy_s);
    s->util_enc = percent(window.enc_s);
    s->util_dec = percent(window.dec_s);
    s->util_jpg = percent(window.jpg_s);
    s->util_ofa = percent(window.ofa_s);
    s->util_period_us = (uint32_t)(util_window_s * 1e6);
    s->enc_sessions = s->util_enc > 0;

    /* An idle link goes down to the first generation where the card saves power at rest. */
    s->pcie_gen = p->pstate == 8 ? 1 : p->card->pcie_gen_max;
    s->pcie_width = p->card->pcie_width_max;
    s->pcie_tx_kbps = (uint32_t)(p->pcie_tx_now / 1000);
    s->pcie_rx_kbps = (uint32_t)(p->pcie_rx_now / 1000);
    s->pcie_tx_bytes = (uint64_t)p->pcie_tx_bytes;
    s->pcie_rx_bytes = (uint64_t)p->pcie_rx_bytes;
    for (uint32_t i = 0; i < p->card->link_count; i++) {
        s->link_tx_kib[i] = (uint64_t)(p->nvlink_tx_bytes / 1024 / p->card->link_count);
        s->link_rx_kib[i] = (uint64_t)(p->nvlink_rx_bytes / 1024 / p->card->link_count);
    }
    fill_gpm(p, &s->gpm);
}

static struct shm_proc *proc_slot(struct shm_procs *list, uint32_t pid, uint32_t mig) {
    for (uint64_t i = 0; i < list->count; i++)
        if (list->proc[i].pid == pid && list->proc[i].mig == mig) return &list->proc[i];
    if (list->count == SHM_PROCS_MAX) return NULL;
    struct shm_proc *p = &list->proc[list->count++];
    *p = (struct shm_proc){.pid = pid, .gi = UINT32_MAX, .ci = UINT32_MAX, .mig = mig};
    return p;
}

static void fill_procs(const struct machine *m, uint32_t gpu, uint64_t now_us, struct shm_procs *list) {
    list->count = 0;
    for (unsigned i = 0; i < m->tasks.high; i++) {
        const struct task *t = &m->tasks.slot[i];
        if (!t->used || !(t->ask.gpus >> gpu & 1)) continue;
        uint32_t mig = t->ask.mig < m->card[gpu].mig_count ? t->ask.mig : UINT32_MAX;
        struct shm_proc *p = proc_slot(list, t->pid, mig);
        if (!p) return;
        if (mig != UINT32_MAX) {
            p->gi = m->card[gpu].mig[mig].gi;
            p->ci = m->card[gpu].mig[mig].ci;
        }
        const struct kind *k = &kinds[t->ask.kind];
        p->kinds |= t->ask.is_mps ? SHM_PROC_MPS : k->graphics ? SHM_PROC_GRAPHICS : SHM_PROC_COMPUTE;
        p->used_bytes += t->ask.memory_bytes;
        p->sm_pct += percent(t->share * k->util);
        p->mem_pct += percent(t->share * k->mem_util);
        p->enc_pct += percent(t->share * k->unit[UNIT_NVENC]);
        p->dec_pct += percent(t->share * k->unit[UNIT_NVDEC]);
        p->jpg_pct += percent(t->share * k->unit[UNIT_NVJPG]);
        p->ofa_pct += percent(t->share * k->unit[UNIT_NVOFA]);
        p->util_at_us = now_us;
        memcpy(p->name, t->ask.name, sizeof p->name);
    }
}

static void add_sample(struct shm_gpu *g, const struct shm_state *s) {
    struct shm_samples all = g->samples; /* no one else writes */
    all.sample[all.written++ % SHM_SAMPLES_MAX] = (struct shm_sample){
        .at_us = s->at_us,
        .power_mw = s->power_inst_mw,
        .util_gpu = s->util_gpu,
        .util_mem = s->util_mem,
        .util_enc = s->util_enc,
        .util_dec = s->util_dec,
        .util_jpg = s->util_jpg,
        .util_ofa = s->util_ofa,
        .sm_mhz = s->sm_mhz,
        .mem_mhz = s->mem_mhz,
    };
    shm_write(&g->samples_seq, &g->samples, &all, sizeof all);
}

static struct shm_gpu *gpu_of(struct publisher *p, uint32_t i) {
    return (struct shm_gpu *)((char *)p->root + p->root->gpu_offset + p->root->gpu_stride * i);
}

static void publish_gpu(struct publisher *p, const struct machine *m, uint32_t i, uint64_t now_us, bool sample) {
    struct shm_gpu *g = gpu_of(p, i);
    struct shm_state s = {.at_us = now_us};
    struct shm_procs procs;
    fill_board(&m->board[i], m, &s);
    fill_settings(&m->plant[i], &s);
    fill_physics(&m->plant[i], &s);
    fill_mig(m, i, &s);
    fill_procs(m, i, now_us, &procs);
    s.used_bytes = tasks_memory(&m->tasks, i, UINT32_MAX);
    s.bar1_used_bytes = (1u << 20) + (procs.count << 21);
    shm_write(&g->state_seq, &g->state, &s, sizeof s);
    shm_write(&g->procs_seq, &g->procs, &procs, offsetof(struct shm_procs, proc) + procs.count * sizeof *procs.proc);
    if (sample) add_sample(g, &s);
}

void publish(struct publisher *p, const struct machine *m) {
    struct shm_root *r = p->root;
    uint64_t now_us = (uint64_t)(clock_real_ns() / NS_PER_US);
    bool sample = m->now_s >= p->next_sample_s;
    if (sample) p->next_sample_s = m->now_s + sample_every_s;
    for (uint32_t i = 0; i < m->gpu_count; i++) publish_gpu(p, m, i, now_us, sample);
    atomic_store_explicit(&r->sim_ns, nanoseconds(m->now_s), memory_order_relaxed);
    atomic_store_explicit(&r->beat_ns, (uint64_t)clock_boot_ns(), memory_order_relaxed);
    atomic_store_explicit(&r->costs_on, m->costs_on, memory_order_relaxed);
    atomic_store_explicit(&r->generation, m->generation, memory_order_relaxed);
    atomic_store_explicit(&r->driver, m->driver, memory_order_release);
    atomic_fetch_add_explicit(&r->bell, 1, memory_order_release);
    shm_wake(&r->bell);
}

int publish_open(struct publisher *p, const char *dir, const struct machine *m, struct error *e) {
    char path[4096];
    snprintf(path, sizeof path, "%s/" SHM_FILE, dir);
    size_t offset = (sizeof(struct shm_root) + 63) & ~(size_t)63;
    size_t size = offset + m->gpu_count * sizeof(struct shm_gpu);
    int r = shm_create(path, size, 0644, &p->file, e);
    if (r < 0) return r;

    struct shm_root *root = p->root = p->file.mem;
    root->version = SHM_VERSION;
    root->gpu_count = m->gpu_count;
    root->gpu_stride = sizeof(struct shm_gpu);
    root->gpu_offset = offset;
    root->size_bytes = p->file.size;
    root->cuda_version = CUDA_VERSION;
    root->pid = (uint32_t)getpid();
    snprintf(root->driver_version, sizeof root->driver_version, "%s", driver_version);
    snprintf(root->nvml_version, sizeof root->nvml_version, "%s", nvml_version);
    snprintf(root->gsp_version, sizeof root->gsp_version, "%s", gsp_version);
    snprintf(root->dev_dir, sizeof root->dev_dir, "%s/" SHM_DEV, dir);
    for (uint32_t i = 0; i < m->gpu_count; i++) gpu_of(p, i)->card = m->card[i];
    publish(p, m);
    root->magic = SHM_MAGIC;
    return shm_publish(path, e);
}

void publish_close(struct publisher *p) {
    if (p->root) atomic_store_explicit(&p->root->driver, SHM_DRIVER_DOWN, memory_order_release);
    shm_done(&p->file);
    p->root = NULL;
}
