/* Follows the rings of an instance as any reader would and tells how late the samples began, how many were missed, and
 * when the first one was there. Prints one line of JSON. For bench/watch. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/shm.h"
#include "model/ring.h"

#define SAMPLES_MAX 2000000

static float late_us[SAMPLES_MAX];
static size_t late_count, missed;
static int64_t first_ns = INT64_MAX, first_of_last_ns;

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double quantile(double q) {
    if (late_count == 0) return -1;
    size_t i = (size_t)(q * (double)late_count);
    return (double)late_us[i < late_count ? i : late_count - 1];
}

static void take(const struct ring *r, uint32_t device, uint64_t *next) {
    struct sample s;
    uint64_t head = ring_head(r, device);
    for (; *next <= head; ++*next) {
        if (!ring_sample(r, device, *next, &s)) {
            missed++;
        } else if (sample_has(&s, METRIC_SELF_LATE) && late_count < SAMPLES_MAX) {
            late_us[late_count++] = (float)(s.value[METRIC_SELF_LATE] * 1e6);
        }
    }
}

/* When each GPU's oldest sample began: the first of all, and the first of the GPU that came last. */
static void firsts(const struct ring *r) {
    for (uint32_t d = 0; d < ring_devices(r); d++) {
        struct sample s;
        if (!ring_sample(r, d, 1, &s)) continue;
        if (s.boot_ns < first_ns) first_ns = s.boot_ns;
        if (s.boot_ns > first_of_last_ns) first_of_last_ns = s.boot_ns;
    }
}

int main(int argc, char **argv) {
    struct error e;
    struct shm shm = {0};
    struct ring r;
    static uint64_t next[DEVICE_MAX];
    if (argc != 3) {
        fprintf(stderr, "usage: ring_late RING SECONDS\n");
        return 2;
    }
    int64_t until_ns = clock_boot_ns() + (int64_t)(atof(argv[2]) * 1e9);
    if (shm_open_file(argv[1], false, 4096, &shm, &e) < 0 || ring_attach(&r, shm.mem, shm.size, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    firsts(&r);
    for (uint32_t d = 0; d < ring_devices(&r); d++) next[d] = ring_head(&r, d) + 1;
    while (clock_boot_ns() < until_ns) {
        uint32_t bell = atomic_load(ring_bell(&r));
        for (uint32_t d = 0; d < ring_devices(&r); d++) take(&r, d, &next[d]);
        shm_wait(ring_bell(&r), bell, 100 * NS_PER_MS);
    }
    qsort(late_us, late_count, sizeof late_us[0], by_value);
    printf("{\"samples\":%zu,\"missed\":%zu,\"late_p50_us\":%.0f,\"late_p99_us\":%.0f,\"late_p999_us\":%.0f,\"late_max_"
           "us\":%.0f,"
           "\"first_ns\":%lld,\"first_of_last_ns\":%lld}\n",
           late_count, missed, quantile(0.5), quantile(0.99), quantile(0.999), quantile(1), (long long)first_ns,
           (long long)first_of_last_ns);
    return 0;
}
