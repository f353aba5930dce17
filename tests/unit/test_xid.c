/* XIDs: lines of the kernel log, places, and counting what two sources tell. */
#include "model/xid.h"

#include <string.h>

#include "base/auto.h"
#include "tests/test.h"

static void lines(void **state) {
    static const struct {
        const char *line, *pci;
        uint64_t code;
        int pid;
        const char *process;
    } rows[] = {
        {"6,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python3, GPU has fallen off the bus.",
         "0000:3b:00",                                                                                                      79,                    4242, "python3"},
        {"NVRM: Xid (PCI:0000:19:00): 31, pid=1, Ch 00000008, intr 00000000",                                 "0000:19:00", 31,                    1,    ""       },
        {"NVRM: Xid (PCI:0000:19:00): 119, pid='<unknown>', name=<unknown>, Timeout",                         "0000:19:00", 119,                   0,
         "<unknown>"                                                                                                                                              },
        {"NVRM: Xid (PCI:0001:C1:00): 94",                                                                    "0001:C1:00", 94,                    0,    ""       },
        {"NVRM: Xid (PCI:0000:19:00): 0, nothing",                                                            NULL,         0,                     0,    ""       },
        {"NVRM: Xid (PCI:0000:19:00): , pid=1",                                                               NULL,         0,                     0,    ""       },
        {"NVRM: Xid (PCI:): 13",                                                                              NULL,         0,                     0,    ""       },
        {"NVRM: Xid (PCI:0000:19:00)",                                                                        NULL,         0,                     0,    ""       },
        {"nvidia 0000:19:00.0: enabling device",                                                              NULL,         0,                     0,    ""       },
        {"",                                                                                                  NULL,         0,                     0,    ""       },
        {"NVRM: Xid (PCI:0000:19:00): 99999999999999999999999, pid=99999999999",                              "0000:19:00", 999999999999999999ull, 0,
         ""                                                                                                                                                       },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct xid_line x;
        bool got = xid_parse(rows[i].line, strlen(rows[i].line), &x);
        if (got != (rows[i].pci != NULL)) fail_msg("%s: %d", rows[i].line, got);
        if (!got) continue;
        assert_string_equal(x.pci, rows[i].pci);
        assert_int_equal(x.code, rows[i].code);
        assert_int_equal(x.pid, rows[i].pid);
        assert_string_equal(x.process, rows[i].process);
    }
}

static void places(void **state) {
    static const struct {
        const char *line, *driver;
        bool same;
    } rows[] = {
        {"0000:3b:00", "00000000:3B:00.0", true },
        {"0000:3b:00", "00000000:3C:00.0", false},
        {"0001:c1:00", "00000001:C1:00.0", true },
        {"0001:c1:00", "00000000:C1:00.0", false},
        {"0000:3b:00", "",                 false},
        {"0000:00:06", "00000000:00:06.0", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (xid_is_at(rows[i].line, rows[i].driver) != rows[i].same) fail_msg("%s %s", rows[i].line, rows[i].driver);
}

static void told_by_both_counts_once(void **state) {
    struct xid_count c = {0};
    assert_true(xid_take(&c, 31, XID_FROM_DRIVER, 1));
    assert_false(xid_take(&c, 31, XID_FROM_LOG, 2));
    assert_true(xid_take(&c, 31, XID_FROM_LOG, 3)); /* the driver kept this one to itself */
    assert_false(xid_take(&c, 31, XID_FROM_DRIVER, 4));
    assert_true(xid_take(&c, 79, XID_FROM_LOG, 5));
    assert_int_equal(xid_total(&c), 3);
    assert_int_equal(c.of[0].total, 2);
    assert_int_equal(c.of[0].last_real_ns, 3);
}

static void many_codes_stay_in_bounds(void **state) {
    struct xid_count c = {0};
    for (uint64_t code = 1; code < 1000; code++)
        xid_take(&c, code, code % 2 ? XID_FROM_DRIVER : XID_FROM_LOG, (int64_t)code);
    assert_int_equal(c.count, XID_CODES_MAX);
    assert_int_equal(c.of[0].code, 1);
}

static void every_code_has_words(void **state) {
    for (uint64_t code = 0; code < 300; code++) {
        const struct xid *x = xid_find(code);
        assert_non_null(x);
        assert_true(*x->what && *x->advice);
    }
    assert_int_equal(xid_find(79)->severity, EVENT_CRITICAL);
    assert_int_equal(xid_find(31)->severity, EVENT_WARNING);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines), cmocka_unit_test(places), cmocka_unit_test(told_by_both_counts_once),
        cmocka_unit_test(many_codes_stay_in_bounds), cmocka_unit_test(every_code_has_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
