#include "model/slack.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"

const double slack_bounds[SLACK_BANDS - 1] = {-1, -0.5, -0.2, -0.1, 0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8};

void slack_init(struct slack *s) { *s = (struct slack){.least_ns = INT64_MAX, .last_miss_ns = INT64_MIN}; }

void slack_miss(struct slack *s, int64_t now_ns) {
    s->misses++;
    s->last_miss_ns = now_ns;
}

/* A bound belongs to the band above it: on time is a hit. */
static unsigned band_of(double share) {
    unsigned i = 0;
    while (i < SLACK_BANDS - 1 && share >= slack_bounds[i]) i++;
    return i;
}

void slack_end(struct slack *s, int64_t deadline_ns, int64_t float_ns, bool is_counted, int64_t now_ns) {
    s->tasks++;
    if (deadline_ns <= 0) return;
    if (float_ns >= 0)
        s->hits++;
    else if (!is_counted)
        slack_miss(s, now_ns);
    s->band[band_of((double)float_ns / (double)deadline_ns)]++;
    s->float_ns += float_ns;
    if (float_ns < s->least_ns) s->least_ns = float_ns;
}

double slack_hit_rate(const struct slack *s) {
    uint64_t all = s->hits + s->misses;
    return all ? (double)s->hits / (double)all : NAN;
}

static uint32_t mib(uint64_t bytes) { return bytes >> 20 > UINT32_MAX ? UINT32_MAX : (uint32_t)(bytes >> 20); }

struct node_state node_judge(const struct node_rules *r, const struct slack *s, const struct node_gpu *gpus, size_t n,
                             unsigned running, int64_t now_ns) {
    struct node_state out = {.tasks = running > UINT16_MAX ? UINT16_MAX : (uint16_t)running};
    uint64_t free_bytes = 0, largest = 0;
    bool has_core = false, has_memory = false;
    for (size_t i = 0; i < n; i++) {
        if (!gpus[i].is_usable) continue;
        if (out.gpus < UINT8_MAX) out.gpus++;
        free_bytes += gpus[i].free_bytes;
        if (gpus[i].free_bytes > largest) largest = gpus[i].free_bytes;
        bool is_idle = gpus[i].busy_ratio < r->busy_ratio; /* false for NaN */
        bool is_roomy = (double)gpus[i].free_bytes > (1 - r->full_ratio) * (double)gpus[i].total_bytes;
        has_core |= is_idle;
        has_memory |= is_roomy;
    }
    out.free_mib = mib(free_bytes);
    out.largest_mib = mib(largest);
    out.float_ms = s->float_ns / 1000000;
    if (!out.gpus) out.reasons |= NODE_NO_GPU;
    if (out.gpus && !has_core) out.reasons |= NODE_CORES_FULL;
    if (out.gpus && !has_memory) out.reasons |= NODE_MEMORY_FULL;
    if (s->last_miss_ns != INT64_MIN && now_ns - s->last_miss_ns < r->miss_window_ns) out.reasons |= NODE_MISSED;
    return out;
}

static void put32(uint8_t *out, uint32_t v) {
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get32(const uint8_t *in) {
    return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

/* Float time goes as milliseconds in 32 bits: 24 days either way, and beyond that the bound says enough. */
void node_state_put(const struct node_state *s, uint8_t out[NODE_STATE_BYTES]) {
    int64_t ms = s->float_ms > INT32_MAX ? INT32_MAX : s->float_ms < INT32_MIN ? INT32_MIN : s->float_ms;
    out[0] = s->reasons;
    out[1] = s->gpus;
    out[2] = (uint8_t)s->tasks;
    out[3] = (uint8_t)(s->tasks >> 8);
    put32(out + 4, s->free_mib);
    put32(out + 8, s->largest_mib);
    put32(out + 12, (uint32_t)(int32_t)ms);
}

void node_state_get(const uint8_t in[NODE_STATE_BYTES], struct node_state *ret) {
    *ret = (struct node_state){.reasons = in[0],
                               .gpus = in[1],
                               .tasks = (uint16_t)(in[2] | in[3] << 8),
                               .free_mib = get32(in + 4),
                               .largest_mib = get32(in + 8),
                               .float_ms = (int32_t)get32(in + 12)};
}

void node_state_words(const struct node_state *s, char *ret, size_t room) {
    static const struct {
        enum node_reason bit;
        const char *words;
    } rows[] = {
        {NODE_MISSED,      "missed a deadline lately"       },
        {NODE_CORES_FULL,  "every GPU is busy"              },
        {NODE_MEMORY_FULL, "the memory of every GPU is full"},
        {NODE_NO_GPU,      "no GPU can be used"             },
        {NODE_CORDONED,    "taken out of use by hand"       },
    };
    size_t at = 0;
    if (room) *ret = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!(s->reasons & rows[i].bit) || at >= room) continue;
        int n = snprintf(ret + at, room - at, "%s%s", at ? "; " : "", rows[i].words);
        at += (size_t)n;
    }
}
