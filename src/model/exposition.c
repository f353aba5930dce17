#include "model/exposition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/decimal.h"
#include "model/sample.h"

/* In a help text a quotation mark stands as it is, in a label it is escaped. */
static void escaped(struct buf *out, const char *text, bool is_label) {
    for (; *text; text++) {
        if (*text == '\n')
            buf_puts(out, "\\n");
        else if (*text == '\\')
            buf_puts(out, "\\\\");
        else if (*text == '"' && is_label)
            buf_puts(out, "\\\"");
        else
            buf_putc(out, *text);
    }
}

void exposition_family(struct buf *out, const char *name, const char *help, const char *type) {
    buf_puts(out, "# HELP ");
    buf_puts(out, name);
    buf_putc(out, ' ');
    escaped(out, help, false);
    buf_puts(out, "\n# TYPE ");
    buf_puts(out, name);
    buf_putc(out, ' ');
    buf_puts(out, type);
    buf_putc(out, '\n');
}

void exposition_label(struct buf *out, bool is_first, const char *name, const char *value) {
    buf_putc(out, is_first ? '{' : ',');
    buf_puts(out, name);
    buf_puts(out, "=\"");
    escaped(out, value, true);
    buf_putc(out, '"');
}

void exposition_value(struct buf *out, double value) {
    char text[DECIMAL_MAX];
    buf_puts(out, "} ");
    buf_add(out, text, decimal_put(text, value));
    buf_putc(out, '\n');
}

/* Labels are the same on every line of a card: made once for all families. */
struct labels {
    struct buf *text;
    size_t count;
};

static void labels_done(struct labels *l) {
    for (size_t i = 0; i < l->count; i++) buf_done(&l->text[i]);
    free(l->text);
}

static struct labels labels_make(const struct exposition_gpu *gpus, size_t n,
                                 void (*each)(struct buf *, const struct exposition_gpu *)) {
    struct labels l = {.text = calloc(n, sizeof *l.text), .count = n};
    if (!l.text) abort();
    for (size_t i = 0; i < n; i++) each(&l.text[i], &gpus[i]);
    return l;
}

static void number_label(struct buf *out, const char *name, int value) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    exposition_label(out, false, name, text);
}

static void own_labels(struct buf *out, const struct exposition_gpu *g) {
    char index[16];
    snprintf(index, sizeof index, "%d", g->is->index);
    exposition_label(out, true, "uuid", g->is->uuid);
    exposition_label(out, false, "gpu", index);
    exposition_label(out, false, "model", g->is->name);
    exposition_label(out, false, "host", g->host);
    if (g->is->parent < 0) return;
    number_label(out, "gpu_instance", g->is->gi);
    number_label(out, "compute_instance", g->is->ci);
}

static void dcgm_labels(struct buf *out, const struct exposition_gpu *g) {
    char index[16], device[24];
    snprintf(index, sizeof index, "%d", g->is->index);
    snprintf(device, sizeof device, "nvidia%d", g->is->minor >= 0 ? g->is->minor : g->is->index);
    exposition_label(out, true, "gpu", index);
    exposition_label(out, false, "UUID", g->is->uuid);
    exposition_label(out, false, "pci_bus_id", g->is->pci);
    exposition_label(out, false, "device", device);
    exposition_label(out, false, "modelName", g->is->name);
    exposition_label(out, false, "Hostname", g->host);
    exposition_label(out, false, "hostname", g->host);
    exposition_label(out, false, "DCGM_FI_DRIVER_VERSION", g->is->driver);
    if (g->is->parent >= 0) number_label(out, "GPU_I_ID", g->is->gi);
}

static bool has(const struct exposition_gpu *g, int id) { return g->is_up && bits_test(g->has, id); }

static bool is_anywhere(const struct exposition_gpu *gpus, size_t n, int id) {
    for (size_t i = 0; i < n; i++)
        if (has(&gpus[i], id)) return true;
    return false;
}

/* What one of our units is in dcgm-exporter's: percent, MiB, MHz, mJ, and microseconds; activity stays a ratio. */
static double dcgm_factor(const struct metric *m) {
    switch (m->unit) {
    case UNIT_RATIO: return strncmp(m->dcgm, "DCGM_FI_PROF_", 13) == 0 ? 1 : 100;
    case UNIT_BYTES: return 1.0 / (1 << 20);
    case UNIT_HERTZ: return 1e-6;
    case UNIT_JOULES: return 1e3;
    case UNIT_SECONDS: return 1e6;
    default: return 1;
    }
}

static double dcgm_value(const struct metric *m, double v) {
    v *= dcgm_factor(m);
    return m->unit == UNIT_RATIO && strncmp(m->dcgm, "DCGM_FI_PROF_", 13) == 0 ? v : nearbyint(v * 1000) / 1000;
}

static void gpus_families(struct buf *out, const struct exposition_gpu *gpus, size_t n, const struct labels *l,
                          bool is_dcgm) {
    for (int id = 0; id < METRIC_COUNT; id++) {
        const struct metric *m = &metrics[id];
        const char *name = is_dcgm ? m->dcgm : m->name;
        if (!*name || !is_anywhere(gpus, n, id)) continue;
        exposition_family(out, name, m->help, metric_kind_name(m->kind));
        for (size_t i = 0; i < n; i++) {
            if (!has(&gpus[i], id)) continue;
            buf_puts(out, name);
            buf_add(out, l->text[i].s, l->text[i].len);
            exposition_value(out, is_dcgm ? dcgm_value(m, gpus[i].value[id]) : gpus[i].value[id]);
        }
    }
}

static void up_family(struct buf *out, const struct exposition_gpu *gpus, size_t n, const struct labels *l) {
    exposition_family(out, "gpu_up", "Whether the GPU answers: 0 when it is lost or silent", "gauge");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, "gpu_up");
        buf_add(out, l->text[i].s, l->text[i].len);
        exposition_value(out, gpus[i].is_up);
    }
}

static void info_family(struct buf *out, const struct exposition_gpu *gpus, size_t n, const struct labels *l) {
    exposition_family(out, "gpu_info", "What the GPU is; always 1", "gauge");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, "gpu_info");
        buf_add(out, l->text[i].s, l->text[i].len);
        exposition_label(out, false, "pci", gpus[i].is->pci);
        exposition_label(out, false, "driver", gpus[i].is->driver);
        exposition_label(out, false, "vbios", gpus[i].is->vbios);
        exposition_label(out, false, "serial", gpus[i].is->serial);
        exposition_value(out, 1);
    }
}

/* A counter for each code that was seen: the last code as a value, which others export, hides how often and what else. */
static void xid_family(struct buf *out, const struct exposition_gpu *gpus, size_t n, const struct labels *l) {
    bool is_begun = false;
    for (size_t i = 0; i < n; i++)
        for (uint64_t k = 0; gpus[i].xids && k < gpus[i].xids->count && k < RING_XIDS_MAX; k++) {
            char code[24];
            if (!is_begun) exposition_family(out, "gpu_xid_code_errors_total", "XID errors by code", "counter");
            is_begun = true;
            snprintf(code, sizeof code, "%llu", (unsigned long long)gpus[i].xids->of[k].code);
            buf_puts(out, "gpu_xid_code_errors_total");
            buf_add(out, l->text[i].s, l->text[i].len);
            exposition_label(out, false, "xid", code);
            exposition_value(out, (double)gpus[i].xids->of[k].count);
        }
}

void exposition_gpus(struct buf *out, const struct exposition_gpu *gpus, size_t n) {
    if (!n) return;
    AUTO(labels_done) struct labels l = labels_make(gpus, n, own_labels);
    up_family(out, gpus, n, &l);
    info_family(out, gpus, n, &l);
    gpus_families(out, gpus, n, &l, false);
    xid_family(out, gpus, n, &l);
}

static const struct ring_xids *xids_of(const struct exposition_gpu *g) {
    return g->xids && g->xids->count ? g->xids : NULL;
}

static void dcgm_xids(struct buf *out, const struct exposition_gpu *gpus, size_t n, const struct labels *l) {
    bool is_begun = false;
    for (size_t i = 0; i < n; i++) {
        const struct ring_xids *x = xids_of(&gpus[i]);
        uint64_t newest = 0;
        if (!x) continue;
        for (uint64_t k = 1; k < x->count && k < RING_XIDS_MAX; k++)
            if (x->of[k].last_real_ns > x->of[newest].last_real_ns) newest = k;
        if (!is_begun) exposition_family(out, "DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error", "gauge");
        is_begun = true;
        buf_puts(out, "DCGM_FI_DEV_XID_ERRORS");
        buf_add(out, l->text[i].s, l->text[i].len);
        exposition_value(out, (double)x->of[newest].code);
    }
}

void exposition_dcgm(struct buf *out, const struct exposition_gpu *gpus, size_t n) {
    if (!n) return;
    AUTO(labels_done) struct labels l = labels_make(gpus, n, dcgm_labels);
    gpus_families(out, gpus, n, &l, true);
    dcgm_xids(out, gpus, n, &l);
}
