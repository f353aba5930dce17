/* Options: every type takes what it should, refuses the rest with a sentence that names key and range, and writes
 * nothing when it refuses. */
#include "tests/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"

struct all {
    char text[8], path[16], address[64], gpus[200];
    int count, choice;
    double real, celsius;
    bool flag;
};

#define AT(field) offsetof(struct all, field), sizeof(((struct all *)0)->field)
static const struct option table[] = {
    {"text",    "",          "",            OPT_TEXT,               AT(text)                                             },
    {"path",    "",          "",            OPT_PATH,               AT(path)                                             },
    {"a.count", "1",         "",            OPT_INT,                AT(count),                                             -5, 1000},
    {"real",     "1",                "",                        OPT_REAL,                                       AT(real),                                                                           0.5, 2},
    {"hot_c", "auto",         "",                     OPT_CELSIUS,     AT(celsius),30, 110},
    {"flag",       "no","",OPT_BOOL,AT(flag)                                                                     },
    {"choice",    "b",     "",                  OPT_CHOICE,                                                    AT(choice),                                                                                                     0, 0, "auto|observe|off"},
    {"address",  "",       "",              OPT_ADDRESS,         AT(address)},
    {"gpus",        "all", "",              OPT_GPUS,                            AT(gpus)                                                                             },
};

static const struct option *row(const char *name) {
    const struct option *o = option_find(table, ARRAY_LEN(table), name);
    assert_non_null(o);
    return o;
}

static void takes(void **state) {
    static const struct {
        const char *key, *in, *out; /* out: as option_text gives it back */
    } rows[] = {
        {"text",    "",                   ""                  },
        {"text",    "1234567",            "1234567"           },
        {"text",    "a b=c",              "a b=c"             },
        {"path",    "/x/y z",             "/x/y z"            },
        {"a.count", "-5",                 "-5"                },
        {"a.count", "1000",               "1000"              },
        {"a.count", "1e3",                "1000"              },
        {"a.count", "007",                "7"                 },
        {"a.count", "2.0",                "2"                 },
        {"real",    "0.5",                "0.5"               },
        {"real",    "2",                  "2"                 },
        {"real",    "0.1e1",              "1"                 },
        {"real",    "1.1234567890123457", "1.1234567890123457"},
        {"hot_c",   "auto",               "auto"              },
        {"hot_c",   "30",                 "30"                },
        {"hot_c",   "83.5",               "83.5"              },
        {"hot_c",   "110",                "110"               },
        {"flag",    "true",               "true"              },
        {"flag",    "false",              "false"             },
        {"flag",    "1",                  "true"              },
        {"flag",    "0",                  "false"             },
        {"flag",    "on",                 "true"              },
        {"flag",    "off",                "false"             },
        {"flag",    "yes",                "true"              },
        {"flag",    "no",                 "false"             },
        {"choice",  "auto",               "auto"              },
        {"choice",  "off",                "off"               },
        {"address", "127.0.0.1:7000",     "127.0.0.1:7000"    },
        {"address", "0.0.0.0:0",          "0.0.0.0:0"         },
        {"address", ":65535",             ":65535"            },
        {"address", "host-1.example:80",  "host-1.example:80" },
        {"address", "[::1]:7000",         "[::1]:7000"        },
        {"address", "[::]:1",             "[::]:1"            },
        {"address", "[::ffff:1.2.3.4]:1", "[::ffff:1.2.3.4]:1"},
        {"address", "[fe80::1%eth0]:1",   "[fe80::1%eth0]:1"  },
        {"gpus",    "all",                "all"               },
        {"gpus",    "0",                  "0"                 },
        {"gpus",    "0,1,17",             "0,1,17"            },
        {"gpus",    "GPU-ab-01,3",        "GPU-ab-01,3"       },
        {"gpus",    "MIG-GPU-a/1/0",      "MIG-GPU-a/1/0"     },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct all v = {0}, again = {0};
        struct error e = {0};
        char text[256];
        const struct option *o = row(rows[i].key);
        int r = option_set(o, &v, rows[i].in, &e);
        if (r < 0) print_error("%s=%s: %s\n", rows[i].key, rows[i].in, e.text);
        assert_int_equal(r, 0);
        option_text(o, &v, text, sizeof text);
        assert_string_equal(text, rows[i].out);
        assert_int_equal(option_set(o, &again, text, &e), 0);
        assert_memory_equal(&v, &again, sizeof v);
    }
}

static void refuses(void **state) {
    static const char count[] = "a whole number from -5 to 1000", real[] = "a number from 0.5 to 2",
                      hot[] = "a temperature from 30 to 110, or auto", choice[] = "one of auto|observe|off",
                      address[] = "ADDRESS:PORT", gpus[] = "all, or GPU indices and UUIDs", flag[] = "true or false";
    static const struct {
        const char *key, *in, *says;
    } rows[] = {
        {"text",    "12345678",             "longer than 7 bytes"},
        {"text",    "a\nb",                 "line break"         },
        {"path",    "a\rb",                 "line break"         },
        {"a.count", "",                     count                },
        {"a.count", "-6",                   count                },
        {"a.count", "1001",                 count                },
        {"a.count", "1.5",                  count                },
        {"a.count", "ten",                  count                },
        {"a.count", "10 ",                  count                },
        {"a.count", " 10",                  count                },
        {"a.count", "10ms",                 count                },
        {"a.count", "0x10",                 count                },
        {"a.count", "nan",                  count                },
        {"a.count", "inf",                  count                },
        {"a.count", "1e400",                count                },
        {"a.count", "99999999999999999999", count                },
        {"a.count", "auto",                 count                },
        {"real",    "0.49999",              real                 },
        {"real",    "2.0001",               real                 },
        {"real",    "1,5",                  real                 },
        {"real",    "-nan",                 real                 },
        {"hot_c",   "29.9",                 hot                  },
        {"hot_c",   "111",                  hot                  },
        {"hot_c",   "AUTO",                 hot                  },
        {"hot_c",   "83C",                  hot                  },
        {"hot_c",   "nan",                  hot                  },
        {"flag",    "",                     flag                 },
        {"flag",    "TRUE",                 flag                 },
        {"flag",    "2",                    flag                 },
        {"choice",  "",                     choice               },
        {"choice",  "aut",                  choice               },
        {"choice",  "auto|observe",         choice               },
        {"choice",  "offf",                 choice               },
        {"address", "",                     address              },
        {"address", "127.0.0.1",            address              },
        {"address", "127.0.0.1:",           address              },
        {"address", "127.0.0.1:65536",      address              },
        {"address", "127.0.0.1:-1",         address              },
        {"address", "127.0.0.1:80x",        address              },
        {"address", "a b:80",               address              },
        {"address", "::1:80",               address              },
        {"address", "[]:80",                address              },
        {"address", "[::1:80",              address              },
        {"address", "[junk]]:80",           address              },
        {"address", "[abc]:80",             address              },
        {"address", "[::1%]:80",            address              },
        {"address", "http://x:80",          address              },
        {"gpus",    "",                     gpus                 },
        {"gpus",    "0,",                   gpus                 },
        {"gpus",    ",0",                   gpus                 },
        {"gpus",    "0,,1",                 gpus                 },
        {"gpus",    "0, 1",                 gpus                 },
        {"gpus",    "-1",                   gpus                 },
        {"gpus",    "12345",                gpus                 },
        {"gpus",    "GPU-",                 gpus                 },
        {"gpus",    "GPU-a b",              gpus                 },
        {"gpus",    "all,0",                gpus                 },
        {"gpus",    "gpu-1",                gpus                 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct all v, before;
        struct error e = {0};
        memset(&v, 0x5a, sizeof v);
        before = v;
        int r = option_set(row(rows[i].key), &v, rows[i].in, &e);
        if (r != -EINVAL || !strstr(e.text, rows[i].says)) print_error("%s=%s: %s\n", rows[i].key, rows[i].in, e.text);
        assert_int_equal(r, -EINVAL);
        assert_memory_equal(e.text, rows[i].key, strlen(rows[i].key));
        assert_non_null(strstr(e.text, rows[i].says));
        assert_memory_equal(&v, &before, sizeof v);
    }
}

static void json_shapes(void **state) {
    static const struct {
        const char *key, *types; /* of "sirbnle" */
    } rows[] = {
        {"text",    "s"  },
        {"path",    "s"  },
        {"a.count", "i"  },
        {"real",    "ir" },
        {"hot_c",   "irs"},
        {"flag",    "b"  },
        {"choice",  "s"  },
        {"address", "s"  },
        {"gpus",    "sli"},
    };
    static const struct {
        char letter;
        enum json_type type;
    } types[] = {
        {'s', JSON_LEAF_STRING},
        {'i', JSON_LEAF_INT   },
        {'r', JSON_LEAF_REAL  },
        {'b', JSON_LEAF_BOOL  },
        {'n', JSON_LEAF_NULL  },
        {'l', JSON_LEAF_LIST  },
        {'e', JSON_LEAF_EMPTY },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t t = 0; t < ARRAY_LEN(types); t++)
            assert_int_equal(option_takes(row(rows[i].key), types[t].type),
                             strchr(rows[i].types, types[t].letter) != NULL);
}

static void names(void **state) {
    char text[64];
    assert_null(option_find(table, ARRAY_LEN(table), "tex"));
    assert_null(option_find(table, ARRAY_LEN(table), ""));
    option_variable(row("a.count"), text, sizeof text);
    assert_string_equal(text, "GPUMGR_A_COUNT");
    option_variable(row("hot_c"), text, 9);
    assert_string_equal(text, "GPUMGR_H");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes),
        cmocka_unit_test(refuses),
        cmocka_unit_test(json_shapes),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
