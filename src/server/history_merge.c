/* Merging: the rows of a window become one row of the class above, series by series, so that a day of many series needs the
 * memory of one. What is there of the class above already (readings that came late) is taken in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/history_own.h"

struct source {
    struct db_block row;
    struct buf bytes;
    struct block block;
    int64_t **times; /* by timeline, decoded at first use */
};

struct merge {
    struct source *sources;
    size_t count, room;
    struct total {
        uint64_t id;
        size_t n;
    } * ids; /* all series, the most points first */
    size_t id_count;
    struct points p;
};

static void merge_done(struct merge *m) {
    for (size_t i = 0; i < m->count; i++) {
        struct source *s = &m->sources[i];
        for (size_t k = 0; s->times && k < s->block.times_count; k++) free(s->times[k]);
        free(s->times);
        block_done(&s->block);
        buf_done(&s->bytes);
    }
    free(m->sources);
    free(m->ids);
    points_done(&m->p);
}

static int read_bytes(void *ctx, size_t offset, size_t len, const uint8_t **ret, struct error *e) {
    *ret = (const uint8_t *)((const struct buf *)ctx)->s + offset;
    return 0;
}

static int source_open(struct history *h, struct merge *m, const struct db_block *row, struct error *e) {
    if (m->count == m->room) {
        m->room = m->room ? 2 * m->room : 16;
        m->sources = realloc(m->sources, m->room * sizeof *m->sources);
        if (!m->sources) abort();
    }
    struct source *s = &m->sources[m->count++];
    *s = (struct source){.row = *row};
    int r = db_block_data(h->db, row->id, &s->bytes, e);
    if (r < 0) return r;
    r = block_open((const uint8_t *)s->bytes.s, s->bytes.len, s->bytes.len, &s->block, e);
    if (r < 0) return r;
    s->times = calloc(s->block.times_count + 1, sizeof *s->times);
    if (!s->times) abort();
    return 0;
}

static int open_rows(struct history *h, struct merge *m, enum history_class c, int64_t first, int64_t last,
                     struct error *e) {
    struct db_block rows[64];
    int n;
    while ((n = db_blocks(h->db, first, last, rows, ARRAY_LEN(rows), e)) > 0) {
        for (int i = 0; i < n; i++) {
            int r = source_open(h, m, &rows[i], e);
            if (r < 0) return r;
        }
        first = rows[n - 1].id + 1;
    }
    return n;
}

static int by_id(const void *a, const void *b) {
    const struct total *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}
static int by_points(const void *a, const void *b) {
    const struct total *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return by_id(a, b);
}

static void list_series(struct merge *m) {
    size_t all = 0, kept = 0;
    for (size_t i = 0; i < m->count; i++) all += m->sources[i].block.series_count;
    m->ids = malloc((all + 1) * sizeof *m->ids);
    if (!m->ids) abort();
    all = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct block *b = &m->sources[i].block;
        for (size_t k = 0; k < b->series_count; k++)
            m->ids[all++] = (struct total){b->series[k].id, b->times[b->series[k].times].n};
    }
    qsort(m->ids, all, sizeof *m->ids, by_id);
    for (size_t i = 0; i < all; i++)
        if (kept && m->ids[kept - 1].id == m->ids[i].id)
            m->ids[kept - 1].n += m->ids[i].n;
        else
            m->ids[kept++] = m->ids[i];
    qsort(m->ids, kept, sizeof *m->ids, by_points);
    m->id_count = kept;
}

static int times_of(struct history *h, struct source *s, uint32_t t, const int64_t **ret, struct error *e) {
    struct block_source from = {read_bytes, &s->bytes};
    if (!s->times[t]) {
        int64_t *times = malloc(s->block.times[t].n * sizeof *times);
        if (!times) abort();
        int r = block_times(&s->block, &from, h->coder, t, times, e);
        if (r < 0) {
            free(times);
            return r;
        }
        s->times[t] = times;
    }
    *ret = s->times[t];
    return 0;
}

/* What one step of an entry's numbers is worth. */
static double step_of(const struct block_entry *s, double scale) {
    return s->kind == SERIES_WHOLE ? scale : s->kind == SERIES_STEP ? s->step : 1;
}

/* One kind for all sources of a series: theirs when they agree, else real values. */
static enum series_kind common_kind(const struct merge *m, uint64_t id, double scale, double *step) {
    enum series_kind kind = SERIES_KIND_COUNT;
    for (size_t i = 0; i < m->count; i++) {
        const struct block_entry *s = block_find(&m->sources[i].block, id);
        if (!s) continue;
        double own = step_of(s, scale);
        if (kind != SERIES_KIND_COUNT && (s->kind != kind || own != *step)) {
            *step = 1;
            return SERIES_REAL;
        }
        kind = s->kind;
        *step = own;
    }
    return kind;
}

/* What one source has of a series; there is room for it in the points. */
struct piece {
    struct source *source;
    struct block_source from;
    const struct block_entry *entry;
    const int64_t *times;
    size_t n;
};

/* 1, or 0: it has nothing of it. */
static int piece_of(struct history *h, struct merge *m, size_t source, uint64_t id, struct piece *ret,
                    struct error *e) {
    struct source *s = &m->sources[source];
    *ret = (struct piece){
        .source = s, .from = {read_bytes, &s->bytes},
             .entry = block_find(&s->block, id)
    };
    if (!ret->entry) return 0;
    ret->n = s->block.times[ret->entry->times].n;
    points_reserve(&m->p, m->p.n + ret->n);
    int r = times_of(h, s, ret->entry->times, &ret->times, e);
    return r < 0 ? r : 1;
}

static int merge_readings(struct history *h, struct merge *m, uint64_t id, double scale, struct error *e) {
    struct points *p = &m->p;
    double step = 1;
    enum series_kind kind = common_kind(m, id, scale, &step);
    p->n = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct piece s;
        int r = piece_of(h, m, i, id, &s, e);
        if (r < 0) return r;
        if (r == 0) continue;
        memcpy(p->at_ms + p->n, s.times, s.n * sizeof *s.times);
        r = block_column(&s.source->block, &s.from, h->coder, s.entry, 0, p->column[0] + p->n, e);
        if (r < 0) return r;
        for (size_t k = p->n; kind == SERIES_REAL && s.entry->kind != SERIES_REAL && k < p->n + s.n; k++) {
            double v = series_value(s.entry->kind, step_of(s.entry, scale), p->column[0][k]);
            memcpy(&p->column[0][k], &v, sizeof v);
        }
        p->n += s.n;
    }
    points_sort(p);
    if (kind == SERIES_REAL) { /* perhaps whole after all, now that they are together */
        memcpy(p->v, p->column[0], p->n * sizeof *p->v);
        kind = series_scale(p->v, p->n, scale, p->column[0], &step);
    }
    block_add(&h->writers[HISTORY_RAW], id, p->at_ms, p->n, kind, step, (const int64_t *const *)p->column);
    return 0;
}

static int merge_rolls(struct history *h, struct merge *m, uint64_t id, double scale, struct block_writer *w,
                       struct error *e) {
    struct points *p = &m->p;
    double step = 1;
    enum series_kind kind = common_kind(m, id, scale, &step);
    p->n = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct piece s;
        int r = piece_of(h, m, i, id, &s, e);
        if (r == 0) continue;
        for (unsigned k = 0; k < BLOCK_ROLL_COLUMNS && r >= 0; k++)
            r = block_column(&s.source->block, &s.from, h->coder, s.entry, k, p->column[k], e);
        if (r < 0) return r;
        struct roll *rolls = p->rolls + p->n;
        if (!roll_from_columns(rolls, s.n, s.entry->kind != SERIES_REAL, s.times, p->column))
            return fail(e, -EBADMSG, "a damaged rollup");
        double worth = kind == SERIES_REAL ? step_of(s.entry, scale) : 1;
        for (size_t k = 0; k < s.n && worth != 1; k++) {
            rolls[k].min *= worth;
            rolls[k].max *= worth;
            rolls[k].rest *= worth;
        }
        p->n += s.n;
    }
    p->n = roll_settle(p->rolls, p->n);
    rolls_put(w, id, p, p->rolls, p->n, kind, step);
    return 0;
}

static int merge_series(struct history *h, struct merge *m, enum history_tier tier, struct error *e) {
    for (size_t i = 0; i < m->id_count; i++) {
        uint64_t id = m->ids[i].id;
        if (m->ids[i].n > SERIES_COLUMN_MAX) return fail(e, -EBADMSG, "%zu points in one window", m->ids[i].n);
        pthread_mutex_lock(&h->lock);
        const struct named_series *s = names_series_by_id(h, HISTORY_SERIES_BASE + (int64_t)id);
        double scale = s ? s->scale : 0;
        pthread_mutex_unlock(&h->lock);
        if (!s) return fail(e, -EBADMSG, "a block of an unknown series");
        int r = tier == HISTORY_RAW ? merge_readings(h, m, id, scale, e)
                                    : merge_rolls(h, m, id, scale, &h->writers[tier], e);
        if (r < 0) return r;
    }
    return 0;
}

static int replace_rows(struct history *h, const struct merge *m, int64_t key, struct error *e) {
    enum history_class up = (enum history_class)(key >> (KEY_SUBJECT_BITS + KEY_WINDOW_BITS + KEY_NUMBER_BITS));
    struct block_writer *w = &h->writers[history_classes[up].tier];
    struct db_block row = {key, w->from_ms, w->until_ms};
    buf_clear(&h->row);
    block_end(w, &h->row);
    int r = db_begin(h->db, e);
    for (size_t i = 0; i < m->count && r >= 0; i++) r = db_block_delete(h->db, m->sources[i].row.id, e);
    if (r >= 0) r = db_block_put(h->db, &row, &h->row, e);
    if (r >= 0) r = db_commit(h->db, e);
    if (r < 0) db_rollback(h->db);
    return r;
}

int merge_window(struct history *h, struct subject *s, enum history_class c, int64_t key, struct error *e) {
    AUTO(merge_done) struct merge m = {0};
    enum history_class up = (enum history_class)history_classes[c].up;
    enum history_tier tier = history_classes[c].tier;
    int64_t from_ms = key_window(key) * history_classes[c].window_ms;
    int64_t window = class_window(up, from_ms), began = window * history_classes[up].window_ms;
    int64_t first = class_key(c, s->id, class_window(c, began), 0);
    int64_t last = class_key(c, s->id, class_window(c, began + history_classes[up].window_ms - 1), KEY_NUMBERS - 1);
    int64_t target = class_key(up, s->id, window, 0);
    int r = open_rows(h, &m, up, target, target + KEY_NUMBERS - 1, e);
    if (r >= 0) r = open_rows(h, &m, c, first, last, e);
    if (r < 0) return r;
    list_series(&m);
    block_begin(&h->writers[tier], h->coder, tier == HISTORY_RAW ? BLOCK_RAW_COLUMNS : BLOCK_ROLL_COLUMNS,
                history_classes[up].effort);
    r = merge_series(h, &m, tier, e);
    return r < 0 ? r : replace_rows(h, &m, target, e);
}
