/* Settings: the defaults are valid, and what is handed from one program to another arrives. */
#include "tests/test.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/settings.h"

static void rows_make_sense(void **state) {
    for (size_t i = 0; i < settings_count; i++) {
        const struct option *o = &settings_table[i];
        assert_ptr_equal(option_find(settings_table, settings_count, o->name), o); /* so names are unique */
        assert_true(strlen(o->help) > 5);
        assert_true(o->help[strlen(o->help) - 1] != '.');
        assert_true(o->offset + o->size <= sizeof(struct settings));
        for (const char *c = o->name; *c; c++) assert_true(islower((unsigned char)*c) || strchr("._", *c));
        if (o->type == OPT_INT || o->type == OPT_REAL || o->type == OPT_CELSIUS) assert_true(o->min < o->max);
        for (size_t j = 0; j < i; j++) { /* no two rows share memory */
            const struct option *p = &settings_table[j];
            assert_true(o->offset + o->size <= p->offset || p->offset + p->size <= o->offset);
        }
    }
}

static void defaults(void **state) {
    struct settings s;
    settings_init(&s);
    assert_int_equal(s.wait_ms, 1000);
    assert_string_equal(s.gpus, "all");
    assert_true(isnan(s.hot_c));
    assert_string_equal(s.listen, "127.0.0.1:7000");
    assert_int_equal(s.guard_mode, GUARD_AUTO);
    assert_true(s.answer_ms < s.lost_ms);
}

static void round_trip(void **state) {
    struct settings s, back;
    struct error e = {0};
    AUTO(buf_done) struct buf text = {0}, again = {0};
    settings_init(&s);
    s.hot_c = 81.3;
    s.slow_percent = 0.1 + 0.2;
    s.wait_ms = 10;
    s.sim_costs = true;
    s.guard_mode = GUARD_OFF;
    snprintf(s.dir, sizeof s.dir, "/a b/\"x\"=y,\xc3\xbc");
    memset(s.gpus, '7', sizeof s.gpus - 1);
    for (size_t i = 4; i < sizeof s.gpus - 1; i += 5) s.gpus[i] = ',';
    s.gpus[sizeof s.gpus - 2] = '1';
    settings_encode(&s, &text);
    int r = settings_decode(&back, text.s, &e);
    if (r < 0) print_error("%s\n", e.text);
    assert_int_equal(r, 0);
    settings_encode(&back, &again);
    assert_string_equal(text.s, again.s);
    assert_true(back.slow_percent == 0.1 + 0.2);
    assert_string_equal(back.dir, s.dir);

    settings_init(&s);
    assert_int_equal(settings_decode(&back, "", &e), 0);
    buf_clear(&text), buf_clear(&again);
    settings_encode(&s, &text);
    settings_encode(&back, &again);
    assert_string_equal(text.s, again.s);
}

static void refuses(void **state) {
    static const struct {
        const char *in, *says;
    } rows[] = {
        {"nonsense=1\n",                 "no such key as \"nonsense\""                                              },
        {"wait_ms\n",                    "\"wait_ms\" is not key=value"                                             },
        {"\n",                           "is not key=value"                                                         },
        {"=5\n",                         "no such key"                                                              },
        {"wait_ms=5\n",                  "wait_ms: \"5\" is not a whole number from 10"                             },
        {"wait_ms=1000\nguard.hot_c=20", "guard.hot_c: \"20\" is not a temperature from 30"                         },
        {"WAIT_MS=1000",                 "no such key"                                                              },
        {"sampler.lost_ms=1999",         "sampler.lost_ms: 1999 is not a whole number from sampler.answer_ms (2000)"},
        {"listen=0.0.0.0:7000",          "listen: 0.0.0.0:7000 is not the loopback address"                         },
        {"listen=[::]:7000",             "listen: [::]:7000 is not the loopback address"                            },
        {"listen=gpu.example:7000",      "listen: gpu.example:7000 is not the loopback address"                     },
        {"tls.cert=/x",                  "tls.key: HTTPS needs both"                                                },
        {"tls.key=/x",                   "tls.cert: HTTPS needs both"                                               },
        {"guard.mode=on",                "guard.mode: \"on\" is not one of auto|observe|off"                        },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct settings s, before;
        struct error e = {0};
        memset(&s, 0x33, sizeof s);
        before = s;
        assert_int_equal(settings_decode(&s, rows[i].in, &e), -EINVAL);
        if (!strstr(e.text, rows[i].says)) print_error("%s\n", e.text);
        assert_non_null(strstr(e.text, rows[i].says));
        assert_memory_equal(&s, &before, sizeof s);
    }
}

static void a_line_without_end(void **state) {
    struct settings s;
    struct error e = {0};
    char line[4000];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = 0;
    assert_int_equal(settings_decode(&s, line, &e), -EINVAL);
    memcpy(line, "dir=", 4);
    assert_int_equal(settings_decode(&s, line, &e), -EINVAL);
    line[1100] = 0;
    assert_int_equal(settings_decode(&s, line, &e), -EINVAL);
    assert_string_equal(e.text, "dir: longer than 199 bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_make_sense), cmocka_unit_test(defaults),           cmocka_unit_test(round_trip),
        cmocka_unit_test(refuses),         cmocka_unit_test(a_line_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
