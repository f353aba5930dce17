#include "model/series_block.h"

#include <errno.h>
#include <stdlib.h>

#include "model/series_bytes.h"

#define BLOCK_FORMAT 1
/* How many timelines a new one is compared with as a subset: the first ones are the longest. */
#define PARENTS_TRIED 4

void block_begin(struct block_writer *w, struct series_coder *coder, unsigned columns, enum series_effort effort) {
    for (size_t i = 0; i < w->times_count; i++) free(w->times[i].at_ms);
    w->coder = coder;
    w->columns = columns;
    w->effort = effort;
    w->times_count = w->series_count = 0;
    w->last_id = 0;
    buf_clear(&w->times_list);
    buf_clear(&w->series_list);
    buf_clear(&w->times_bytes);
    buf_clear(&w->series_bytes);
    w->from_ms = INT64_MAX;
    w->until_ms = INT64_MIN;
}

void block_writer_done(struct block_writer *w) {
    for (size_t i = 0; i < w->times_count; i++) free(w->times[i].at_ms);
    free(w->times);
    buf_done(&w->times_list);
    buf_done(&w->series_list);
    buf_done(&w->times_bytes);
    buf_done(&w->series_bytes);
    *w = (struct block_writer){0};
}

static uint64_t hash_times(const int64_t *at_ms, size_t n) {
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint64_t)at_ms[i]) * 0x9e3779b97f4a7c15ull;
    return h;
}

/* Where each of n times lies among those of the parent, as skips in ret; false when one is not there. */
static bool find_subset(const struct block_times *parent, const int64_t *at_ms, size_t n, int64_t *ret) {
    if (!parent->is_own || n >= parent->n) return false;
    size_t p = 0;
    for (size_t i = 0; i < n; i++) {
        size_t began = p;
        while (p < parent->n && parent->at_ms[p] < at_ms[i]) p++;
        if (p == parent->n || parent->at_ms[p] != at_ms[i]) return false;
        ret[i] = (int64_t)(p++ - began);
    }
    return true;
}

static struct block_times *times_push(struct block_writer *w, const int64_t *at_ms, size_t n, uint64_t hash) {
    if (w->times_count == w->times_room) {
        w->times_room = w->times_room ? 2 * w->times_room : 8;
        w->times = realloc(w->times, w->times_room * sizeof *w->times);
        if (!w->times) abort();
    }
    struct block_times *t = &w->times[w->times_count++];
    *t = (struct block_times){.at_ms = malloc(n * sizeof *at_ms), .n = n, .hash = hash};
    if (!t->at_ms) abort();
    memcpy(t->at_ms, at_ms, n * sizeof *at_ms);
    return t;
}

static size_t times_of(struct block_writer *w, const int64_t *at_ms, size_t n) {
    uint64_t hash = hash_times(at_ms, n);
    for (size_t i = w->times_count; i-- > 0;) {
        const struct block_times *t = &w->times[i];
        if (t->hash == hash && t->n == n && memcmp(t->at_ms, at_ms, n * sizeof *at_ms) == 0) return i;
    }
    struct block_times *t = times_push(w, at_ms, n, hash);
    size_t index = w->times_count - 1, before = w->times_bytes.len, parent = 0;
    int64_t *skips = malloc(n * sizeof *skips);
    if (!skips) abort();
    for (size_t i = 0; i < index && i < PARENTS_TRIED && !parent; i++)
        if (find_subset(&w->times[i], at_ms, n, skips)) parent = i + 1;
    t->is_own = !parent;
    series_column_put(w->coder, parent ? skips : at_ms, n, w->effort, &w->times_bytes);
    free(skips);
    varint_put(&w->times_list, n);
    varint_put(&w->times_list, parent);
    varint_put(&w->times_list, w->times_bytes.len - before);
    if (at_ms[0] < w->from_ms) w->from_ms = at_ms[0];
    if (at_ms[n - 1] > w->until_ms) w->until_ms = at_ms[n - 1];
    return index;
}

void block_add(struct block_writer *w, uint64_t id, const int64_t *at_ms, size_t n, enum series_kind kind, double step,
               const int64_t *const *columns) {
    size_t times = times_of(w, at_ms, n);
    varint_put(&w->series_list, zigzag((int64_t)(id - w->last_id)));
    varint_put(&w->series_list, times);
    varint_put(&w->series_list, kind);
    if (kind == SERIES_STEP) buf_add(&w->series_list, &step, sizeof step);
    for (unsigned i = 0; i < w->columns; i++) {
        size_t before = w->series_bytes.len;
        series_column_put(w->coder, columns[i], n, w->effort, &w->series_bytes);
        varint_put(&w->series_list, w->series_bytes.len - before);
    }
    w->last_id = id;
    w->series_count++;
}

void block_end(struct block_writer *w, struct buf *ret) {
    struct buf counts = {0};
    varint_put(&counts, w->times_count);
    varint_put(&counts, w->series_count);
    uint32_t len = (uint32_t)(counts.len + w->times_list.len + w->series_list.len);
    const uint8_t head[2] = {BLOCK_FORMAT, (uint8_t)w->columns};
    buf_add(ret, head, sizeof head);
    buf_add(ret, &len, sizeof len);
    buf_add(ret, counts.s, counts.len);
    buf_add(ret, w->times_list.s, w->times_list.len);
    buf_add(ret, w->series_list.s, w->series_list.len);
    buf_add(ret, w->times_bytes.s, w->times_bytes.len);
    buf_add(ret, w->series_bytes.s, w->series_bytes.len);
    buf_done(&counts);
}

int block_head(const uint8_t *bytes, size_t n, size_t blob_len, size_t *ret_len, struct error *e) {
    uint32_t len;
    if (n < BLOCK_HEAD_BYTES || n > blob_len) return fail(e, -EBADMSG, "a block of %zu bytes", blob_len);
    if (bytes[0] != BLOCK_FORMAT) return fail(e, -EBADMSG, "a block of the unknown format %u", bytes[0]);
    if (bytes[1] != BLOCK_RAW_COLUMNS && bytes[1] != BLOCK_ROLL_COLUMNS)
        return fail(e, -EBADMSG, "a block with %u columns a series", bytes[1]);
    memcpy(&len, bytes + 2, sizeof len);
    if (len > blob_len - BLOCK_HEAD_BYTES) return fail(e, -EBADMSG, "a block that ends in its directory");
    *ret_len = BLOCK_HEAD_BYTES + len;
    return 0;
}

void block_done(struct block *b) {
    free(b->times);
    free(b->series);
    *b = (struct block){0};
}

/* Places a piece of len bytes after the others. */
static size_t place(struct bytes *d, size_t *end, size_t len, size_t blob_len) {
    if (len > blob_len - *end) return (size_t)bytes_bad(d);
    size_t at = *end;
    *end += len;
    return at;
}

static void read_times(struct bytes *d, struct block *b, size_t *end, size_t blob_len) {
    for (size_t i = 0; i < b->times_count && !d->is_bad; i++) {
        struct block_timeline *t = &b->times[i];
        t->n = bytes_count(d, SERIES_COLUMN_MAX);
        t->parent = (uint32_t)bytes_count(d, i);
        t->len = bytes_count(d, blob_len);
        t->offset = place(d, end, t->len, blob_len);
        if (t->n == 0) bytes_bad(d);
        if (t->parent && (b->times[t->parent - 1].parent || b->times[t->parent - 1].n < t->n)) bytes_bad(d);
    }
}

static void read_series(struct bytes *d, struct block *b, size_t *end, size_t blob_len) {
    uint64_t id = 0;
    for (size_t i = 0; i < b->series_count && !d->is_bad; i++) {
        struct block_entry *s = &b->series[i];
        s->id = id += (uint64_t)unzigzag(bytes_varint(d));
        s->times = (uint32_t)bytes_varint(d);
        s->kind = (enum series_kind)bytes_count(d, SERIES_KIND_COUNT - 1);
        if (s->times >= b->times_count) bytes_bad(d);
        if (s->kind == SERIES_STEP) {
            uint64_t bits = bytes_u64(d);
            memcpy(&s->step, &bits, sizeof bits);
            if (!__builtin_isfinite(s->step) || s->step <= 0) bytes_bad(d);
        }
        for (unsigned k = 0; k < b->columns; k++) {
            s->len[k] = bytes_count(d, blob_len);
            s->offset[k] = place(d, end, s->len[k], blob_len);
        }
    }
}

static int read_directory(struct block *b, struct bytes d, size_t len, size_t blob_len, struct error *e) {
    /* An entry takes three bytes at least, so what is allocated is bounded by what is there. */
    b->times_count = bytes_count(&d, bytes_left(&d) / 3);
    b->series_count = bytes_count(&d, bytes_left(&d) / 3);
    if (b->series_count > BLOCK_SERIES_MAX) bytes_bad(&d);
    if (d.is_bad) return fail(e, -EBADMSG, "a damaged directory");
    b->times = calloc(b->times_count + 1, sizeof *b->times);
    b->series = calloc(b->series_count + 1, sizeof *b->series);
    if (!b->times || !b->series) return fail(e, -ENOMEM, "a directory of %zu series", b->series_count);
    size_t end = len;
    read_times(&d, b, &end, blob_len);
    read_series(&d, b, &end, blob_len);
    if (d.is_bad || d.at != d.end || end != blob_len) return fail(e, -EBADMSG, "a damaged directory");
    return 0;
}

int block_open(const uint8_t *bytes, size_t n, size_t blob_len, struct block *ret, struct error *e) {
    size_t len = 0;
    int r = block_head(bytes, n, blob_len, &len, e);
    if (r < 0) return r;
    if (n < len) return fail(e, -EBADMSG, "half a directory");
    *ret = (struct block){.columns = bytes[1]};
    r = read_directory(ret, (struct bytes){.at = bytes + BLOCK_HEAD_BYTES, .end = bytes + len}, len, blob_len, e);
    if (r < 0) block_done(ret);
    return r;
}

const struct block_entry *block_find(const struct block *b, uint64_t id) {
    for (size_t i = 0; i < b->series_count; i++)
        if (b->series[i].id == id) return &b->series[i];
    return NULL;
}

static int get(const struct block_source *from, struct series_coder *c, size_t offset, size_t len, int64_t *ret,
               size_t n, struct error *e) {
    const uint8_t *bytes;
    int r = from->read(from->ctx, offset, len, &bytes, e);
    return r < 0 ? r : series_column_get(c, bytes, len, ret, n, e);
}

int block_times(const struct block *b, const struct block_source *from, struct series_coder *c, uint32_t t,
                int64_t *ret, struct error *e) {
    const struct block_timeline *own = &b->times[t];
    if (!own->parent) return get(from, c, own->offset, own->len, ret, own->n, e);
    const struct block_timeline *parent = &b->times[own->parent - 1];
    int64_t *all = malloc(parent->n * sizeof *all);
    if (!all) return fail(e, -ENOMEM, "%zu times", parent->n);
    int r = get(from, c, parent->offset, parent->len, all, parent->n, e);
    if (r >= 0) r = get(from, c, own->offset, own->len, ret, own->n, e);
    size_t at = 0;
    for (size_t i = 0; i < own->n && r >= 0; i++) {
        uint64_t skip = (uint64_t)ret[i];
        if (skip >= parent->n - at) {
            r = fail(e, -EBADMSG, "a timeline runs past the one that it picks from");
            break;
        }
        at += skip;
        ret[i] = all[at++];
        if (at == parent->n && i + 1 < own->n) r = fail(e, -EBADMSG, "a timeline is longer than its parent");
    }
    free(all);
    return r;
}

int block_column(const struct block *b, const struct block_source *from, struct series_coder *c,
                 const struct block_entry *s, unsigned column, int64_t *ret, struct error *e) {
    return get(from, c, s->offset[column], s->len[column], ret, b->times[s->times].n, e);
}
