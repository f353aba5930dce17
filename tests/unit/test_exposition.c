/* The catalogue as Prometheus text: what is absent has no line, labels are escaped, DCGM's units are DCGM's. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "model/exposition.h"
#include "model/sample.h"
#include "tests/test.h"

struct card {
    struct inventory is;
    struct sample s;
    struct ring_xids xids;
};

static struct exposition_gpu card_make(struct card *c, int index, const char *name) {
    inventory_init(&c->is, index);
    snprintf(c->is.uuid, sizeof c->is.uuid, "GPU-%d", index);
    snprintf(c->is.name, sizeof c->is.name, "%s", name);
    return (struct exposition_gpu){
        .is = &c->is, .host = "lab", .value = c->s.value, .has = c->s.has, .xids = &c->xids, .is_up = true};
}

static void lines(void **state) {
    static struct card a, b;
    AUTO(buf_done) struct buf own = {0}, dcgm = {0};
    struct exposition_gpu gpus[2] = {card_make(&a, 0, "A \"fine\" \\ card"), card_make(&b, 1, "B")};
    sample_put(&a.s, METRIC_TEMP_CORE, 61);
    sample_put(&a.s, METRIC_UTIL_GPU, 0.97);
    sample_put(&a.s, METRIC_ACTIVE_SM, 0.9351);
    sample_put(&a.s, METRIC_POWER, 700.546);
    sample_put(&a.s, METRIC_MEMORY_USED, 3.0 * (1 << 20));
    sample_put(&a.s, METRIC_CLOCK_SM, 1980e6);
    sample_put(&a.s, METRIC_ENERGY, 12.5);
    sample_put(&b.s, METRIC_TEMP_CORE, 99);
    gpus[1].is_up = false;
    a.xids = (struct ring_xids){
        .count = 2, .of = {{31, 4, 200}, {79, 1, 100}}
    };
    exposition_gpus(&own, gpus, 2);
    exposition_dcgm(&dcgm, gpus, 2);
    static const struct {
        const char *name, *line;
        bool is_dcgm, is_absent;
    } rows[] = {
        {"labels",
         "\ngpu_temperature_celsius{uuid=\"GPU-0\",gpu=\"0\",model=\"A \\\"fine\\\" \\\\ card\",host=\"lab\"} 61\n",                    false, false},
        {"type",                         "\n# TYPE gpu_temperature_celsius gauge\n",                                                    false, false},
        {"a counter",                    "# TYPE gpu_energy_joules_total counter\n",                                                    false, false},
        {"up",                           "model=\"B\",host=\"lab\"} 0\n",                                                               false, false},
        {"a lost card has no readings",  "} 99\n",                                                                                      false, true },
        {"what is absent has no family", "gpu_fan_speed_ratio",                                                                         false, true },
        {"xids by code",                 "xid=\"31\"} 4\n",                                                                             false, false},
        {"another code",                 "xid=\"79\"} 1\n",                                                                             false, false},
        {"no DCGM names unless asked",   "DCGM",                                                                                        false, true },
        {"percent",                      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-0\",pci_bus_id=\"\",device=\"nvidia0\",modelName=", true,
         false                                                                                                                                      },
        {"percent, the value",           "} 97\n",                                                                                      true,  false},
        {"activity stays a ratio",       "} 0.9351\n",                                                                                  true,  false},
        {"watts",                        "} 700.546\n",                                                                                 true,  false},
        {"MiB",                          "} 3\n",                                                                                       true,  false},
        {"MHz",                          "} 1980\n",                                                                                    true,  false},
        {"mJ",                           "} 12500\n",                                                                                   true,  false},
        {"the last XID",                 "} 31\n",                                                                                      true,  false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *text = rows[i].is_dcgm ? dcgm.s : own.s;
        if (!strstr(text, rows[i].line) != rows[i].is_absent)
            fail_msg("%s: %s\nin\n%s", rows[i].name, rows[i].line, text);
    }
}

static void no_card(void **state) {
    AUTO(buf_done) struct buf out = {0};
    exposition_gpus(&out, NULL, 0);
    exposition_dcgm(&out, NULL, 0);
    assert_int_equal(out.len, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(no_card)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
