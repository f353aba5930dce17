/* Models, identities, what set calls accept, amounts as people type them. */
#include "tests/test.h"

#include <string.h>

#include "base/auto.h"
#include "sim/amount.h"
#include "sim/settings.h"

static struct machine m;

static void build(void) {
    memset(&m, 0, sizeof m);
    m.seed = 7;
    m.air_c = 27;
    for (size_t i = 0; i < model_count; i++) machine_add(&m, &models[i], false);
}

static uint32_t index_of(const char *key) {
    for (uint32_t i = 0; i < model_count; i++)
        if (strcmp(models[i].key, key) == 0) return i;
    return UINT32_MAX;
}

static void the_h200_as_read(void **state) {
    static struct shm_card c;
    model_card(model_by_key("h200"), 1, 0, 0, &c);
    assert_int_equal(c.mem_clock_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(c.clocks[i].count, 110);
        assert_int_equal(c.clocks[i].gr_mhz[0], 1980);
        assert_int_equal(c.clocks[i].gr_mhz[109], 345);
    }
    assert_int_equal(c.memory_bytes >> 20, 143771);
    assert_int_equal(c.event_types, 0xff9f);
    assert_int_equal(c.fan_count, 0);
}

static void identities(void **state) {
    static struct shm_card a, b;
    for (uint32_t i = 0; i < 32; i++) {
        model_card(&models[0], 1, i, 0, &a);
        assert_int_equal(strlen(a.uuid), 40);
        model_card(&models[0], 1, i, 0, &b);
        assert_memory_equal(&a, &b, sizeof a);
        for (uint32_t j = 0; j < i; j++) {
            model_card(&models[0], 1, j, 0, &b);
            assert_string_not_equal(a.uuid, b.uuid);
            assert_string_not_equal(a.serial, b.serial);
            assert_true(a.pci_bus != b.pci_bus || a.pci_domain != b.pci_domain);
        }
        model_card(&models[0], 2, i, 0, &b);
        assert_string_not_equal(a.uuid, b.uuid);
    }
}

/* Whatever a table says: lists fall, defaults and idle clocks are on them or known, limits are in order. */
static void tables_are_sane(void **state) {
    static struct shm_card c;
    for (size_t k = 0; k < model_count; k++) {
        model_card(&models[k], 1, 0, 1, &c);
        assert_true(c.power_min_mw <= c.power_default_mw && c.power_default_mw <= c.power_max_mw);
        assert_true(c.gpu_max_c < c.slowdown_c && c.slowdown_c < c.shutdown_c);
        assert_int_equal(card_clock_at_most(&c, c.mem_max_mhz, c.app_gr_default_mhz), c.app_gr_default_mhz);
        assert_non_null(card_clocks(&c, models[k].idle_mem_mhz));
        for (uint32_t i = 0; i < c.mem_clock_count; i++)
            for (uint32_t j = 1; j < c.clocks[i].count; j++)
                assert_true(c.clocks[i].gr_mhz[j] < c.clocks[i].gr_mhz[j - 1]);
        uint64_t instances = 0;
        uint32_t slices = 0;
        for (uint32_t i = 0; i < c.mig_count; i++) {
            instances += c.mig[i].memory_bytes;
            slices += c.mig[i].slices;
            for (uint32_t j = 0; j < i; j++) assert_int_not_equal(c.mig[i].gi, c.mig[j].gi);
        }
        assert_true(instances <= c.memory_bytes && slices <= 7);
    }
}

static void set_calls(void **state) {
    static const struct {
        const char *card;
        enum wire_setting setting;
        int64_t a, b;
        int want;
    } rows[] = {
        {"h200",    SET_POWER_LIMIT,         300000,     0,          CODE_OK           },
        {"h200",    SET_POWER_LIMIT,         199999,     0,          CODE_INVALID      },
        {"h200",    SET_POWER_LIMIT,         700001,     0,          CODE_INVALID      },
        {"h200",    SET_LOCKED_CLOCKS,       345,        1500,       CODE_OK           },
        {"h200",    SET_LOCKED_CLOCKS,       1500,       345,        CODE_INVALID      },
        {"h200",    SET_LOCKED_CLOCKS,       0xffffff01, 0xffffff02, CODE_OK           },
        {"h200",    SET_LOCKED_CLOCKS_RESET, 0,          0,          CODE_OK           },
        {"h200",    SET_MEM_LOCKED_CLOCKS,   2201,       2201,       CODE_OK           },
        {"h200",    SET_MEM_LOCKED_CLOCKS,   10,         20,         CODE_INVALID      },
        {"h200",    SET_APP_CLOCKS,          3201,       1500,       CODE_OK           },
        {"h200",    SET_APP_CLOCKS,          3201,       1501,       CODE_INVALID      },
        {"h200",    SET_FAN,                 0,          50,         CODE_NOT_SUPPORTED},
        {"h200",    SET_ECC,                 0,          0,          CODE_OK           },
        {"h200",    SET_COMPUTE_MODE,        3,          0,          CODE_OK           },
        {"h200",    SET_COMPUTE_MODE,        1,          0,          CODE_INVALID      },
        {"h200",    SET_ACOUSTIC,            80,         0,          CODE_NOT_SUPPORTED},
        {"rtx4090", SET_FAN,                 1,          50,         CODE_OK           },
        {"rtx4090", SET_FAN,                 2,          50,         CODE_INVALID      },
        {"rtx4090", SET_FAN,                 0,          29,         CODE_INVALID      },
        {"rtx4090", SET_FAN_DEFAULT,         1,          0,          CODE_OK           },
        {"rtx4090", SET_ACOUSTIC,            75,         0,          CODE_OK           },
        {"rtx4090", SET_ECC,                 1,          0,          CODE_NOT_SUPPORTED},
        {"p100",    SET_LOCKED_CLOCKS,       600,        900,        CODE_NOT_SUPPORTED},
        {"p100",    SET_APP_CLOCKS,          715,        1189,       CODE_OK           },
        {"t1000",   SET_POWER_LIMIT,         40000,      0,          CODE_NOT_SUPPORTED},
        {"t1000",   SET_LOCKED_CLOCKS,       300,        900,        CODE_OK           },
        {"940mx",   SET_POWER_LIMIT,         20000,      0,          CODE_NOT_SUPPORTED},
        {"940mx",   SET_LOCKED_CLOCKS,       300,        900,        CODE_NOT_SUPPORTED},
        {"940mx",   SET_APP_CLOCKS,          1001,       900,        CODE_NOT_SUPPORTED},
    };
    build();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wire_set set = {
            .setting = rows[i].setting, .value = {rows[i].a, rows[i].b}
        };
        int got = settings_apply(&m, index_of(rows[i].card), &set);
        if (got != rows[i].want) print_error("row %zu: %d, not %d\n", i, got, rows[i].want);
        assert_int_equal(got, rows[i].want);
    }
    struct wire_set wild = {.setting = 9999};
    assert_int_equal(settings_apply(&m, 0, &wild), CODE_INVALID);
    assert_int_equal(settings_apply(&m, 999, &(struct wire_set){.setting = SET_ECC}), CODE_INVALID);
}

static void a_reload_forgets_settings(void **state) {
    build();
    struct wire_set cap = {.setting = SET_POWER_LIMIT, .value = {300000}}, ecc = {.setting = SET_ECC};
    assert_int_equal(settings_apply(&m, 0, &cap), CODE_OK);
    assert_int_equal(settings_apply(&m, 0, &ecc), CODE_OK);
    assert_int_equal(m.board[0].ecc_mode, 1);
    machine_driver_down(&m, 2);
    assert_int_equal(settings_apply(&m, 0, &cap), CODE_DRIVER_DOWN);
    machine_advance(&m, 1.9);
    assert_int_equal(m.driver, SHM_DRIVER_DOWN);
    machine_advance(&m, 0.2);
    assert_int_equal(m.driver, SHM_DRIVER_UP);
    assert_true(m.plant[0].set.limit_w == 700);
    assert_int_equal(m.board[0].ecc_mode, 0);
}

static void amounts(void **state) {
    static const struct {
        const char *text;
        bool good;
        uint64_t bytes;
    } rows[] = {
        {"4G",     true,  UINT64_C(4) << 30   },
        {"1.5GiB", true,  UINT64_C(1536) << 20},
        {"512m",   true,  512u << 20          },
        {"0",      true,  0                   },
        {"-1",     false, 0                   },
        {"4X",     false, 0                   },
        {"",       false, 0                   },
        {"nan",    false, 0                   },
        {"1e999",  false, 0                   },
        {"G",      false, 0                   },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t got = 77;
        assert_int_equal(amount_bytes(rows[i].text, &got), rows[i].good);
        assert_int_equal(got, rows[i].good ? rows[i].bytes : 77);
    }
    double d = 0;
    uint32_t n = 0;
    assert_true(amount_share("14%", &d) && d > 0.139 && d < 0.141);
    assert_true(amount_share("0.5", &d) && d == 0.5);
    assert_false(amount_share("101%", &d) || amount_share("14", &d) || amount_share(NULL, &d));
    assert_true(amount_seconds("1.5m", &d) && d == 90);
    assert_true(amount_seconds("300ms", &d) && d > 0.29 && d < 0.31);
    assert_false(amount_seconds("5 s", &d) || amount_seconds("-5", &d));
    assert_true(amount_count("12", 0, 20, &n) && n == 12);
    assert_false(amount_count("12.5", 0, 20, &n) || amount_count("21", 0, 20, &n) || amount_count("0x5", 0, 20, &n));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_h200_as_read),          cmocka_unit_test(identities),
        cmocka_unit_test(tables_are_sane),           cmocka_unit_test(set_calls),
        cmocka_unit_test(a_reload_forgets_settings), cmocka_unit_test(amounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
