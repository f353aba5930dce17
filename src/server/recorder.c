#include "server/recorder.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "model/task_json.h"
#include "server/history_tasks.h"

#define FLUSH_MS 5000
#define QUERIES_MAX 256

struct recorder {
    struct history *history;
    struct history_reader *reader;
    struct worker *writer, *asker;
    struct marks_list *marks;
    struct buf marker;        /* of the flush under way */
    bool is_flushing, is_ill; /* is_ill: the last flush failed, which was said */
    _Atomic bool is_ending;
    recorder_health_fn health;
    void *ctx;
    struct error error; /* of the flush under way */
    int result;
};

/* ---- writing ---- */

/* On the writer's thread, as all that writes. */
static void flush_run(void *ctx) {
    struct recorder *r = ctx;
    r->result = history_flush(r->history, r->marker.s, r->marker.len, &r->error);
}

/* Piece by piece: a flush that is due goes first. */
static void work_run(void *ctx) {
    struct recorder *r = ctx;
    struct error e;
    int more = 1;
    while (more > 0 && !atomic_load(&r->is_ending) && !worker_waiting(r->writer))
        more = history_work(r->history, clock_real_ns() / NS_PER_MS, &e);
    if (more < 0) log_line(LOG_ERROR, "history", -1, "%s", e.text);
}

static void flush_done(void *ctx) {
    struct recorder *r = ctx;
    r->is_flushing = false;
    bool was_ill = r->is_ill;
    r->is_ill = r->result < 0;
    if (r->is_ill && !was_ill)
        log_line(LOG_ERROR, "history", -1, "nothing is stored: %s; it is kept in memory and tried again",
                 r->error.text);
    if (!r->is_ill && was_ill) log_line(LOG_INFO, "history", -1, "readings are stored again");
    if (r->is_ill != was_ill) r->health(r->ctx, r->is_ill ? r->error.text : NULL);
    struct error e;
    if (worker_submit(r->writer, work_run, NULL, r, &e) < 0) log_line(LOG_WARN, "history", -1, "%s", e.text);
}

static void on_flush(void *ctx) {
    struct recorder *r = ctx;
    struct error e;
    if (r->is_flushing) return;
    history_seal(r->history); /* what comes from now on is not covered by these marks, and comes again after a crash */
    buf_clear(&r->marker);
    marks_encode(r->marks, &r->marker);
    r->is_flushing = worker_submit(r->writer, flush_run, flush_done, r, &e) >= 0;
}

/* ---- what comes in ---- */

/* Names of metrics that were ever read, only: a card has a third of the catalogue. */
static int series_at(struct recorder *r, int **series, const char *kind, const char *name, const struct metric *of,
                     int count, int id) {
    char subject[208];
    if (!*series) {
        *series = malloc((size_t)count * sizeof **series);
        if (!*series) abort();
        for (int i = 0; i < count; i++) (*series)[i] = INT32_MIN;
    }
    if ((*series)[id] == INT32_MIN) {
        struct error e;
        snprintf(subject, sizeof subject, "%s:%s", kind, name);
        (*series)[id] = history_handle(r->history, subject, of[id].name, of[id].scale, &e);
        if ((*series)[id] < 0) log_line(LOG_ERROR, "history", -1, "%s, %s: %s", subject, of[id].name, e.text);
    }
    return (*series)[id];
}

void recorder_sample(struct recorder *r, struct live_device *d, const struct sample *s) {
    struct history_value values[METRIC_COUNT];
    size_t n = 0;
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (!sample_has(s, i)) continue;
        int series = series_at(r, &d->series, "gpu", d->is.uuid, metrics, METRIC_COUNT, i);
        if (series >= 0) values[n++] = (struct history_value){series, s->value[i]};
    }
    if (n) history_add(r->history, s->real_ns / NS_PER_MS, values, n);
}

void recorder_host(struct recorder *r, struct live_node *node, const struct host_sample *s) {
    struct history_value values[HOST_METRIC_COUNT];
    size_t n = 0;
    for (int i = 0; i < HOST_METRIC_COUNT; i++) {
        if (!host_has(s, i)) continue;
        int series = series_at(r, &node->host_series, "host", node->name, host_metrics, HOST_METRIC_COUNT, i);
        if (series >= 0) values[n++] = (struct history_value){series, s->value[i]};
    }
    if (n) history_add(r->history, s->real_ns / NS_PER_MS, values, n);
}

int64_t recorder_event(struct recorder *r, const char *node, const struct inventory *gpu, const struct event *ev) {
    struct history_event h = {
        .at_ms = ev->real_ns / NS_PER_MS, .severity = ev->severity, .code = ev->code, .pid = ev->pid};
    snprintf(h.subject, sizeof h.subject, "%s:%s", gpu ? "gpu" : "host", gpu ? gpu->uuid : node);
    memcpy(h.kind, ev->kind, sizeof h.kind);
    memcpy(h.text, ev->text, sizeof h.text);
    int64_t id = history_event_add(r->history, &h);
    return id < 0 ? 0 : id;
}

void recorder_soon(struct recorder *r) { on_flush(r); }

/* One that is told again after a crash is the same row. */
void recorder_task(struct recorder *r, const struct live_node *n, const struct wire_task *t) {
    AUTO(buf_done) struct buf gpus = {0}, body = {0};
    struct history_task h = {
        .start_ms = t->start_real_ns / NS_PER_MS, .state = t->task.state, .verdict = t->task.verdict};
    task_json_id(n->boot_id, t, h.key);
    snprintf(h.node, sizeof h.node, "%s", n->name);
    snprintf(h.boot_id, sizeof h.boot_id, "%s", n->boot_id);
    if (task_has_container(t)) {
        snprintf(h.container, sizeof h.container, "%s", t->whose.id);
        task_container_word(t, h.name, sizeof h.name);
    }
    snprintf(h.user, sizeof h.user, "%s", t->user);
    buf_puts(&gpus, "");
    for (uint16_t i = 0; i < t->gpus; i++) buf_printf(&gpus, "%s ", t->gpu[i].uuid);
    task_json(&body, t, n->name, n->boot_id, 0);
    h.gpus = gpus.s ? gpus.s : "";
    h.body = body.s;
    history_task_put(r->history, &h);
}

void recorder_container(struct recorder *r, const struct live_node *n, const struct wire_container *c) {
    AUTO(buf_done) struct buf body = {0};
    struct history_container h = {.seen_ms = clock_real_ns() / NS_PER_MS};
    snprintf(h.node, sizeof h.node, "%s", n->name);
    snprintf(h.id, sizeof h.id, "%s", c->id);
    snprintf(h.name, sizeof h.name, "%s", c->name);
    json_open(&body, '{');
    container_json_pairs(&body, c, n->name, clock_real_ns() - live_node_now(n, clock_boot_ns()));
    json_close(&body, '}');
    h.body = body.s;
    history_container_put(r->history, &h);
}

void recorder_boot(struct recorder *r, const struct live_node *n) {
    history_tasks_lost(r->history, n->name, n->boot_id);
}

/* ---- reading ---- */

int recorder_ask(struct recorder *r, worker_fn run, worker_fn done, void *ctx, struct error *e) {
    return worker_submit(r->asker, run, done, ctx, e);
}

struct history_reader *recorder_reader(struct recorder *r) {
    return r->reader;
}

void recorder_stats(struct recorder *r, struct history_stats *ret) { history_stats(r->history, ret); }

/* ---- life ---- */

static int marks_load(struct recorder *r, struct error *e) {
    const void *bytes;
    size_t len;
    history_marker(r->history, &bytes, &len);
    if (!len) return 0;
    return marks_decode(r->marks, bytes, len, e);
}

int recorder_new(struct loop *l, const char *path, const struct settings *s, struct marks_list *marks,
                 recorder_health_fn health, void *ctx, struct recorder **ret, struct error *e) {
    struct recorder *r = calloc(1, sizeof *r);
    if (!r) abort();
    r->marks = marks;
    r->health = health;
    r->ctx = ctx;
    struct history_options options = {.keep_days = s->keep_days, .rollup_days = s->rollup_days};
    int got = history_open(path, &options, &r->history, e);
    if (got >= 0) got = marks_load(r, e);
    if (got >= 0) got = history_reader_open(r->history, &r->reader, e);
    if (got >= 0) got = worker_new(l, "history", 4, &r->writer, e);
    if (got >= 0) got = worker_new(l, "queries", QUERIES_MAX, &r->asker, e);
    if (got < 0) {
        recorder_free(r);
        return fail_in(e, got, "%s", path);
    }
    loop_every(l, FLUSH_MS, on_flush, r);
    *ret = r;
    return 0;
}

void recorder_free(struct recorder *r) {
    if (!r) return;
    struct error e;
    atomic_store(&r->is_ending, true);
    worker_end(r->asker);
    worker_end(r->writer);
    if (r->writer) {
        history_seal(r->history);
        buf_clear(&r->marker);
        marks_encode(r->marks, &r->marker);
        if (history_flush(r->history, r->marker.s, r->marker.len, &e) < 0)
            log_line(LOG_ERROR, "history", -1, "the last readings are not stored: %s", e.text);
    }
    history_reader_close(r->reader);
    history_close(r->history);
    buf_done(&r->marker);
    free(r);
}
