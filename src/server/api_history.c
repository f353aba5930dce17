/* History for charts: what was asked is resolved here, on the loop; the reading is done by the thread that may wait for a
 * disk; the answer is text by the time it comes back. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/api.h"
#include "server/api_later.h"
#include "server/server.h"

enum { OF_MAX = 64, METRICS_MAX = 16, SERIES_MAX = 256, SUBJECTS_MAX = 4096, POINTS_MAX = 400000 };

const struct route_field api_history_query[] = {
    {"of",                                   FIELD_TEXT, true,
     "With commas: `gpu:UUID`, `host:NAME`, or `node:NAME` and `group:NAME`, which stand for all their GPUs together"},
    {"metric",                                  FIELD_TEXT, true, "Names of the catalogue, with commas"},
    {"from",                                      FIELD_NUMBER, false, "Unix seconds; below zero: before now. An hour before now where it is not given"},
    {"to",FIELD_NUMBER, false, "The same; now where it is not given"},
    {"width", FIELD_NUMBER, false, "How many points are wanted: 800 where it is not given, 10 to 4000"},
    {0                                }
};

/* One line of a chart. */
struct wanted {
    char of[208];
    const struct metric *metric;
    const char **subjects;
    size_t count;
};

struct asking {
    struct later is;
    int64_t from_ms, to_ms;
    size_t width;
    struct wanted series[SERIES_MAX];
    size_t count;
};

static void asking_drop(struct later *l) {
    struct asking *a = (struct asking *)l;
    for (size_t i = 0; i < a->count; i++) {
        for (size_t s = 0; s < a->series[i].count; s++) free((void *)(uintptr_t)a->series[i].subjects[s]);
        free(a->series[i].subjects);
    }
    free(a);
}

/* ---- who is meant ---- */

static void subject_add(struct wanted *w, const char *kind, const char *name) {
    char text[208];
    snprintf(text, sizeof text, "%s:%s", kind, name);
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->subjects[i], text) == 0) return;
    if (w->count >= SUBJECTS_MAX) return;
    const char **more = realloc(w->subjects, (w->count + 1) * sizeof *more);
    char *copy = strdup(text);
    if (!more || !copy) abort();
    w->subjects = more;
    w->subjects[w->count++] = copy;
}

static bool is_host_metric(const struct metric *m) { return m >= host_metrics && m < host_metrics + HOST_METRIC_COUNT; }

static void node_add(struct wanted *w, const struct live *l, const char *name) {
    if (is_host_metric(w->metric)) {
        subject_add(w, "host", name);
        return;
    }
    const struct live_node *n = live_find_node(l, name);
    for (uint16_t i = 0; n && i < n->devices; i++)
        if (n->device[i].is_known && !live_is_instance(&n->device[i])) subject_add(w, "gpu", n->device[i].is.uuid);
}

static int group_add(struct wanted *w, const struct server *s, const char *name, struct error *e) {
    const struct group *g = groups_find(&s->groups, name);
    if (!g) return fail(e, -ENOENT, "there is no group %.60s", name);
    for (const char *m = g->members; *m;) {
        char one[208];
        size_t n = strcspn(m, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, m);
        if (strncmp(one, "node:", 5) == 0)
            node_add(w, &s->live, one + 5);
        else if (!is_host_metric(w->metric))
            subject_add(w, "gpu", one + 4);
        m += n + (m[n] == ',');
    }
    return 0;
}

static int resolve(struct wanted *w, const struct server *s, struct error *e) {
    const char *colon = strchr(w->of, ':'), *name = colon ? colon + 1 : "";
    size_t kind = colon ? (size_t)(colon - w->of) : 0;
    if (!*name) return fail(e, -EINVAL, "of: %.60s is not gpu:, host:, node: or group: and a name", w->of);
    bool is_host = is_host_metric(w->metric);
    if (kind == 3 && memcmp(w->of, "gpu", 3) == 0) {
        if (is_host) return fail(e, -EINVAL, "%s is a metric of machines, not of GPUs", w->metric->name);
        subject_add(w, "gpu", name);
    } else if (kind == 4 && memcmp(w->of, "host", 4) == 0) {
        if (!is_host) return fail(e, -EINVAL, "%s is a metric of GPUs, not of machines", w->metric->name);
        subject_add(w, "host", name);
    } else if (kind == 4 && memcmp(w->of, "node", 4) == 0) {
        node_add(w, &s->live, name);
    } else if (kind == 5 && memcmp(w->of, "group", 5) == 0) {
        return group_add(w, s, name, e);
    } else {
        return fail(e, -EINVAL, "of: %.60s is not gpu:, host:, node: or group: and a name", w->of);
    }
    return 0;
}

static const struct metric *metric_named(const char *name) {
    int id = metric_find(name);
    if (id >= 0) return &metrics[id];
    id = host_metric_find(name);
    return id >= 0 ? &host_metrics[id] : NULL;
}

/* The n-th part of a list with commas; false: there is none. */
static bool part(const char *list, size_t n, char *ret, size_t room) {
    for (; n > 0; n--) {
        list += strcspn(list, ",");
        if (!*list) return false;
        list++;
    }
    snprintf(ret, room, "%.*s", (int)strcspn(list, ","), list);
    return true;
}

static int series_add(struct asking *a, const struct server *s, const char *of, const char *metric, struct error *e) {
    const struct metric *m = metric_named(metric);
    if (!m) return fail(e, -EINVAL, "metric: there is no metric %.80s", metric);
    if (a->count >= SERIES_MAX) return fail(e, -EINVAL, "more than %d series at once", SERIES_MAX);
    struct wanted *w = &a->series[a->count++];
    w->metric = m;
    snprintf(w->of, sizeof w->of, "%s", of);
    return resolve(w, s, e);
}

static int series_all(struct asking *a, const struct call *c, struct error *e) {
    const char *ofs = call_query(c, "of"), *names = call_query(c, "metric");
    char of[256], name[128];
    for (size_t i = 0; part(ofs, i, of, sizeof of); i++) {
        if (i >= OF_MAX) return fail(e, -EINVAL, "of: more than %d", OF_MAX);
        if (strlen(of) > 200) return fail(e, -EINVAL, "of: a name that is too long");
        for (size_t n = 0; part(names, n, name, sizeof name); n++) {
            if (n >= METRICS_MAX) return fail(e, -EINVAL, "metric: more than %d", METRICS_MAX);
            int r = series_add(a, c->server, of, name, e);
            if (r < 0) return r;
        }
    }
    return 0;
}

/* ---- the answer as text (on the reading thread) ---- */

/* As many decimals as the metric's steps have, in thirds: what is more is noise, and costs most of the time. */
static double unit_of(const struct metric *m, double v, bool is_mean) {
    double unit = m->scale >= 1 ? 1 : m->scale >= 0.001 ? 1e3 : 1e6;
    if (m->scale == 0) unit = 1e6;
    if (is_mean && unit < 1e6) unit *= 1e3;
    return fabs(v) >= 1e6 && m->scale != 0 && m->scale < 1 ? unit : fabs(v) >= 1e6 ? 1 : unit;
}

static void put_values(struct buf *b, const char *key, const double *v, size_t n, const struct metric *m,
                       bool is_mean) {
    json_key(b, key);
    json_open(b, '[');
    for (size_t i = 0; i < n; i++) {
        double unit = unit_of(m, v[i], is_mean);
        json_num(b, isfinite(v[i]) ? nearbyint(v[i] * unit) / unit : v[i]);
    }
    json_close(b, ']');
}

static void put_series(struct buf *b, const struct wanted *w, const struct history_answer *got) {
    json_open(b, '{');
    json_pair_str(b, "of", w->of);
    json_pair_str(b, "metric", w->metric->name);
    json_pair_str(b, "resolution", history_tier_name(got->tier));
    json_pair_num(b, "step_s", (double)got->step_ms / 1000);
    json_key(b, "time");
    json_open(b, '[');
    for (size_t i = 0; i < got->n; i++) json_num(b, (double)got->at_ms[i] / 1000);
    json_close(b, ']');
    put_values(b, "mean", got->mean, got->n, w->metric, got->min != NULL);
    if (got->min) put_values(b, "min", got->min, got->n, w->metric, false);
    if (got->max) put_values(b, "max", got->max, got->n, w->metric, false);
    json_close(b, '}');
}

static void put_end(struct asking *a, enum history_tier tier, int64_t step_ms, const struct history_read *read) {
    struct buf *b = &a->is.out;
    json_pair_num(b, "from", (double)a->from_ms / 1000);
    json_pair_num(b, "to", (double)a->to_ms / 1000);
    json_pair_str(b, "resolution", history_tier_name(tier));
    json_pair_num(b, "step_s", (double)step_ms / 1000);
    json_key(b, "read");
    json_open(b, '{');
    json_pair_int(b, "raw_rows", (int64_t)read->rows[HISTORY_RAW]);
    json_pair_int(b, "minute_rows", (int64_t)read->rows[HISTORY_MINUTE]);
    json_pair_int(b, "hour_rows", (int64_t)read->rows[HISTORY_HOUR]);
    json_pair_int(b, "memory", (int64_t)read->memory);
    json_close(b, '}');
    json_close(b, '}');
    buf_putc(b, '\n');
}

static void run(struct later *l) {
    struct asking *a = (struct asking *)l;
    struct history_read read = {0};
    enum history_tier tier = HISTORY_RAW;
    int64_t step_ms = 0;
    json_open(&l->out, '{');
    json_key(&l->out, "series");
    json_open(&l->out, '[');
    for (size_t i = 0; i < a->count; i++) {
        const struct wanted *w = &a->series[i];
        struct history_ask ask = {.subjects = w->subjects,
                                  .subject_count = w->count,
                                  .metric = w->metric->name,
                                  .from_ms = a->from_ms,
                                  .to_ms = a->to_ms,
                                  .width = a->width,
                                  /* rounds of several cards are not together: below a second there is nothing to sum */
                                  .step_ms =
                                      w->count > 1 && a->to_ms - a->from_ms < 1000 * (int64_t)a->width ? 1000 : 0,
                                  .together = metric_together(w->metric)};
        AUTO(history_answer_done) struct history_answer got = {0};
        l->result = w->count ? history_query(l->reader, &ask, &got, &l->error) : 0;
        if (l->result < 0) return;
        put_series(&l->out, w, &got);
        for (int t = 0; t < 3; t++) read.rows[t] += got.read.rows[t];
        read.memory += got.read.memory;
        if (got.tier >= tier && got.n) tier = got.tier, step_ms = got.step_ms;
    }
    json_close(&l->out, ']');
    put_end(a, tier, step_ms, &read);
}

int api_history(struct call *c, struct error *e) {
    double now_s = (double)(clock_real_ns() / NS_PER_MS) / 1000, from_s, to_s, width;
    int r = call_query_number(c, "from", -1e10, 1e10, -3600, &from_s, e);
    if (r >= 0) r = call_query_number(c, "to", -1e10, 1e10, now_s, &to_s, e);
    if (r >= 0) r = call_query_number(c, "width", 10, 4000, 800, &width, e);
    if (r < 0) return r;
    if (from_s < 0) from_s += now_s;
    if (to_s < 0) to_s += now_s;
    if (from_s < 0) from_s = 0;
    if (from_s >= to_s) return fail(e, -EINVAL, "from must be before to");
    struct asking *a = calloc(1, sizeof *a);
    if (!a) abort();
    later_init(&a->is, c, run, asking_drop);
    a->from_ms = llround(from_s * 1000);
    a->to_ms = llround(to_s * 1000);
    a->width = (size_t)width;
    r = series_all(a, c, e);
    if (r >= 0 && a->count * a->width > POINTS_MAX)
        r = fail(e, -EINVAL, "%zu series of %zu points are too many at once: %d points", a->count, a->width,
                 POINTS_MAX);
    return later_submit(&a->is, r, e);
}
