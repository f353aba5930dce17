/* What the kernel's text files say of a machine and of a process: usual ones, old ones, odd ones. */
#include "tests/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "node/host_parse.h"
#include "node/person.h"

static void cpu(void **state) {
    static const struct {
        const char *name, *text;
        bool is_good;
        uint64_t busy, iowait, all;
    } rows[] = {
        {"usual",             "cpu  100 20 30 400 50 6 7 8 90 10\ncpu0 1 2 3 4\n", true,  171, 50, 621},
        {"an old kernel",     "cpu 100 20 30 400\n",                               true,  150, 0,  550},
        {"without the sum",   "cpu0 100 20 30 400\n",                              false, 0,   0,  0  },
        {"cut",               "cpu  100 20",                                       false, 0,   0,  0  },
        {"nothing",           "",                                                  false, 0,   0,  0  },
        {"words for numbers", "cpu  a b c d\n",                                    false, 0,   0,  0  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct host_cpu c = {0};
        bool is_good = host_parse_stat(rows[i].text, &c);
        if (is_good != rows[i].is_good) fail_msg("%s: taken %d", rows[i].name, is_good);
        if (is_good && (c.busy != rows[i].busy || c.iowait != rows[i].iowait || c.all != rows[i].all))
            fail_msg("%s: %llu %llu %llu", rows[i].name, (unsigned long long)c.busy, (unsigned long long)c.iowait,
                     (unsigned long long)c.all);
    }
}

static void load_and_pressure(void **state) {
    double load[3], processes, ratio;
    assert_true(host_parse_loadavg("0.52 0.58 10.59 3/1234 5678\n", load, &processes));
    assert_true(load[0] == 0.52 && load[1] == 0.58 && load[2] == 10.59 && processes == 1234);
    assert_false(host_parse_loadavg("0.52 0.58", load, &processes));
    assert_false(host_parse_loadavg("", load, &processes));
    assert_true(host_parse_pressure("some avg10=12.50 avg60=1.00 avg300=0.00 total=9\nfull avg10=0.00\n", &ratio));
    assert_true(ratio == 0.125);
    assert_false(host_parse_pressure("full avg10=12.50", &ratio));
    assert_false(host_parse_pressure("some avg10=1e9", &ratio));
    assert_false(host_parse_pressure("", &ratio));
}

static void memory(void **state) {
    struct host_memory m;
    host_parse_meminfo(
        "MemTotal:       24684100 kB\nMemFree: 7 kB\nMemAvailable:   123 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n", &m);
    assert_int_equal(m.total, 24684100);
    assert_int_equal(m.available, 123);
    assert_int_equal(m.swap_total, 0);
    host_parse_meminfo("MemTotal: 5 kB\nMemTotalish: 9 kB\nMemAvailable:\n", &m);
    assert_int_equal(m.total, 5);
    assert_true(m.available == UINT64_MAX && m.swap_free == UINT64_MAX);
}

static bool counts(const char *name, void *ctx) { return !strstr(name, "loop") && strcmp(name, "lo") != 0; }

static void disks(void **state) {
    struct host_disks d;
    host_parse_diskstats("   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11\n"
                         " 259       0 nvme0n1 100 0 2000 30 200 0 4000 60 0 777 90 0 0 0 0\n"
                         "   8       0 sda 1 0 8 1 1 0 16 1 0 5 2\n"
                         "   8      16 sdb 1 0\n"
                         "nonsense\n",
                         counts, NULL, &d);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.read_bytes, 2008 * 512);
    assert_int_equal(d.written_bytes, 4016 * 512);
    assert_int_equal(d.of[0].busy_ms, 777);
    assert_int_equal(d.of[1].busy_ms, 5);
    host_parse_diskstats("", counts, NULL, &d);
    assert_int_equal(d.count, 0);
}

static void many_disks(void **state) {
    static char text[100000];
    size_t n = 0;
    struct host_disks d;
    for (int i = 0; i < 500; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " 8 %d sd%d 1 0 2 0 1 0 4 0 0 %d 0\n", i, i, i);
    host_parse_diskstats(text, counts, NULL, &d);
    assert_int_equal(d.count, ARRAY_LEN(d.of));
    assert_int_equal(d.read_bytes, 500 * 2 * 512);
}

static void network(void **state) {
    struct host_network n;
    host_parse_netdev("Inter-|   Receive                    |  Transmit\n"
                      " face |bytes    packets errs drop fifo frame compressed multicast|bytes\n"
                      "    lo: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
                      "  eth0:1000 2 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
                      "enp0s31f6: 7 2 0 0 0 0 0 0 3 1 0 0 0 0 0 0\n"
                      "  cut0: 5 5\n"
                      "a-name-that-is-longer-than-any-interface-has: 1 1 1 1 1 1 1 1 1\n",
                      counts, NULL, &n);
    assert_int_equal(n.count, 2);
    assert_int_equal(n.received, 1007);
    assert_int_equal(n.sent, 503);
}

/* ---- one process ---- */

static void stat_lines(void **state) {
    static const struct {
        const char *name, *text, *comm;
        int64_t start_ns;
    } rows[] = {
        {"usual",                  "12 (python3) S 1 12 12 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 12345 100 5 1844", "python3",
         123450000000                                                                                                           },
        {"a name with everything", "12 (a) b (c) S 1 12 12 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 7 100",            "a) b (c",
         70000000                                                                                                               },
        {"cut",                    "12 (x) S 1 12",                                                                 "x",       0},
        {"no name",                "12 x S 1 12",                                                                   "",        0},
        {"nothing",                "",                                                                              "",        0},
        {"brackets the wrong way", ")(",                                                                            "",        0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct person p = {0};
        person_parse_stat(&p, rows[i].text, 100);
        if (strcmp(p.comm, rows[i].comm) != 0 || p.start_boot_ns != rows[i].start_ns)
            fail_msg("%s: \"%s\" %lld", rows[i].name, p.comm, (long long)p.start_boot_ns);
    }
    struct person p = {0};
    char long_name[300] = "1 (";
    memset(long_name + 3, 'n', 100);
    strcpy(long_name + 103, ") S 1");
    person_parse_stat(&p, long_name, 100);
    assert_int_equal(strlen(p.comm), sizeof p.comm - 1);
}

static void status_lines(void **state) {
    struct person p = {.uid = UINT32_MAX};
    person_parse_status(&p, "Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\n");
    assert_int_equal(p.uid, 1000);
    p.uid = UINT32_MAX;
    person_parse_status(&p, "Name:\tUid:\t7\nGid:\t5\n");
    person_parse_status(&p, "Name:\tx\nUid:\n");
    person_parse_status(&p, "");
    assert_true(p.uid == UINT32_MAX);
}

static void commands(void **state) {
    static const struct {
        const char *name, *from;
        int64_t len, room;
        const char *want;
    } rows[] = {
        {"arguments",          "a\0b c\0d\0",     8, 100, "a b c d"   },
        {"one",                "a",               1, 100, "a"         },
        {"nothing",            "",                0, 100, ""          },
        {"only ends",          "\0\0\0",          3, 100, ""          },
        {"an empty argument",  "a\0\0b\0",        5, 100, "a  b"      },
        {"controls",           "a\n\x1b[31m\x7f", 8, 100, "a??[31m?"  },
        {"cut",                "abcdef",          6, 3,   "abc"       },
        {"cut in a character", "ab\xc3\xa4z",     5, 3,   "ab"        },
        {"cut after one",      "ab\xc3\xa4z",     5, 4,   "ab\xc3\xa4"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[200] = {0};
        memcpy(text, rows[i].from, (size_t)rows[i].len);
        person_join(text, rows[i].len, rows[i].room);
        if (strcmp(text, rows[i].want) != 0) fail_msg("%s: \"%s\"", rows[i].name, text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu),        cmocka_unit_test(load_and_pressure), cmocka_unit_test(memory),
        cmocka_unit_test(disks),      cmocka_unit_test(many_disks),        cmocka_unit_test(network),
        cmocka_unit_test(stat_lines), cmocka_unit_test(status_lines),      cmocka_unit_test(commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
