/* Whether a GPU is there: rows of what was asked and when it last answered. */
#include "base/auto.h"
#include "model/health.h"
#include "tests/test.h"

#define S 1000000000ll

static void judged(void **state) {
    static const struct {
        const char *name;
        struct health h;
        int64_t now;
        enum device_state want;
    } rows[] = {
        {"just found",                   {.first_ns = 10 * S},                                   10 * S, DEVICE_STARTING     },
        {"found, first round out",       {.first_ns = 10 * S, .asked_ns = 11 * S},               12 * S, DEVICE_STARTING     },
        {"never answered for long",      {.first_ns = 10 * S, .asked_ns = 10 * S},               13 * S, DEVICE_NOT_ANSWERING},
        {"never answered for very long", {.first_ns = 10 * S, .asked_ns = 10 * S},               21 * S, DEVICE_LOST         },
        {"never opened",                 {.first_ns = 10 * S},                                   13 * S, DEVICE_NOT_ANSWERING},
        {"answers",                      {.first_ns = 1, .good_ns = 10 * S},                     11 * S, DEVICE_OK           },
        {"idle between rare rounds",     {.first_ns = 1, .good_ns = 10 * S},                     70 * S, DEVICE_OK           },
        {"in a round",                   {.first_ns = 1, .good_ns = 10 * S, .asked_ns = 11 * S}, 12 * S, DEVICE_OK           },
        {"stuck in a round",             {.first_ns = 1, .good_ns = 10 * S, .asked_ns = 11 * S}, 14 * S, DEVICE_NOT_ANSWERING},
        {"stuck for long",               {.first_ns = 1, .good_ns = 10 * S, .asked_ns = 11 * S}, 21 * S, DEVICE_LOST         },
        {"one round failed",             {.first_ns = 1, .good_ns = 10 * S, .has_failed = true}, 11 * S, DEVICE_OK           },
        {"rounds fail",                  {.first_ns = 1, .good_ns = 10 * S, .has_failed = true}, 13 * S, DEVICE_NOT_ANSWERING},
        {"rounds fail for long",         {.first_ns = 1, .good_ns = 10 * S, .has_failed = true}, 21 * S, DEVICE_LOST         },
        {"the driver says lost",         {.first_ns = 1, .good_ns = 10 * S, .says_lost = true},  10 * S, DEVICE_LOST         },
        {"forbidden is not lost",        {.first_ns = 1, .is_forbidden = true},                  60 * S, DEVICE_FORBIDDEN    },
        {"fenced is fenced",             {.first_ns = 1, .is_fenced = true, .says_lost = true},  10 * S, DEVICE_FENCED       },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum device_state got = health_state(&rows[i].h, rows[i].now, 2 * S, 10 * S);
        if (got != rows[i].want)
            fail_msg("%s: %s, not %s", rows[i].name, device_state_name(got), device_state_name(rows[i].want));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(judged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
