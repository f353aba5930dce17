/* A second of a GPU divided among its processes: nothing is invented and nothing is lost. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "base/auto.h"
#include "model/share.h"

#define NO_MEMORY UINT64_MAX

static void rows(void **state) {
    static const struct {
        const char *name;
        struct share_gpu gpu;
        size_t n;
        struct share_holder in[3];
        double seconds[3], joules[3], unowned;
    } table[] = {
        {"nobody's idle power",      {1, 70, 70, 0},     0, {{0}},                                {0},          {0},        70},
        {"one has all of it",        {1, 400, 100, 1},   1, {{1, 5}},                             {1},          {400},      0 },
        {"by measured share",        {1, 400, 100, 1},   2, {{0.75, 5}, {0.25, 99}},              {0.75, 0.25}, {275, 125}, 0 },
        {"two seconds of it",        {2, 800, 100, 1},   2, {{0.75, 5}, {0.25, 99}},              {1.5, 0.5},   {550, 250}, 0 },
        {"an idle holder pays rent", {1, 300, 100, 1},   2, {{1, 5}, {0, 5}},                     {1, 0},       {250, 50},  0 },
        {"all idle: evenly",         {1, 90, 100, 0},    2, {{0, 5}, {0, 50}},                    {0, 0},       {45, 45},   0 },
        {"unmeasured: by memory",    {1, 400, 0, 0.8},   2, {{NAN, 100}, {NAN, 300}},             {0.2, 0.6},   {100, 300}, 0 },
        {"the rest to the others",
         {1, 100, 0, 1},
         3,                                                 {{0.6, 1}, {NAN, 10}, {NAN, 30}},
         {0.6, 0.1, 0.3},
         {60, 10, 30},
         0                                                                                                                    },
        {"no memory known: evenly",  {1, 100, 0, 1},     2, {{NAN, NO_MEMORY}, {NAN, NO_MEMORY}}, {0.5, 0.5},   {50, 50},   0 },
        {"more than the whole card", {1, 100, 0, 1},     2, {{0.9, 1}, {0.9, 1}},                 {0.5, 0.5},   {50, 50},   0 },
        {"no energy known",          {1, NAN, NAN, 1},   1, {{0.5, 1}},                           {0.5},        {0},        0 },
        {"no use known at all",      {1, 100, NAN, NAN}, 1, {{NAN, 1}},                           {0},          {100},      0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct share_gpu g = table[i].gpu;
        struct share_holder h[3] = {table[i].in[0], table[i].in[1], table[i].in[2]};
        share_split(&g, h, table[i].n);
        if (fabs(g.unowned_j - table[i].unowned) > 1e-9) fail_msg("%s: %g J of nobody", table[i].name, g.unowned_j);
        for (size_t k = 0; k < table[i].n; k++)
            if (fabs(h[k].gpu_seconds - table[i].seconds[k]) > 1e-9 ||
                fabs(h[k].energy_joules - table[i].joules[k]) > 1e-9)
                fail_msg("%s: holder %zu has %g s and %g J", table[i].name, k, h[k].gpu_seconds, h[k].energy_joules);
    }
}

/* Whatever is measured, the parts are the whole. */
static void nothing_is_lost(void **state) {
    srand(7);
    for (int round = 0; round < 20000; round++) {
        struct share_holder h[8];
        size_t n = (size_t)rand() % 9;
        struct share_gpu g = {.seconds = rand() % 3 + 0.5,
                              .energy_j = rand() % 900,
                              .idle_w = rand() % 200,
                              .busy = rand() % 101 / 100.0};
        for (size_t i = 0; i < n; i++)
            h[i] = (struct share_holder){.sm = rand() % 3 ? rand() % 101 / 100.0 : NAN,
                                         .memory_bytes = (uint64_t)rand() % 3 ? (uint64_t)rand() : NO_MEMORY};
        share_split(&g, h, n);
        double energy = g.unowned_j, seconds = 0;
        for (size_t i = 0; i < n; i++) {
            energy += h[i].energy_joules;
            seconds += h[i].gpu_seconds;
            assert_true(h[i].energy_joules >= 0 && h[i].gpu_seconds >= 0);
        }
        assert_true(fabs(energy - g.energy_j) < 1e-6);
        assert_true(seconds <= g.seconds * (1 + 1e-9));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(nothing_is_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
