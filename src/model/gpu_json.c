#include "model/gpu_json.h"

#include <math.h>

#include "base/json.h"
#include "base/number.h"
#include "model/guard_words.h"
#include "model/xid.h"

void gpu_json_time(struct buf *b, const char *key, int64_t real_ns) {
    char text[40];
    number_time_utc(real_ns, text, sizeof text);
    json_pair_str(b, key, text);
}

void gpu_json_number(struct buf *b, const char *key, double value, double scale) {
    char text[64];
    number_text(value, scale, text, sizeof text);
    json_key(b, key);
    buf_puts(b, text);
}

static void put_metrics(struct buf *b, const struct gpu_json *g) {
    json_key(b, "metrics");
    json_open(b, '{');
    for (int i = 0; i < METRIC_COUNT; i++)
        if (latest_has(g->latest, i, g->now_boot_ns))
            gpu_json_number(b, metrics[i].name, g->latest->of[i].value, metrics[i].scale);
    json_close(b, '}');
}

static void put_share(struct buf *b, const char *key, uint16_t percent) {
    if (percent != PROCESS_NO_SHARE) gpu_json_number(b, key, percent / 100.0, 0.01);
}

static void put_process(struct buf *b, const struct gpu_json_process *process) {
    const struct ring_process *p = process->of;
    static const struct {
        uint32_t bit;
        const char *word;
    } kinds[] = {
        {PROCESS_COMPUTE,  "compute" },
        {PROCESS_GRAPHICS, "graphics"},
        {PROCESS_MPS,      "mps"     },
    };
    json_open(b, '{');
    json_pair_int(b, "pid", p->pid);
    if (process->user && *process->user) json_pair_str(b, "user", process->user);
    if (process->command && *process->command) json_pair_str(b, "command", process->command);
    if (process->container && *process->container) json_pair_str(b, "container", process->container);
    if (process->start_real_ns) gpu_json_number(b, "start", (double)process->start_real_ns * 1e-9, 0.1);
    json_key(b, "kinds");
    json_open(b, '[');
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (p->kinds & kinds[i].bit) json_str(b, kinds[i].word);
    json_close(b, ']');
    if (p->memory_bytes != PROCESS_NO_MEMORY) {
        json_key(b, "memory_bytes");
        json_uint(b, p->memory_bytes);
    }
    put_share(b, "sm_ratio", p->sm);
    put_share(b, "memory_ratio", p->memory);
    put_share(b, "encoder_ratio", p->encoder);
    put_share(b, "decoder_ratio", p->decoder);
    if (p->gi != UINT32_MAX) json_pair_int(b, "gpu_instance", p->gi);
    if (p->ci != UINT32_MAX) json_pair_int(b, "compute_instance", p->ci);
    json_close(b, '}');
}

void gpu_json_processes(struct buf *b, const struct gpu_json *g) {
    if (!g->lists_processes) return;
    json_key(b, "processes");
    json_open(b, '[');
    for (uint32_t i = 0; i < g->process_count; i++) {
        struct gpu_json_process p = g->process(g->ctx, i);
        put_process(b, &p);
    }
    json_close(b, ']');
}

void gpu_json_xids(struct buf *b, const struct gpu_json *g) {
    json_key(b, "xids");
    json_open(b, '[');
    for (uint64_t i = 0; i < g->xids->count; i++) {
        const struct xid *x = xid_find(g->xids->of[i].code);
        json_open(b, '{');
        json_pair_int(b, "code", (int64_t)g->xids->of[i].code);
        json_pair_int(b, "count", (int64_t)g->xids->of[i].count);
        gpu_json_time(b, "last", g->xids->of[i].last_real_ns);
        json_pair_str(b, "severity", event_severity_name(x->severity));
        json_pair_str(b, "what", x->what);
        json_pair_str(b, "advice", x->advice);
        json_close(b, '}');
    }
    json_close(b, ']');
}

/* What is not known is left out. `gpumgr guard --json` has the rest. */
void gpu_json_guard(struct buf *b, const struct gpu_json *gpu) {
    const struct ring_guard *g = gpu->guard;
    if (!g) return;
    json_key(b, "guard");
    json_open(b, '{');
    json_pair_str(b, "mode", guard_mode_word(g));
    json_pair_str(b, "lever", guard_lever_words(g));
    if (*g->why) json_pair_str(b, "why", g->why);
    if (g->mode != RING_GUARD_OFF) {
        if (g->lever != GUARD_BY_NONE && isfinite(g->limit)) gpu_json_number(b, "limit", g->limit, 0.001);
        if (g->lever != GUARD_BY_NONE && isfinite(g->baseline)) gpu_json_number(b, "baseline", g->baseline, 0.001);
        if (g->lever != GUARD_BY_NONE) json_pair_str(b, "unit", guard_unit(g));
        if (isfinite(g->target[GUARD_CORE])) gpu_json_number(b, "target", g->target[GUARD_CORE], 0.001);
        json_pair_str(b, "reason", guard_reason_words((enum guard_reason)g->reason));
    }
    json_close(b, '}');
}

void gpu_json_state(struct buf *b, const struct gpu_json *g) {
    json_pair_str(b, "state", g->state);
    if (*g->state_reason) json_pair_str(b, "state_reason", g->state_reason);
    if (g->state_since_real_ns) gpu_json_time(b, "state_since", g->state_since_real_ns);
}

static void put_head(struct buf *b, const struct gpu_json *g) {
    json_pair_int(b, "index", g->is->index);
    json_pair_str(b, "uuid", g->is->uuid);
    json_pair_str(b, "model", g->is->name);
    gpu_json_state(b, g);
}

void gpu_json_instance(struct buf *b, const struct gpu_json *g) {
    json_open(b, '{');
    put_head(b, g);
    json_pair_int(b, "gpu_instance", g->is->gi);
    json_pair_int(b, "compute_instance", g->is->ci);
    put_metrics(b, g);
    gpu_json_processes(b, g);
    json_close(b, '}');
}

void gpu_json_gpu(struct buf *b, const struct gpu_json *g) {
    put_head(b, g);
    if (*g->is->pci) json_pair_str(b, "pci", g->is->pci);
    put_metrics(b, g);
    gpu_json_processes(b, g);
    gpu_json_xids(b, g);
    gpu_json_guard(b, g);
}
