/* How often a process list is looked at, as simulated minutes: what is found, how late, and what it costs. */
#include <stdio.h>

#include "base/auto.h"
#include "model/hunt.h"
#include "tests/test.h"

#define MS 1000000ll
#define S (1000 * MS)

struct run {
    int64_t looks, late_most_ns;
};

/* A device is opened every open_ns; every one of these shows up as a process after delay_ns, or never (-1). */
static struct run play(int64_t base_ns, int64_t open_ns, int64_t delay_ns, int64_t cost_ns, int64_t total_ns) {
    struct hunt h = {.base_ns = base_ns};
    struct run r = {0};
    int64_t now = 0, opened = 0, shown = -1;
    hunt_begin(&h, 0);
    while (now < total_ns) {
        if (open_ns && now >= opened) {
            hunt_arm(&h, now, 3 * S);
            if (delay_ns >= 0) shown = now + delay_ns;
            opened += open_ns;
        }
        int64_t next = hunt_next_ns(&h, now), until = open_ns ? opened : total_ns;
        if (next > until) {
            now = until;
            continue;
        }
        if (next > now) now = next;
        bool has_found = shown >= 0 && now >= shown;
        if (has_found && now - shown > r.late_most_ns) r.late_most_ns = now - shown;
        if (has_found) shown = -1;
        r.looks++;
        hunt_looked(&h, now, cost_ns, has_found);
    }
    return r;
}

static void rows_(void **state) {
    static const struct {
        const char *name;
        int64_t base, open, delay, cost;
        double cpu_most; /* percent of a core, for one GPU */
        int64_t late_most;
    } rows[] = {
        {"nobody comes",                    0,        0,       -1,       25000,  0,    0      },
        {"a base rate",                     100 * MS, 0,       -1,       10000,  0.02, 0      },
        {"a task a minute, 300 ms to show", 0,        60 * S,  300 * MS, 25000,  0.02, 5 * MS },
        {"a hundred a second",              0,        10 * MS, 5 * MS,   25000,  1,    21 * MS},
        {"a monitor opens it every second", 0,        S,       -1,       25000,  0.2,  0      },
        {"a monitor, and the call is dear", 0,        S,       -1,       500000, 0.2,  0      },
        {"a task a second, 900 ms to show", 0,        S,       900 * MS, 25000,  0.7,  21 * MS},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct run r = play(rows[i].base, rows[i].open, rows[i].delay, rows[i].cost, 600 * S);
        double cpu = (double)r.looks * (double)rows[i].cost / (600.0 * S) * 100;
        if (cpu > rows[i].cpu_most || r.late_most_ns > rows[i].late_most)
            fail_msg("%s: %.3f %% of a core, at most %.1f ms late", rows[i].name, cpu, (double)r.late_most_ns / MS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
