/* Blocks of a history file that somebody damaged: every column of every series, as a merge would read them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/series_block.h"
#include "model/series_roll.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct blob {
    const uint8_t *bytes;
    size_t n;
};

static int read_blob(void *ctx, size_t offset, size_t len, const uint8_t **ret, struct error *e) {
    const struct blob *b = ctx;
    if (offset > b->n || len > b->n - offset) __builtin_trap();
    *ret = b->bytes + offset;
    return 0;
}

/* Larger columns are right to ask for, and would only make the search slow. */
#define POINTS_MAX 20000

static void read_series(const struct block *b, const struct block_source *from, struct series_coder *c,
                        const struct block_entry *s) {
    struct error e;
    size_t n = b->times[s->times].n;
    const struct block_timeline *t = &b->times[s->times];
    if (n > POINTS_MAX || (t->parent && b->times[t->parent - 1].n > POINTS_MAX)) return;
    int64_t *at = malloc(n * sizeof *at), *column[BLOCK_COLUMNS_MAX];
    struct roll *rolls = malloc(n * sizeof *rolls);
    bool is_good = block_times(b, from, c, s->times, at, &e) >= 0;
    for (unsigned i = 0; i < BLOCK_COLUMNS_MAX; i++) column[i] = malloc(n * sizeof **column);
    for (unsigned i = 0; i < b->columns; i++) is_good = block_column(b, from, c, s, i, column[i], &e) >= 0 && is_good;
    if (is_good && b->columns == BLOCK_ROLL_COLUMNS &&
        roll_from_columns(rolls, n, s->kind != SERIES_REAL, at, column)) {
        size_t kept = roll_settle(rolls, n);
        for (size_t i = 0; i < kept; i++) {
            if (i && rolls[i].at_ms <= rolls[i - 1].at_ms) __builtin_trap();
            if (rolls[i].count < 1) __builtin_trap();
        }
        (void)roll_to_columns(rolls, kept, s->kind != SERIES_REAL, column);
    }
    for (unsigned i = 0; i < BLOCK_COLUMNS_MAX; i++) free(column[i]);
    free(rolls);
    free(at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct series_coder *c;
    if (!c) c = series_coder_new();
    struct blob blob = {bytes, n};
    struct block_source from = {read_blob, &blob};
    struct block b = {0};
    struct error e;
    size_t head;
    if (block_head(bytes, n < BLOCK_HEAD_BYTES ? n : BLOCK_HEAD_BYTES, n, &head, &e) < 0) return 0;
    if (head > n) __builtin_trap();
    if (block_open(bytes, head, n, &b, &e) < 0) return 0;
    for (size_t i = 0; i < b.series_count && i < 64; i++) read_series(&b, &from, c, &b.series[i]);
    block_done(&b);
    return 0;
}
