/* One reading of one GPU: a value for each catalogue metric that came, and a bit that says so. Absent is never zero.
 * `asked` holds what was tried: a metric that was asked for and did not come is known to be absent now, one that was
 * not asked for keeps what was known before. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/metrics.h"

#define SAMPLE_WORDS ((METRIC_COUNT + 63) / 64)

struct sample {
    int64_t boot_ns, real_ns; /* when the reading began */
    uint64_t asked[SAMPLE_WORDS], has[SAMPLE_WORDS];
    double value[METRIC_COUNT];
};

static inline bool bits_test(const uint64_t *words, int id) { return words[id / 64] >> (id % 64) & 1; }
static inline void bits_set(uint64_t *words, int id) { words[id / 64] |= 1ull << (id % 64); }
static inline void bits_clear(uint64_t *words, int id) { words[id / 64] &= ~(1ull << (id % 64)); }

static inline bool sample_has(const struct sample *s, int id) { return bits_test(s->has, id); }

/* A value that is not a number is a reading that did not come. */
static inline void sample_put(struct sample *s, int id, double value) {
    if (!__builtin_isfinite(value)) return;
    s->value[id] = value;
    bits_set(s->has, id);
}

/* What is known of a GPU now, metric by metric: the value, when it was read, and until when it counts. */
struct latest {
    struct {
        double value;
        int64_t boot_ns;  /* 0: absent */
        int64_t until_ns; /* after this it is too old to show as current */
    } of[METRIC_COUNT];
};

/* Takes a sample into what is known. for_ns: how long the readings of each metric stay current. */
void latest_take(struct latest *l, const struct sample *s, const int64_t for_ns[METRIC_COUNT]);

static inline bool latest_has(const struct latest *l, int id, int64_t now_ns) {
    return l->of[id].boot_ns && now_ns <= l->of[id].until_ns;
}
