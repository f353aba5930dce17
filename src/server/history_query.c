/* Queries: which tier answers, which rows of it, and what comes of them. A reader sees one moment: its snapshot of the
 * file and its copy of memory are taken under the gate, everything after that without any lock. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/history_own.h"
#include "server/history_query.h"

#define POINTS_MAX 200000
#define SUBJECTS_MAX 4096

int history_reader_open(struct history *h, struct history_reader **ret, struct error *e) {
    struct history_reader *r = calloc(1, sizeof *r);
    if (!r) abort();
    r->h = h;
    int k = db_open(h->path, false, &r->db, e);
    if (k < 0) {
        free(r);
        return k;
    }
    r->coder = series_coder_new();
    *ret = r;
    return 0;
}

void history_reader_close(struct history_reader *r) {
    if (!r) return;
    db_close(r->db);
    series_coder_free(r->coder);
    points_done(&r->p);
    free(r);
}

void history_answer_done(struct history_answer *a) {
    free(a->at_ms);
    free(a->min);
    free(a->mean);
    free(a->max);
    *a = (struct history_answer){0};
}

static void gathered_done(struct gathered *g) {
    free(g->rolls);
    free(g->series);
    *g = (struct gathered){0};
}

static void gathered_reserve(struct gathered *g, size_t more) {
    if (g->room - g->n >= more) return;
    g->room = g->n + more > 2 * g->room ? g->n + more : 2 * g->room;
    g->rolls = realloc(g->rolls, g->room * sizeof *g->rolls);
    if (!g->rolls) abort();
}

/* Readings of one run that lie in the range. Under lock. */
static void copy_run(struct gathered *g, const struct run *r, const struct rounds *rounds,
                     const struct history_ask *ask) {
    gathered_reserve(g, r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        int64_t at_ms = rounds->at_ms[r->round[i]];
        if (at_ms < ask->from_ms || at_ms >= ask->to_ms) continue;
        g->rolls[g->n++] = (struct roll){at_ms, 1, r->v[i], r->v[i], 0};
    }
}

/* Who is asked for and what memory holds of it. Under lock. */
static void look_up(struct history *h, const struct history_ask *ask, struct gathered *g, const char *name) {
    struct subject *s = names_subject(h, name);
    if (!s) return;
    g->subject = s->id;
    g->series = malloc((s->series_count + 1) * sizeof *g->series);
    if (!g->series) abort();
    for (size_t i = 0; i < s->series_count; i++) {
        const struct named_series *k = s->series[i];
        if (strcmp(k->name, ask->metric) != 0) continue;
        g->series[g->series_count++] = (struct wanted){(uint64_t)(k->id - HISTORY_SERIES_BASE), k->scale};
        copy_run(g, &k->old, &s->old, ask);
        copy_run(g, &k->now, &s->now, ask);
    }
    g->memory = g->n;
}

/* Memory gives readings as they were added; the file gives them as steps. The same reading must look the same. */
static void settle_memory(struct gathered *g) {
    if (g->series_count != 1) return;
    size_t kept = 0;
    roll_sort(g->rolls, g->n);
    for (size_t i = 0; i < g->n; i++) { /* what was sent again counts once, in rollups too */
        if (kept && g->rolls[kept - 1].at_ms == g->rolls[i].at_ms) kept--;
        g->rolls[kept++] = g->rolls[i];
    }
    g->n = kept;
    for (size_t i = 0; i < g->n; i++) {
        int64_t k;
        double step;
        enum series_kind kind = series_scale(&g->rolls[i].min, 1, g->series[0].scale, &k, &step);
        g->rolls[i].min = g->rolls[i].max = series_value(kind, step, k);
    }
}

static bool is_wanted(const struct block_entry *s, const struct gathered *g, double *scale) {
    for (size_t i = 0; i < g->series_count; i++)
        if (g->series[i].id == s->id) {
            *scale = g->series[i].scale;
            return true;
        }
    return false;
}

/* One series of a row: its points that lie in the range. */
static int take_entry(struct history_reader *r, const struct block *b, const struct block_entry *s, double step,
                      const struct history_ask *ask, int64_t lasts_ms, struct gathered *g, struct error *e) {
    struct block_source from = {db_blob_read, r->db};
    struct points *p = &r->p;
    bool is_raw = b->columns == BLOCK_RAW_COLUMNS;
    p->n = b->times[s->times].n;
    points_reserve(p, p->n);
    int k = block_times(b, &from, r->coder, s->times, p->at_ms, e);
    for (unsigned i = 0; i < b->columns && k >= 0; i++) k = block_column(b, &from, r->coder, s, i, p->column[i], e);
    if (k < 0) return k;
    if (!is_raw && !roll_from_columns(p->rolls, p->n, s->kind != SERIES_REAL, p->at_ms, p->column))
        return fail(e, -EBADMSG, "a damaged rollup");
    gathered_reserve(g, p->n);
    for (size_t i = 0; i < p->n; i++) {
        bool is_before = lasts_ms ? p->at_ms[i] + lasts_ms <= ask->from_ms : p->at_ms[i] < ask->from_ms;
        if (is_before || p->at_ms[i] >= ask->to_ms) continue;
        struct roll *to = &g->rolls[g->n++];
        if (is_raw) {
            double v = series_value(s->kind, step, p->column[0][i]);
            *to = (struct roll){p->at_ms[i], 1, v, v, 0};
        } else {
            *to = p->rolls[i];
            to->min *= step;
            to->max *= step;
            to->rest *= step;
        }
    }
    return 0;
}

static int take_row(struct history_reader *r, int64_t id, const struct history_ask *ask, int64_t lasts_ms,
                    struct gathered *g, struct error *e) {
    size_t len, head;
    const uint8_t *bytes;
    AUTO(block_done) struct block b = {0};
    int k = db_blob_open(r->db, id, &len, e);
    size_t first = len < 1024 ? len : 1024; /* most directories fit */
    if (k >= 0) k = db_blob_read(r->db, 0, first, &bytes, e);
    if (k >= 0) k = block_head(bytes, first, len, &head, e);
    if (k >= 0 && head > first) k = db_blob_read(r->db, 0, first = head, &bytes, e);
    if (k >= 0) k = block_open(bytes, first, len, &b, e);
    for (size_t i = 0; i < b.series_count && k >= 0; i++) {
        const struct block_entry *s = &b.series[i];
        double scale;
        if (!is_wanted(s, g, &scale)) continue;
        double step = s->kind == SERIES_WHOLE ? scale : s->kind == SERIES_STEP ? s->step : 1;
        k = take_entry(r, &b, s, step, ask, lasts_ms, g, e);
    }
    return k;
}

/* All rows of a tier that overlap the range. A row that cannot be read is a gap, not the end of the answer. */
static int take_tier(struct history_reader *r, enum history_tier tier, const struct history_ask *ask,
                     struct gathered *g, struct history_read *read, struct error *e) {
    int64_t lasts_ms = history_tier_ms[tier], from_ms = ask->from_ms - lasts_ms;
    if (from_ms < 0) from_ms = 0;
    for (int c = CLASS_COUNT - 1; c >= 0; c--) { /* older ones first: then little is left to sort */
        if (history_classes[c].tier != tier) continue;
        int64_t first = class_key((enum history_class)c, g->subject, class_window((enum history_class)c, from_ms), 0);
        int64_t last = class_key((enum history_class)c, g->subject, class_window((enum history_class)c, ask->to_ms - 1),
                                 KEY_NUMBERS - 1);
        struct db_block rows[64];
        int n;
        while ((n = db_blocks(r->db, first, last, rows, ARRAY_LEN(rows), e)) > 0) {
            for (int i = 0; i < n; i++) {
                if (rows[i].until_ms + lasts_ms < ask->from_ms || rows[i].from_ms >= ask->to_ms) continue;
                int k = take_row(r, rows[i].id, ask, lasts_ms, g, e);
                if (k < 0 && k != -EBADMSG) return k;
                read->rows[tier]++;
            }
            first = rows[n - 1].id + 1;
        }
        if (n < 0) return n;
    }
    return 0;
}

/* When a tier begins for a subject: INT64_MAX when the file has nothing of it. */
static int tier_begins(struct history_reader *r, enum history_tier tier, int64_t subject, int64_t *ret,
                       struct error *e) {
    *ret = INT64_MAX;
    for (int c = 0; c < CLASS_COUNT; c++) {
        struct db_block row;
        if (history_classes[c].tier != tier) continue;
        int k = db_blocks(r->db, class_key((enum history_class)c, subject, 0, 0),
                          class_key((enum history_class)c, subject + 1, 0, 0) - 1, &row, 1, e);
        if (k < 0) return k;
        if (k > 0 && row.from_ms < *ret) *ret = row.from_ms;
    }
    return 0;
}

/* Readings that are kept no longer are answered by minutes, for the whole range: two widths of point on one line would
 * look like a change. */
static int raw_is_gone(struct history_reader *r, const struct history_ask *ask, const struct gathered *g,
                       struct error *e) {
    int64_t raw_ms, minute_ms;
    int k = tier_begins(r, HISTORY_RAW, g->subject, &raw_ms, e);
    if (k < 0 || (raw_ms != INT64_MAX && raw_ms <= ask->from_ms)) return k;
    k = tier_begins(r, HISTORY_MINUTE, g->subject, &minute_ms, e);
    if (k < 0 || minute_ms == INT64_MAX) return k;
    return minute_ms < ask->to_ms && (raw_ms == INT64_MAX || roll_floor(raw_ms, MS_PER_MINUTE) > minute_ms);
}

static int64_t step_of(const struct history_ask *ask) {
    int64_t range = ask->to_ms - ask->from_ms;
    int64_t step = ask->step_ms ? ask->step_ms : (range + (int64_t)ask->width - 1) / (int64_t)ask->width;
    return step < 1 ? 1 : step;
}

static enum history_tier tier_of(int64_t step_ms) {
    return step_ms >= MS_PER_HOUR ? HISTORY_HOUR : step_ms >= MS_PER_MINUTE ? HISTORY_MINUTE : HISTORY_RAW;
}

static int check(const struct history_ask *ask, struct error *e) {
    if (ask->from_ms < 0 || ask->to_ms > HISTORY_TIME_MAX_MS || ask->from_ms >= ask->to_ms)
        return fail(e, -EINVAL, "a range from %lld to %lld ms", (long long)ask->from_ms, (long long)ask->to_ms);
    if (ask->step_ms < 0 || (ask->step_ms == 0 && ask->width == 0))
        return fail(e, -EINVAL, "neither a step nor a width");
    if ((ask->to_ms - ask->from_ms) / step_of(ask) > POINTS_MAX)
        return fail(e, -EINVAL, "more than %d points", POINTS_MAX);
    if (ask->subject_count == 0 || ask->subject_count > SUBJECTS_MAX)
        return fail(e, -EINVAL, "%zu subjects, not 1 to %d", ask->subject_count, SUBJECTS_MAX);
    return 0;
}

/* The snapshot, and what memory has, as of the same moment. */
static int begin(struct history_reader *r, const struct history_ask *ask, struct gathered *g, struct error *e) {
    pthread_mutex_lock(&r->h->gate);
    int k = db_snapshot(r->db, e);
    pthread_mutex_lock(&r->h->lock);
    for (size_t i = 0; i < ask->subject_count && k >= 0; i++) look_up(r->h, ask, &g[i], ask->subjects[i]);
    pthread_mutex_unlock(&r->h->lock);
    pthread_mutex_unlock(&r->h->gate);
    for (size_t i = 0; i < ask->subject_count; i++) settle_memory(&g[i]);
    return k;
}

static int gather(struct history_reader *r, const struct history_ask *ask, struct gathered *g, struct history_answer *a,
                  struct error *e) {
    int k = begin(r, ask, g, e);
    int64_t step = step_of(ask);
    a->tier = tier_of(step);
    for (size_t i = 0; i < ask->subject_count && k >= 0 && a->tier == HISTORY_RAW; i++) {
        if (g[i].series_count == 0) continue;
        k = raw_is_gone(r, ask, &g[i], e);
        if (k > 0) a->tier = HISTORY_MINUTE;
    }
    int64_t least = history_tier_ms[a->tier];
    a->step_ms = least && step < least ? least : least ? step / least * least : step;
    struct sum *sum = NULL;
    for (size_t i = 0; i < ask->subject_count && k >= 0; i++) {
        a->read.memory += g[i].memory;
        size_t memory = g[i].n;
        if (g[i].series_count) k = take_tier(r, a->tier, ask, &g[i], &a->read, e);
        roll_rotate(g[i].rolls, g[i].n, memory);
        if (k < 0 || answer_is_readings(a, ask, &g[i])) break;
        if (!sum) sum = answer_begin(a, ask);
        answer_add(a, ask, sum, &g[i]);
        gathered_done(&g[i]);
    }
    db_rollback(r->db);
    answer_end(a, ask, sum);
    return k;
}

int history_query(struct history_reader *r, const struct history_ask *ask, struct history_answer *ret,
                  struct error *e) {
    int k = check(ask, e);
    if (k < 0) return k;
    AUTO(history_answer_done) struct history_answer a = {0};
    struct gathered *g = calloc(ask->subject_count + 1, sizeof *g);
    if (!g) abort();
    k = gather(r, ask, g, &a, e);
    for (size_t i = 0; i < ask->subject_count; i++) gathered_done(&g[i]);
    free(g);
    if (k < 0) return k;
    *ret = TAKE_STRUCT(a);
    return 0;
}
