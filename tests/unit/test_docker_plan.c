/* `gpumgr docker`: which words are ours, which are Docker's, which the container's, and what is refused. */
#include "client/docker.h"

#include <string.h>

#include "base/buf.h"
#include "tests/test.h"

enum { WORDS_MAX = 32 };

static int split(char *text, char **argv) {
    int n = 0;
    for (char *one; (one = strsep(&text, " "));) argv[n++] = one;
    argv[n] = NULL;
    return n;
}

static void passed_on(void **state) {
    static const struct {
        const char *typed, *want;
    } rows[] = {
        {"docker run img",                                                         "docker run img"                                         },
        {"docker run --deadline 30s img",                                          "docker run --label=gpumgr.deadline=30s img"             },
        {"docker run --deadline=30s img",                                          "docker run --label=gpumgr.deadline=30s img"             },
        {"docker create --rm --deadline 1m30s -it img sh -c x",
         "docker create --rm -it --label=gpumgr.deadline=1m30s img sh -c x"                                                                 },
        {"docker run img --deadline nonsense",                                     "docker run img --deadline nonsense"                     },
        {"docker run --deadline 1s img --deadline 2s",                             "docker run --label=gpumgr.deadline=1s img --deadline 2s"},
        {"docker run --name --deadline img",                                       "docker run --name --deadline img"                       },
        {"docker run -e --deadline=x img",                                         "docker run -e --deadline=x img"                         },
        {"docker run -e A=b --deadline 1s img",                                    "docker run -e A=b --label=gpumgr.deadline=1s img"       },
        {"docker run -eA=b --deadline 1s img",                                     "docker run -eA=b --label=gpumgr.deadline=1s img"        },
        {"docker run -itv /a:/b --deadline 1s img x",                              "docker run -itv /a:/b --label=gpumgr.deadline=1s img x" },
        {"docker run -it img --deadline 1",                                        "docker run -it img --deadline 1"                        },
        {"docker run --gpus all --deadline 1s img",                                "docker run --gpus all --label=gpumgr.deadline=1s img"   },
        {"docker run --privileged img --deadline 1",                               "docker run --privileged img --deadline 1"               },
        {"docker run --privileged=false --deadline 1s img",
         "docker run --privileged=false --label=gpumgr.deadline=1s img"                                                                     },
        {"docker run --deadline 1s -- img --period x",                             "docker run --label=gpumgr.deadline=1s -- img --period x"},
        {"docker -H unix:///x run --deadline 1s img",                              "docker -H unix:///x run --label=gpumgr.deadline=1s img" },
        {"docker --debug --context c container run --deadline 1s img",
         "docker --debug --context c container run --label=gpumgr.deadline=1s img"                                                          },
        {"docker run --deadline 1s --period 2s --priority -5 --tenant vision img",
         "docker run --label=gpumgr.deadline=1s --label=gpumgr.period=2s --label=gpumgr.priority=-5 "
         "--label=gpumgr.tenant=vision img"                                                                                                 },
        {"docker run --label gpumgr.deadline=2s --period 3s img",
         "docker run --label gpumgr.deadline=2s --label=gpumgr.period=3s img"                                                               },
        {"docker run -l other=gpumgr.deadline img",                                "docker run -l other=gpumgr.deadline img"                },
        {"docker run --deadline-other 1s img",                                     "docker run --deadline-other 1s img"                     },
        {"docker run --deadline 1s",                                               "docker run --label=gpumgr.deadline=1s"                  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[256], *argv[WORDS_MAX];
        AUTO(docker_plan_done) struct docker_plan plan = {0};
        AUTO(buf_done) struct buf got = {0};
        struct error e = {0};
        strcpy(text, rows[i].typed);
        if (docker_plan(split(text, argv), argv, &plan, &e) < 0) fail_msg("%s: %s", rows[i].typed, e.text);
        for (char **w = plan.argv; *w; w++) buf_printf(&got, "%s%s", w == plan.argv ? "" : " ", *w);
        if (strcmp(got.s, rows[i].want) != 0) fail_msg("%s\n  became %s", rows[i].typed, got.s);
    }
}

static void refused(void **state) {
    static const struct {
        const char *typed, *because;
    } rows[] = {
        {"docker run --deadline soon img",                        "--deadline: \"soon\" is not a length of time"},
        {"docker run --deadline 30 img",                          "without a unit"                              },
        {"docker run --deadline= img",                            "--deadline: \"\""                            },
        {"docker run --deadline 0s img",                          "not from 1ms"                                },
        {"docker run --deadline",                                 "--deadline needs a value"                    },
        {"docker run --deadline 1s --deadline 2s img",            "given twice"                                 },
        {"docker run --label gpumgr.deadline=1s --deadline 2s i", "given twice, once as the label"              },
        {"docker run --deadline 2s --label=gpumgr.deadline=1s i", "given twice, once as the label"              },
        {"docker run -l gpumgr.deadline=x img",                   "not a length of time"                        },
        {"docker run -lgpumgr.priority=x img",                    "--priority"                                  },
        {"docker run --label gpumgr.dead=1s img",                 "no such label"                               },
        {"docker run --label gpumgr.deadline img",                "no such label"                               },
        {"docker run --period 1s img",                            "--period needs --deadline"                   },
        {"docker run --period 1s --deadline 2s img",              "shorter than the deadline"                   },
        {"docker run --priority 1.5 img",                         "--priority: \"1.5\""                         },
        {"docker run --priority 1001 img",                        "--priority"                                  },
        {"docker run --priority high img",                        "--priority"                                  },
        {"docker run --tenant  img",                              "--tenant"                                    },
        {"docker ps",                                             "\"ps\": only run and create"                 },
        {"docker",                                                "no command: only run and create"             },
        {"docker --host x",                                       "no command"                                  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[256], *argv[WORDS_MAX];
        struct docker_plan plan = {0};
        struct error e = {0};
        strcpy(text, rows[i].typed);
        int r = docker_plan(split(text, argv), argv, &plan, &e);
        if (r >= 0 || !strstr(e.text, rows[i].because)) fail_msg("%s: %d %s", rows[i].typed, r, e.text);
        assert_null(plan.argv);
    }
}

static void plugin_name(void **state) {
    assert_true(docker_plugin_is("docker-gpu"));
    assert_true(docker_plugin_is("/root/.docker/cli-plugins/docker-gpu"));
    assert_false(docker_plugin_is("gpumgr"));
    assert_false(docker_plugin_is("docker-gpu/gpumgr"));
    assert_false(docker_plugin_is(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passed_on),
        cmocka_unit_test(refused),
        cmocka_unit_test(plugin_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
