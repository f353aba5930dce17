/* A past for browser tests: fills a history file with days of readings that look like work (nights, jobs, a card that gets
 * warm), ending now. The last week has a reading a second; before that one every ten, since only rollups of it are kept.
 *
 *   history_preload PATH DAYS UUID... */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/auto.h"
#include "model/metrics.h"
#include "server/history.h"

#define DAY_S 86400ll
#define FULL_DAYS 7
#define COARSE_S 10
#define FLUSH_S 300
#define GPUS_MAX 16

enum {
    TEMP,
    MEMORY_TEMP,
    TARGET,
    GUARD,
    POWER,
    LIMIT,
    UTIL,
    SM,
    TENSOR,
    DRAM,
    MEMORY,
    CLOCK,
    MEMORY_CLOCK,
    CAP,
    IDLE,
    COUNT
};
static const char *const names[COUNT] = {[TEMP] = "gpu_temperature_celsius",
                                         [MEMORY_TEMP] = "gpu_memory_temperature_celsius",
                                         [TARGET] = "gpu_guard_target_celsius",
                                         [GUARD] = "gpu_guard_limit_ratio",
                                         [POWER] = "gpu_power_watts",
                                         [LIMIT] = "gpu_power_limit_enforced_watts",
                                         [UTIL] = "gpu_utilization_ratio",
                                         [SM] = "gpu_sm_active_ratio",
                                         [TENSOR] = "gpu_tensor_active_ratio",
                                         [DRAM] = "gpu_dram_active_ratio",
                                         [MEMORY] = "gpu_memory_used_bytes",
                                         [CLOCK] = "gpu_sm_clock_hertz",
                                         [MEMORY_CLOCK] = "gpu_memory_clock_hertz",
                                         [CAP] = "gpu_clock_reason_power_cap",
                                         [IDLE] = "gpu_clock_reason_idle"};

static int die(const char *what, const struct error *e) {
    fprintf(stderr, "%s: %s\n", what, e->text);
    exit(1);
}

/* Even numbers between 0 and 1 that follow from two others. */
static double chance(uint64_t a, uint64_t b) {
    uint64_t x = (a + 1) * 0x9e3779b97f4a7c15ull ^ (b + 1) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 31)) * 0x94d049bb133111ebull;
    return (double)(x >> 11) * 0x1p-53;
}

static double stepped(double value, double step) { return round(value / step) * step; }

/* Work comes in jobs of twenty minutes; at night there is less. */
static void fill(int64_t at_s, unsigned gpu, double v[COUNT]) {
    uint64_t job = (uint64_t)at_s / 1200;
    double hour = (double)(at_s % DAY_S) / 3600;
    double day = 0.55 + 0.45 * sin((hour - 9) / 24 * 2 * M_PI);
    double load = chance(job, gpu) < 0.25 + 0.6 * day ? 0.4 + 0.6 * chance(job, gpu + 100) : 0;
    double noise = chance((uint64_t)at_s, gpu) - 0.5;
    v[UTIL] = stepped(load > 0 ? fmin(1, load + 0.1 + noise * 0.06) : 0, 0.01);
    v[SM] = load > 0 ? load * 0.85 + noise * 0.03 : 0;
    v[TENSOR] = v[SM] * 0.8;
    v[DRAM] = v[SM] * 0.3;
    v[POWER] = stepped(fmin(700, 76 + load * 640 + noise * 12), 0.001);
    v[TEMP] = round(31 + load * (gpu == 2 ? 50 : 27) + 3 * day + noise * 1.5);
    v[MEMORY_TEMP] = round(30 + load * 20 + 2 * day);
    v[TARGET] = 84;
    v[LIMIT] = gpu == 2 && load > 0.9 ? 560 : 700;
    v[GUARD] = gpu == 2 && load > 0.9 ? 0.72 : 1;
    v[MEMORY] = load > 0 ? 4e9 + floor(chance(job, gpu + 7) * 120) * 1048576 * 1000 : 0;
    v[CLOCK] = load > 0 ? (load > 0.9 ? 1515e6 : 1980e6) : 345e6;
    v[MEMORY_CLOCK] = 3201e6;
    v[CAP] = load > 0.93;
    v[IDLE] = load == 0;
}

static double scale_of(const char *name) {
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metrics[i].name, name) == 0) return metrics[i].scale;
    fprintf(stderr, "%s is no metric\n", name);
    exit(1);
}

static void store(struct history *h, int64_t now_s) {
    struct error e;
    int r;
    if (history_flush(h, NULL, 0, &e) < 0) die("flush", &e);
    while ((r = history_work(h, now_s * 1000, &e)) > 0) {}
    if (r < 0) die("work", &e);
}

int main(int argc, char **argv) {
    if (argc < 4 || argc - 3 > GPUS_MAX) return 2;
    struct history_options options = {0};
    struct history *h;
    struct error e;
    int handles[GPUS_MAX][COUNT];
    unsigned gpus = (unsigned)argc - 3;
    if (history_open(argv[1], &options, &h, &e) < 0) die("open", &e);
    for (unsigned g = 0; g < gpus; g++)
        for (int m = 0; m < COUNT; m++) {
            char subject[128];
            snprintf(subject, sizeof subject, "gpu:%s", argv[3 + g]);
            if ((handles[g][m] = history_handle(h, subject, names[m], scale_of(names[m]), &e)) < 0) die("series", &e);
        }
    int64_t end_s = time(NULL) / COARSE_S * COARSE_S, begin_s = end_s - atoll(argv[2]) * DAY_S;
    int64_t full_s = end_s - FULL_DAYS * DAY_S, stored_s = begin_s;
    for (int64_t at_s = begin_s; at_s < end_s; at_s += at_s < full_s ? COARSE_S : 1) {
        for (unsigned g = 0; g < gpus; g++) {
            double v[COUNT];
            struct history_value values[COUNT];
            fill(at_s, g, v);
            for (int m = 0; m < COUNT; m++) values[m] = (struct history_value){handles[g][m], v[m]};
            if (history_add(h, at_s * 1000, values, COUNT) != COUNT) fprintf(stderr, "dropped\n");
        }
        if (at_s - stored_s < FLUSH_S) continue;
        store(h, at_s);
        stored_s = at_s;
    }
    store(h, end_s);
    history_close(h);
    return 0;
}
