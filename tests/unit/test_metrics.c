/* The catalogue's promises to those who walk it: names that Prometheus takes, units that the names tell, help for all. */
#include "tests/test.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/auto.h"
#include "model/host_metrics.h"
#include "model/metrics.h"

/* Both catalogues keep the same promises. */
static const struct {
    const struct metric *of;
    int count;
    int (*find)(const char *name);
    const char *prefix;
} tables[] = {
    {metrics,      METRIC_COUNT,      metric_find,      "gpu_" },
    {host_metrics, HOST_METRIC_COUNT, host_metric_find, "host_"},
};

static bool ends(const char *s, const char *tail) {
    size_t n = strlen(s), t = strlen(tail);
    return n >= t && strcmp(s + n - t, tail) == 0;
}

static void names(void **state) {
    assert_true(METRIC_COUNT >= 45);
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        for (int i = 0; i < tables[t].count; i++) {
            const char *name = tables[t].of[i].name;
            assert_non_null(name);
            assert_int_equal(tables[t].find(name), i); /* so no name comes twice */
            assert_int_equal(tables[!t].find(name), -1);
            assert_true(strncmp(name, tables[t].prefix, strlen(tables[t].prefix)) == 0 ||
                        strncmp(name, "gpumgr_", 7) == 0);
            for (const char *c = name; *c; c++)
                assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_');
            assert_null(strstr(name, "__"));
        }
    }
    assert_int_equal(metric_find("gpu_"), -1);
    assert_int_equal(metric_find(""), -1);
}

static void units_and_names_agree(void **state) {
    static const struct {
        enum metric_unit unit;
        const char *gauge, *counter;
    } rows[] = {
        {UNIT_RATIO,            "_ratio",            NULL            },
        {UNIT_CELSIUS,          "_celsius",          NULL            },
        {UNIT_WATTS,            "_watts",            NULL            },
        {UNIT_JOULES,           NULL,                "_joules_total" },
        {UNIT_BYTES,            "_bytes",            "_bytes_total"  },
        {UNIT_BYTES_PER_SECOND, "_bytes_per_second", NULL            },
        {UNIT_HERTZ,            "_hertz",            NULL            },
        {UNIT_SECONDS,          "_seconds",          "_seconds_total"},
    };
    for (int n = 0; n < (int)METRIC_COUNT + (int)HOST_METRIC_COUNT; n++) {
        const struct metric *m = n < METRIC_COUNT ? &metrics[n] : &host_metrics[n - METRIC_COUNT];
        bool counter = m->kind == KIND_COUNTER;
        if (ends(m->name, "_total") != counter) print_error("%s: counters, and no others, end in _total\n", m->name);
        assert_int_equal(ends(m->name, "_total"), counter);
        for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
            const char *own = counter ? rows[r].counter : rows[r].gauge;
            if (m->unit == rows[r].unit) {
                if (!own || !ends(m->name, own)) print_error("%s: not a name for its unit\n", m->name);
                assert_true(own && ends(m->name, own));
            } else if (own && ends(m->name, own)) {
                print_error("%s: the name says another unit\n", m->name);
                assert_true(m->unit == UNIT_BYTES_PER_SECOND);
            }
        }
        if (m->unit == UNIT_BOOL) assert_int_equal(m->kind, KIND_GAUGE);
    }
}

static void rows_are_filled_in(void **state) {
    for (int i = 0; i < (int)METRIC_COUNT + (int)HOST_METRIC_COUNT; i++) {
        const struct metric *m = i < METRIC_COUNT ? &metrics[i] : &host_metrics[i - METRIC_COUNT];
        assert_true(strlen(m->help) > 5);
        assert_true(m->help[strlen(m->help) - 1] != '.');
        assert_null(strpbrk(m->help, "\n\\\""));
        assert_true(isupper((unsigned char)m->help[0]));
        assert_non_null(m->dcgm);
        if (*m->dcgm) assert_memory_equal(m->dcgm, "DCGM_FI_", 8);
        assert_true(m->scale >= 0);
        for (int j = 0; j < i && j < METRIC_COUNT; j++) assert_true(!*m->dcgm || strcmp(m->dcgm, metrics[j].dcgm) != 0);
        assert_true(m->keep == KEEP_MEAN || m->keep == KEEP_MIN || m->keep == KEEP_MAX);
        if (m->kind == KIND_COUNTER) assert_int_equal(m->keep, KEEP_MAX);
        assert_true(strlen(metric_unit_name(m->unit)) > 0);
    }
    assert_string_equal(metric_unit_name(UNIT_NUMBER), "number");
    assert_string_equal(metric_unit_name(UNIT_BYTES_PER_SECOND), "bytes_per_second");
    assert_string_equal(metric_kind_name(KIND_COUNTER), "counter");
    assert_string_equal(metric_kind_name(KIND_GAUGE), "gauge");
    assert_true(metric_catalogue_hash() == metric_catalogue_hash());
}

/* Names that outside programs rely on. */
static void promised_names(void **state) {
    static const char *const rows[] = {"gpu_temperature_celsius", "gpu_power_watts", "gpu_utilization_ratio",
                                       "gpu_memory_used_bytes"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) assert_true(metric_find(rows[i]) >= 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(units_and_names_agree),
        cmocka_unit_test(rows_are_filled_in),
        cmocka_unit_test(promised_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
