#include "model/insight.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "tests/test.h"

#define GB 1000000000ull

static const struct {
    const char *name;
    struct insight_facts f;
    const char *want;
} rows[] = {
    {"nothing is known",  {.gpu_ratio = NAN, .cpu_ratio = NAN, .ran_s = 900},                                     ""                                      },
    {"input-bound",
     {.gpu_ratio = 0.23, .cpu_ratio = 1, .ran_s = 900, .gpus = 1},
     "GPU 23 % busy while the CPU was at 100 %: input-bound"                                                                                              },
    {"full",
     {.gpu_ratio = 0.9, .cpu_ratio = 1, .ran_s = 900, .peak_bytes = 79200000000, .total_bytes = 80 * GB},
     "peak 79.2 of 80.0 GB: nothing larger would fit"                                                                                                     },
    {"full, and short",
     {.gpu_ratio = NAN, .cpu_ratio = NAN, .ran_s = 1, .peak_bytes = 79 * GB, .total_bytes = 80 * GB},
     "peak 79.0 of 80.0 GB: nothing larger would fit"                                                                                                     },
    {"over its share",
     {.gpu_ratio = 0.9, .ran_s = 900, .peak_bytes = 12 * GB, .total_bytes = 80 * GB, .share_bytes = 10 * GB},
     "peak 12.0 GB, more than the 10.0 GB that it asked for"                                                                                              },
    {"unused",            {.gpu_ratio = 0, .cpu_ratio = 2, .ran_s = 900, .gpus = 1},                              "GPU 0 % busy: it was held and not used"},
    {"unused, too short", {.gpu_ratio = 0, .cpu_ratio = 2, .ran_s = 5, .gpus = 1},                                ""                                      },
    {"small",
     {.gpu_ratio = 0.3, .cpu_ratio = 0.2, .ran_s = 900, .gpus = 1, .peak_bytes = 9 * GB, .total_bytes = 80 * GB},
     "peak 9.0 of 80.0 GB and half idle: a share of a GPU would do"                                                                                       },
    {"waits",
     {.gpu_ratio = 0.3, .cpu_ratio = 0.2, .ran_s = 900, .gpus = 2},
     "GPU 30 % and CPU 20 % busy: it waited for something else"                                                                                           },
    {"waits now",
     {.gpu_ratio = 0.3, .cpu_ratio = 0.2, .ran_s = 900, .gpus = 2, .is_running = true},
     "GPU 30 % and CPU 20 % busy: it waits for something else"                                                                                            },
    {"unused now",
     {.gpu_ratio = 0, .cpu_ratio = 2, .ran_s = 900, .gpus = 1, .is_running = true},
     "GPU 0 % busy: it is held and not used"                                                                                                              },
    {"busy now",          {.gpu_ratio = 0.97, .cpu_ratio = 1, .ran_s = 900, .gpus = 1, .is_running = true},       "GPU 97 % busy"                         },
    {"CPU not known",     {.gpu_ratio = 0.3, .cpu_ratio = NAN, .ran_s = 900, .gpus = 2},                          "GPU 30 % busy"                         },
    {"busy",              {.gpu_ratio = 0.97, .cpu_ratio = 1, .ran_s = 900, .gpus = 1},                           "GPU 97 % busy"                         },
    {"so so",             {.gpu_ratio = 0.7, .cpu_ratio = 1, .ran_s = 900, .gpus = 1},                            ""                                      },
};

static void a_sentence_for_each(void **s) {
    char text[120];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        insight_sentence(&rows[i].f, text, sizeof text);
        if (strcmp(text, rows[i].want) != 0) print_message("%s\n", rows[i].name);
        assert_string_equal(text, rows[i].want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_sentence_for_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
