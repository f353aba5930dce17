/* Whose a process is: cgroup texts of runtimes and resource managers, v1, v2 and hybrid. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "model/belonging.h"
#include "tests/test.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX2 "ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abffff"
#define POD "11111111-2222-3333-4444-555555555555"
#define POD_ "11111111_2222_3333_4444_555555555555"

static void rows_(void **state) {
    static const struct {
        const char *name, *text;
        enum belonging_kind kind;
        const char *id, *pod;
        int64_t uid, job;
    } rows[] = {
        {"nothing",                              "",                                                                                            BELONGS_TO_NONE,       "",                "",  -1,   -1  },
        {"the root",                             "0::/\n",                                                                                      BELONGS_TO_NONE,       "",                "",  -1,   -1  },
        {"docker v2 systemd",                    "0::/system.slice/docker-" HEX ".scope\n",                                                     BELONGS_TO_DOCKER,     HEX,               "",  -1,   -1  },
        {"docker v2 cgroupfs",                   "0::/docker/" HEX "\n",                                                                        BELONGS_TO_DOCKER,     HEX,               "",  -1,   -1  },
        {"docker v1",                            "12:cpu,cpuacct:/docker/" HEX "\n11:memory:/docker/" HEX "\n1:name=systemd:/docker/" HEX "\n",
         BELONGS_TO_DOCKER,                                                                                                                                            HEX,               "",  -1,   -1  },
        {"docker hybrid",
         "5:devices:/docker/" HEX "\n1:name=systemd:/docker/" HEX "\n0::/system.slice/containerd.service\n",
         BELONGS_TO_DOCKER,                                                                                                                                            HEX,               "",  -1,   -1  },
        {"docker, seen from a cgroup namespace", "0::/../docker-" HEX ".scope\n",                                                               BELONGS_TO_DOCKER,     HEX,               "",  -1,   -1  },
        {"docker with a parent of its own",      "0::/lab.slice/docker-" HEX ".scope\n",                                                        BELONGS_TO_DOCKER,     HEX,               "",  -1,   -1  },
        {"a group within a container",           "0::/docker/" HEX "/inner/deep\n",                                                             BELONGS_TO_DOCKER,     HEX,               "",  -1,   -1  },
        {"docker in docker: the inner one",      "0::/docker/" HEX "/docker/" HEX2 "\n",                                                        BELONGS_TO_DOCKER,     HEX2,              "",  -1,
         -1                                                                                                                                                                                              },
        {"podman root",                          "0::/machine.slice/libpod-" HEX ".scope/container\n",                                          BELONGS_TO_PODMAN,     HEX,               "",  -1,   -1  },
        {"podman of a user",                     "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" HEX ".scope\n",
         BELONGS_TO_PODMAN,                                                                                                                                            HEX,               "",  1000, -1  },
        {"podman cgroupfs",                      "4:memory:/libpod_parent/libpod-" HEX "\n",                                                    BELONGS_TO_PODMAN,     HEX,               "",  -1,   -1  },
        {"podman's conmon is no container",      "0::/machine.slice/libpod-conmon-" HEX ".scope\n",                                             BELONGS_TO_UNIT,
         "libpod-conmon-" HEX ".scope",                                                                                                                                                   "",  -1,   -1  },
        {"kubernetes, containerd, systemd",
         "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/cri-containerd-" HEX
         ".scope\n",                                                                                                                            BELONGS_TO_CONTAINERD, HEX,               POD, -1,   -1  },
        {"kubernetes, cgroupfs",                 "2:cpu:/kubepods/besteffort/pod" POD "/" HEX "\n",                                             BELONGS_TO_CONTAINERD, HEX,               POD, -1,
         -1                                                                                                                                                                                              },
        {"kubernetes, CRI-O",                    "0::/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" HEX ".scope\n",                          BELONGS_TO_CRIO,
         HEX,                                                                                                                                                                             POD, -1,   -1  },
        {"slurm v1",                             "6:devices:/slurm/uid_1001/job_4711/step_0/task_0\n",                                          BELONGS_TO_SLURM,      "4711.0",          "",  1001, 4711},
        {"slurm v2",                             "0::/system.slice/slurmstepd.scope/job_88/step_batch/user/task_0\n",                           BELONGS_TO_SLURM,      "88.batch",
         "",                                                                                                                                                                                   -1,   88  },
        {"a container in a slurm job",           "0::/system.slice/slurmstepd.scope/job_88/step_0/user/libpod-" HEX ".scope\n",
         BELONGS_TO_PODMAN,                                                                                                                                            HEX,               "",  -1,   88  },
        {"a session",                            "0::/user.slice/user-1000.slice/session-7.scope\n",                                            BELONGS_TO_SESSION,    "7",               "",  1000, -1  },
        {"a unit",                               "0::/system.slice/jupyter.service\n",                                                          BELONGS_TO_UNIT,       "jupyter.service", "",  -1,   -1  },
        {"a user's unit",                        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/train.service\n",                  BELONGS_TO_UNIT,
         "train.service",                                                                                                                                                                 "",  1000, -1  },
        {"lxc",                                  "0::/lxc.payload.box1/system.slice/x.service\n",                                               BELONGS_TO_LXC,        "box1",            "",  -1,   -1  },
        {"lxc v1",                               "3:cpu:/lxc/box1\n",                                                                           BELONGS_TO_LXC,        "box1",            "",  -1,   -1  },
        {"63 digits are no container",           "0::/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n",
         BELONGS_TO_NONE,                                                                                                                                              "",                "",  -1,   -1  },
        {"65 digits neither",                    "0::/docker/" HEX "0\n",                                                                       BELONGS_TO_NONE,       "",                "",  -1,   -1  },
        {"not that format",                      "what is this\n::\n:\n",                                                                       BELONGS_TO_NONE,       "",                "",  -1,   -1  },
        {"no line end",                          "0::/docker/" HEX,                                                                             BELONGS_TO_DOCKER,     HEX,               "",  -1,   -1  },
        {"a job beyond numbers",                 "0::/job_99999999999999999999/step_0\n",                                                       BELONGS_TO_NONE,       "",                "",  -1,   -1  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct belonging b;
        belonging_parse(rows[i].text, &b);
        if (b.kind != rows[i].kind || strncmp(b.id, rows[i].id, sizeof b.id - 1) != 0 ||
            strcmp(b.pod, rows[i].pod) != 0 || b.uid != rows[i].uid || b.slurm_job != rows[i].job)
            fail_msg("%s: %s \"%s\" pod \"%s\" uid %lld job %lld", rows[i].name, belonging_kind_name(b.kind), b.id,
                     b.pod, (long long)b.uid, (long long)b.slurm_job);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
