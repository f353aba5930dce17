/* Flush rows that somebody damaged: what comes out of the walk must be what a writer could have put in. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/series_flush.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct seen {
    size_t rounds;
    int64_t sum;
};

static int subject(void *ctx, uint64_t id, const int64_t *at_ms, size_t rounds, struct error *e) {
    struct seen *s = ctx;
    if (id == 0) __builtin_trap();
    s->rounds = rounds;
    for (size_t i = 0; i < rounds; i++) s->sum ^= at_ms[i];
    return 0;
}

static int series(void *ctx, uint64_t id, const uint32_t *round, const int64_t *v, size_t n, enum series_kind kind,
                  struct error *e) {
    struct seen *s = ctx;
    if (n == 0 || n > s->rounds || (kind != SERIES_WHOLE && kind != SERIES_REAL)) __builtin_trap();
    for (size_t i = 0; i < n; i++) {
        if (round[i] >= s->rounds || (i && round[i] <= round[i - 1])) __builtin_trap();
        s->sum ^= v[i];
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static const struct flush_visit visit = {subject, series};
    struct seen s = {0};
    struct error e;
    int r = flush_walk(bytes, n, &visit, &s, &e);
    return r > 0 ? 1 : 0;
}
