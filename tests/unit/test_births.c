/* Cgroups of containers, in a tree of our own; and which device files are a GPU's. */
#include "node/births.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "node/inside.h"
#include "tests/test.h"

#define ID "684ee6c2ec5b42f9497477f46a22561ed1e5627097dfef25dfc93461dd5f9407"

static char root[] = "/tmp/births.XXXXXX";

static void make(const char *below) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", root, below);
    assert_int_equal(mkdir(path, 0755), 0);
}

/* inotify tells before mkdir returns. */
static bool is_told(struct births *b) {
    bool has_one = false;
    struct pollfd p = {.fd = b->fd, .events = POLLIN};
    while (poll(&p, 1, 0) > 0) has_one |= births_read(b);
    return has_one;
}

static void names(void **state) {
    static const struct {
        const char *name;
        bool want;
    } rows[] = {
        {ID,                              true },
        {"docker-" ID ".scope",           true },
        {"libpod-" ID,                    true },
        {"libpod-conmon-" ID,             true },
        {"cri-containerd-" ID ".scope",   true },
        {ID "0",                          false},
        {"docker",                        false},
        {"",                              false},
        {"684ee6c2ec5b42f9497477f46a225", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) assert_int_equal(births_is_container(rows[i].name), rows[i].want);
}

static void births(void **state) {
    struct births b;
    assert_non_null(mkdtemp(root));
    make("unified");
    make("unified/docker");
    make("unified/docker/" ID);
    births_open(&b, root);
    assert_true(b.fd >= 0);
    assert_false(is_told(&b)); /* what was there is not new */
    static const struct {
        const char *dir;
        bool want;
    } steps[] = {
        {"unified/user.slice",                                                                                        false},
        {"unified/user.slice/" ID,                                                                                    false}, /* nobody's place for containers */
        {"unified/docker/0" ID,                                                                                       false},
        {"unified/docker/" ID "/below",                                                                               false},
        {"unified/docker/a",                                                                                          false},
        {"unified/docker/1"
         "84ee6c2ec5b42f9497477f46a22561ed1e5627097dfef25dfc93461dd5f9407",                                  true },
        {"unified/system.slice",                                                                                      false},
        {"unified/system.slice/ssh.service",                                                                          false},
        {"unified/system.slice/docker-" ID ".scope",                                                                  true },
        {"unified/kubepods.slice",                                                                                    false},
        {"unified/kubepods.slice/kubepods-burstable.slice",                                                           false},
        {"unified/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice",                             false},
        {"unified/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-" ID ".scope",
         true                                                                                                              },
        {"unified/libpod_parent",                                                                                     false},
        {"unified/libpod_parent/libpod-" ID,                                                                          true },
    };
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        make(steps[i].dir);
        if (is_told(&b) != steps[i].want) fail_msg("%s", steps[i].dir);
    }
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
    is_told(&b);
    assert_int_equal(b.count, 0);
    births_close(&b);
    births_close(&b);
}

static void gpu_files(void **state) {
    static const struct {
        const char *path;
        bool want;
    } rows[] = {
        {"/dev/nvidia0",         true },
        {"/dev/nvidia15",        true },
        {"/srv/sim/dev/nvidia3", true },
        {"/dev/nvidiactl",       false},
        {"/dev/nvidia-uvm",      false},
        {"/dev/nvidia",          false},
        {"/dev/nvidia0x",        false},
        {"/dev/../etc/nvidia0",  false},
        {"nvidia0",              false},
        {"/dev/nvidia1234",      false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (inside_is_gpu(rows[i].path) != rows[i].want) fail_msg("%s", rows[i].path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(births),
        cmocka_unit_test(gpu_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
