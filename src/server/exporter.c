#include "server/exporter.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/exposition.h"
#include "net/gzip.h"
#include "server/exporter_tasks.h"

#ifndef GPUMGR_VERSION
#define GPUMGR_VERSION "unknown"
#endif

#define FRESH_NS (1 * NS_PER_S) /* silence makes values old without any frame: a text is not kept for longer */

void exporter_done(struct exporter *x) {
    http_shared_drop(x->text);
    http_shared_drop(x->packed);
    *x = (struct exporter){0};
}

/* ---- the machines ---- */

static void node_families(struct buf *out, const struct live *l, int64_t now_ns) {
    exposition_family(out, "gpumgr_build_info", "Version of this server; always 1", "gauge");
    buf_puts(out, "gpumgr_build_info");
    exposition_label(out, true, "version", GPUMGR_VERSION);
    exposition_value(out, 1);
    if (!l->count) return;
    exposition_family(out, "gpumgr_node_up", "Whether the machine's gpumgr sends readings", "gauge");
    for (size_t i = 0; i < l->count; i++) {
        buf_puts(out, "gpumgr_node_up");
        exposition_label(out, true, "host", l->node[i]->name);
        exposition_value(out, strcmp(live_node_state(l->node[i], now_ns), "ok") == 0);
    }
}

static bool host_is_known(const struct live_node *n, int id, int64_t now_ns) {
    return host_has(&n->host, id) && strcmp(live_node_state(n, now_ns), "ok") == 0;
}

static void host_families(struct buf *out, const struct live *l, int64_t now_ns) {
    for (int id = 0; id < HOST_METRIC_COUNT; id++) {
        bool is_begun = false;
        for (size_t i = 0; i < l->count; i++) {
            const struct live_node *n = l->node[i];
            if (!host_is_known(n, id, now_ns)) continue;
            if (!is_begun)
                exposition_family(out, host_metrics[id].name, host_metrics[id].help,
                                  metric_kind_name(host_metrics[id].kind));
            is_begun = true;
            buf_puts(out, host_metrics[id].name);
            exposition_label(out, true, "host", n->name);
            exposition_value(out, n->host.value[id]);
        }
    }
}

/* ---- the GPUs ---- */

/* The current values of all devices, laid out as the writer wants them. */
struct cards {
    struct exposition_gpu *of;
    size_t count;
    double *value;
    uint64_t *has;
};

static void cards_done(struct cards *c) {
    free(c->of);
    free(c->value);
    free(c->has);
}

static bool is_up(const struct live_node *n, const struct live_device *d, int64_t now_ns) {
    char why[128];
    return strcmp(live_device_state(n, d, now_ns, why, sizeof why), "ok") == 0;
}

static void card_fill(struct cards *c, const struct live_node *n, const struct live_device *d, int64_t now_ns) {
    double *value = c->value + c->count * METRIC_COUNT;
    uint64_t *has = c->has + c->count * SAMPLE_WORDS;
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (!latest_has(&d->latest, id, live_node_now(n, now_ns))) continue;
        value[id] = d->latest.of[id].value;
        bits_set(has, id);
    }
    c->of[c->count++] = (struct exposition_gpu){
        .is = &d->is, .host = n->name, .value = value, .has = has, .xids = &d->xids, .is_up = is_up(n, d, now_ns)};
}

static void cards_take(struct cards *c, const struct live *l, int64_t now_ns) {
    size_t most = 0;
    for (size_t i = 0; i < l->count; i++) most += l->node[i]->devices;
    *c = (struct cards){.of = calloc(most + 1, sizeof *c->of),
                        .value = calloc(most + 1, METRIC_COUNT * sizeof *c->value),
                        .has = calloc(most + 1, SAMPLE_WORDS * sizeof *c->has)};
    if (!c->of || !c->value || !c->has) abort();
    for (size_t i = 0; i < l->count; i++)
        for (uint16_t k = 0; k < l->node[i]->devices; k++)
            if (l->node[i]->device[k].is_known) card_fill(c, l->node[i], &l->node[i]->device[k], now_ns);
}

struct http_shared *exporter_text(struct exporter *x, const struct live *l, bool has_dcgm, int64_t now_ns) {
    if (x->text && x->version == l->version && x->has_dcgm == has_dcgm && now_ns - x->at_ns < FRESH_NS) return x->text;
    AUTO(buf_done) struct buf out = {0};
    struct cards c;
    cards_take(&c, l, now_ns);
    node_families(&out, l, now_ns);
    host_families(&out, l, now_ns);
    exposition_gpus(&out, c.of, c.count);
    exporter_tasks(&out, l, now_ns);
    if (has_dcgm) exposition_dcgm(&out, c.of, c.count);
    cards_done(&c);
    exporter_done(x);
    *x = (struct exporter){
        .version = l->version, .at_ns = now_ns, .has_dcgm = has_dcgm, .text = http_shared_new(out.s, out.len)};
    return x->text;
}

struct http_shared *exporter_packed(struct exporter *x) {
    AUTO(buf_done) struct buf packed = {0};
    if (!x->packed && gzip_pack(x->text->bytes, x->text->len, &packed))
        x->packed = http_shared_new(packed.s, packed.len);
    return x->packed;
}
