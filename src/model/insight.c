#include "model/insight.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/auto.h"

#define LONG_S 30 /* shorter runs are mostly their own beginning */

static double percent(double ratio) { return isfinite(ratio) ? ratio * 100 : NAN; }
static double memory_ratio(const struct insight_facts *f) {
    return f->total_bytes ? (double)f->peak_bytes / (double)f->total_bytes : NAN;
}

static bool is_full(const struct insight_facts *f) { return memory_ratio(f) >= 0.95; }
static bool is_over_share(const struct insight_facts *f) { return f->share_bytes && f->peak_bytes > f->share_bytes; }
static bool is_unused(const struct insight_facts *f) { return f->ran_s >= LONG_S && f->gpu_ratio < 0.01; }
static bool is_input_bound(const struct insight_facts *f) {
    return f->ran_s >= LONG_S && f->gpu_ratio < 0.5 && f->cpu_ratio >= 0.9;
}
static bool is_waiting(const struct insight_facts *f) {
    return f->ran_s >= LONG_S && f->gpu_ratio < 0.5 && f->cpu_ratio < 0.5;
}
static bool is_idle_half(const struct insight_facts *f) { return f->ran_s >= LONG_S && f->gpu_ratio < 0.5; }
static bool is_small(const struct insight_facts *f) {
    return f->ran_s >= LONG_S && f->gpus == 1 && !f->share_bytes && f->peak_bytes && memory_ratio(f) < 0.25 &&
           f->gpu_ratio < 0.5;
}
static bool is_busy(const struct insight_facts *f) { return f->ran_s >= LONG_S && f->gpu_ratio >= 0.9; }

enum part { NOTHING, GPU, CPU, PEAK, TOTAL, SHARE };

/* The first that fits is said; the parts are what its format asks for. */
static const struct {
    bool (*fits)(const struct insight_facts *f);
    const char *format, *now; /* now: while it runs; NULL: the same */
    enum part parts[2];
} rows[] = {
    {is_full,        "peak %.1f of %.1f GB: nothing larger would fit",                NULL,                                                            {PEAK, TOTAL} },
    {is_over_share,  "peak %.1f GB, more than the %.1f GB that it asked for",         NULL,                                                            {PEAK, SHARE} },
    {is_unused,
     "GPU %.0f %% busy: it was held and not used",                                    "GPU %.0f %% busy: it is held and not used",
     {GPU, NOTHING}                                                                                                                                                  },
    {is_input_bound,
     "GPU %.0f %% busy while the CPU was at %.0f %%: input-bound",                    "GPU %.0f %% busy while the CPU is at %.0f %%: input-bound",
     {GPU, CPU}                                                                                                                                                      },
    {is_small,       "peak %.1f of %.1f GB and half idle: a share of a GPU would do", NULL,                                                            {PEAK, TOTAL} },
    {is_waiting,
     "GPU %.0f %% and CPU %.0f %% busy: it waited for something else",                "GPU %.0f %% and CPU %.0f %% busy: it waits for something else",
     {GPU, CPU}                                                                                                                                                      },
    {is_idle_half,   "GPU %.0f %% busy",                                              NULL,                                                            {GPU, NOTHING}},
    {is_busy,        "GPU %.0f %% busy",                                              NULL,                                                            {GPU, NOTHING}},
};

static double value_of(const struct insight_facts *f, enum part part) {
    switch (part) {
    case GPU: return percent(f->gpu_ratio);
    case CPU: return percent(f->cpu_ratio);
    case PEAK: return (double)f->peak_bytes / 1e9;
    case TOTAL: return (double)f->total_bytes / 1e9;
    case SHARE: return (double)f->share_bytes / 1e9;
    default: return 0;
    }
}

void insight_sentence(const struct insight_facts *f, char *ret, size_t room) {
    snprintf(ret, room, "%s", "");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!rows[i].fits(f)) continue;
        const char *format = f->is_running && rows[i].now ? rows[i].now : rows[i].format;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(ret, room, format, value_of(f, rows[i].parts[0]), value_of(f, rows[i].parts[1]));
#pragma GCC diagnostic pop
        return;
    }
}
