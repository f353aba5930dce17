/* What a container's cgroups say: the right line of /proc/PID/cgroup, and never that of a cgroup which others are in, too. */
#include "node/cgroup_use.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "tests/test.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *name, *text, *controller, *want; /* NULL: none */
} paths[] = {
    {"version 2",                       "0::/system.slice/docker-" ID ".scope\n",                 "",        "/system.slice/docker-" ID ".scope"},
    {"version 1",                       "9:blkio:/docker/" ID "\n2:cpu,cpuacct:/docker/" ID "\n", "cpuacct", "/docker/" ID                      },
    {"alone",                           "1:cpuacct:/docker/" ID "\n",                             "cpuacct", "/docker/" ID                      },
    {"a part of a word is another one", "1:cpuacct2,xcpuacct:/docker/" ID "\n",                   "cpuacct", NULL                               },
    {"the root is everybody's",         "2:cpuacct:/\n0::/\n",                                    "cpuacct", NULL                               },
    {"the root of version 2, too",      "2:cpuacct:/docker/" ID "\n0::/\n",                       "",        NULL                               },
    {"outside of what is mounted",      "0::/../docker/" ID "\n",                                 "",        NULL                               },
    {"no end of line",                  "0::/a/" ID,                                              "",        "/a/" ID                           },
    {"half a line",                     "0:",                                                     "",        NULL                               },
    {"nothing",                         "",                                                       "",        NULL                               },
};

static void lines(void **s) {
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char got[200] = "";
        bool is_there = cgroup_path(paths[i].text, paths[i].controller, ID, got, sizeof got);
        if (is_there != (paths[i].want != NULL) || (is_there && strcmp(got, paths[i].want) != 0))
            fail_msg("%s: %s", paths[i].name, got);
    }
    char little[10];
    assert_false(cgroup_path(paths[0].text, "", ID, little, sizeof little));
    char got[200];
    assert_false(cgroup_path(paths[0].text, "", "", got, sizeof got));
}

static void files(void **s) {
    struct cgroup_use u = {0};
    assert_true(cgroup_cpu_stat("usage_usec 2500000\nuser_usec 1\n") == 2.5);
    assert_true(isnan(cgroup_cpu_stat("core_usage_usec 7\n")) && isnan(cgroup_cpu_stat("")));
    cgroup_io_stat("8:0 rbytes=100 wbytes=7 rios=1 wios=2 dbytes=9 dios=0\n259:1 rbytes=23 wbytes=1\n", &u);
    assert_true(u.read_bytes == 123 && u.written_bytes == 8);
    cgroup_io_stat("", &u);
    assert_true(u.read_bytes == 0 && u.written_bytes == 0);
    cgroup_blkio_bytes("8:0 Read 4096\n8:0 Write 10\n8:0 Sync 5\n8:16 Read 1\nTotal 4107\n", &u);
    assert_true(u.read_bytes == 4097 && u.written_bytes == 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
