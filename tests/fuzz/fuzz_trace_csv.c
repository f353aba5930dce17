/* A file of jobs, from anywhere: what is taken can be played through. */
#include <stdint.h>
#include <string.h>

#include "model/simulate.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct trace t = {0};
    struct error e = {0};
    if (trace_read_csv(&t, (const char *)bytes, n, &e) < 0) {
        if (strncmp(e.text, "line ", 5) != 0) __builtin_trap();
    } else if (t.jobs < 300) {
        for (size_t p = 0; p < plan_policies_count; p++) {
            struct simulate_setup s = {.nodes = 2,
                                       .gpus_per_node = 4,
                                       .gpu_bytes = 80ull << 30,
                                       .policy = &plan_policies[p],
                                       .half_life_h = 24,
                                       .user_gpus = n % 2 ? 3 : 0,
                                       .is_close = n % 3 == 0 && t.jobs < 20};
            struct simulate_result r;
            if (simulate(&t, &s, &r, &e) >= 0 && r.jobs + r.left_out != t.jobs) __builtin_trap();
            simulate_done(&r);
        }
    }
    trace_done(&t);
    return 0;
}
