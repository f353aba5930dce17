/* What engines say about containers: events, lists and descriptions as Docker and Podman write them, and as nobody should. */
#include "node/container.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/test.h"

#define ID "684ee6c2ec5b42f9497477f46a22561ed1e5627097dfef25dfc93461dd5f9407"
#define OTHER "0000000000000000000000000000000000000000000000000000000000000001"

static void events(void **state) {
    static const struct {
        const char *json;
        int want;
        enum container_action action;
        const char *name;
        int64_t deadline_ms;
    } rows[] = {
        {"{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{\"ID\":\"" ID
         "\",\"Attributes\":{\"image\":\"a:1\",\"name\":\"one\",\"gpumgr.deadline\":\"30s\"}}}",                0,  CONTAINER_STARTED, "one", 30000},
        {"{\"Type\":\"container\",\"Action\":\"die\",\"Actor\":{\"ID\":\"" ID "\",\"Attributes\":{\"name\":\"/one\"}}}",
         0,                                                                                                                  CONTAINER_ENDED,   "one", 0    },
        {"{\"Type\":\"container\",\"Action\":\"died\",\"Actor\":{\"ID\":\"" ID "\"}}",                                   0,  CONTAINER_ENDED,   "",    0    },
        {"{\"Type\":\"container\",\"Action\":\"exec_start: sh -c x\",\"Actor\":{\"ID\":\"" ID "\"}}",                    0,
         CONTAINER_OTHER,                                                                                                                       "",    0    },
        {"{\"Type\":\"container\",\"Action\":\"destroy\",\"Actor\":{\"ID\":\"" ID "\"}}",                                0,  CONTAINER_REMOVED, "",    0    },
        {"{\"Actor\":{\"ID\":\"" ID "\",\"Attributes\":{\"name\":7}},\"Action\":\"rename\",\"Type\":\"container\"}",     0,
         CONTAINER_RENAMED,                                                                                                                     "",    0    },
        {"{\"Type\":\"container\",\"Action\":7,\"Actor\":{\"ID\":\"" ID "\"}}",                                          0,  CONTAINER_OTHER,   "",    0    },
        {"{\"Type\":\"image\",\"Action\":\"start\",\"Actor\":{\"ID\":\"" ID "\"}}",                                      -1, CONTAINER_OTHER,   "",    0    },
        {"{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{\"ID\":\"../../etc\"}}",                               -1, CONTAINER_OTHER,   "",    0    },
        {"{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":[\"" ID "\"]}",                                         -1, CONTAINER_OTHER,   "",    0    },
        {"{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{\"ID\":\"" ID "\"}",                                   -1, CONTAINER_OTHER,   "",    0    },
        {"[]",                                                                                                           -1, CONTAINER_OTHER,   "",    0    },
        {"hello",                                                                                                        -1, CONTAINER_OTHER,   "",    0    },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct container_said said;
        enum container_action action;
        struct error e = {0};
        int r = container_event(rows[i].json, strlen(rows[i].json), &action, &said, &e);
        if ((r < 0) != (rows[i].want < 0)) fail_msg("%s: %d %s", rows[i].json, r, e.text);
        if (r < 0) continue;
        assert_int_equal(action, rows[i].action);
        assert_string_equal(said.facts.id, ID);
        assert_string_equal(said.facts.name, rows[i].name);
        assert_int_equal(said.facts.deadline_ns, rows[i].deadline_ms * NS_PER_MS);
    }
}

static void labels(void **state) {
    static const struct {
        const char *key, *value, *bad;
        int64_t deadline_ms, period_ms;
        int32_t priority;
        const char *tenant;
    } rows[] = {
        {"gpumgr.deadline", "1m30s",   "",                                  90000, 0,   ENGINE_NO_PRIORITY, ""             },
        {"gpumgr.deadline", "30",      "label gpumgr.deadline: \"30\" has", 0,     0,   ENGINE_NO_PRIORITY, ""             },
        {"gpumgr.deadline", "\x1b[2J", "label gpumgr.deadline: \"?[2J\"",   0,     0,   ENGINE_NO_PRIORITY, ""             },
        {"gpumgr.period",   "100ms",   "",                                  0,     100, ENGINE_NO_PRIORITY, ""             },
        {"gpumgr.period",   "",        "label gpumgr.period: \"\"",         0,     0,   ENGINE_NO_PRIORITY, ""             },
        {"gpumgr.priority", "-7",      "",                                  0,     0,   -7,                 ""             },
        {"gpumgr.priority", "1001",    "label gpumgr.priority: not",        0,     0,   ENGINE_NO_PRIORITY, ""             },
        {"gpumgr.priority", "--1",     "label gpumgr.priority: not",        0,     0,   ENGINE_NO_PRIORITY, ""             },
        {"gpumgr.priority", " 1",      "label gpumgr.priority: not",        0,     0,   ENGINE_NO_PRIORITY, ""             },
        {"gpumgr.tenant",
         "a\nb\xff"
         "c\xc3\xa9",                  "",                                  0,     0,   ENGINE_NO_PRIORITY, "a?b?c\xc3\xa9"},
        {"gpumgr.else",     "x",       "",                                  0,     0,   ENGINE_NO_PRIORITY, ""             },
        {"deadline",        "30s",     "",                                  0,     0,   ENGINE_NO_PRIORITY, ""             },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct engine_facts f = {.priority = ENGINE_NO_PRIORITY};
        container_label(&f, rows[i].key, rows[i].value);
        if (strncmp(f.bad_label, rows[i].bad, strlen(rows[i].bad)) != 0 || !*rows[i].bad != !f.bad_label[0])
            fail_msg("%s=%s: %s", rows[i].key, rows[i].value, f.bad_label);
        assert_int_equal(f.deadline_ns, rows[i].deadline_ms * NS_PER_MS);
        assert_int_equal(f.period_ns, rows[i].period_ms * NS_PER_MS);
        assert_int_equal(f.priority, rows[i].priority);
        assert_string_equal(f.tenant, rows[i].tenant);
    }
}

static void descriptions(void **state) {
    static const char json[] =
        "{\"Id\":\"" ID "\",\"Created\":\"2026-11-15T08:45:10.95Z\",\"Name\":\"/"
        "one\",\"Image\":\"sha256:1\",\"State\":{\"Status\":\"running\","
        "\"Pid\":18844},\"Config\":{\"Image\":\"tiny:1\",\"Labels\":{\"gpumgr.deadline\":\"2m\",\"x\":\"y\"}},"
        "\"HostConfig\":{\"Devices\":"
        "[{\"PathOnHost\":\"/dev/nvidia0\",\"PathInContainer\":\"/dev/nvidia0\"},{\"PathInContainer\":\"relative\"}]}}";
    struct container_said said;
    struct error e = {0};
    assert_int_equal(container_inspect(json, strlen(json), &said, &e), 0);
    assert_string_equal(said.facts.name, "one");
    assert_string_equal(said.facts.image, "tiny:1");
    assert_int_equal(said.facts.state, ENGINE_RUNNING);
    assert_int_equal(said.facts.pid, 18844);
    assert_int_equal(said.facts.created_real_ns, 1794732310950000000ll);
    assert_int_equal(said.facts.deadline_ns, 120 * NS_PER_S);
    assert_true(said.has_labels && said.has_devices && said.facts.has_own_devices);
    assert_string_equal(said.labels, "gpumgr.deadline=2m\nx=y");
    assert_int_equal(said.device_count, 1);
    assert_string_equal(said.device[0], "/dev/nvidia0");
}

/* What somebody else put there is shown, and breaks nothing: no line of its own making, no key with a sign, no more than fits. */
static void labels_of_others(void **state) {
    char json[8192], value[500];
    struct container_said said;
    struct error e = {0};
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    snprintf(json, sizeof json,
             "{\"Id\":\"" ID "\",\"Config\":{\"Labels\":{\"a\":\"1\\n2\",\"b=c\":\"3\",\"\":\"4\",\"d\":\"\",\"e\":7,"
             "\"long0\":\"%s\",\"long1\":\"%s\",\"long2\":\"%s\",\"long3\":\"%s\",\"long4\":\"%s\",\"last\":\"z\"}}}",
             value, value, value, value, value);
    assert_int_equal(container_inspect(json, strlen(json), &said, &e), 0);
    assert_true(strlen(said.labels) < ENGINE_LABELS_MAX);
    assert_int_equal(strncmp(said.labels, "a=1?2\nd=\nlong0=vv", 17), 0);
    assert_non_null(strstr(said.labels, "\nlong3="));
    assert_null(strstr(said.labels, "\nlong4="));
    assert_non_null(strstr(said.labels, "\nlast=z"));
}

static void wrong_types_are_absent(void **state) {
    static const char json[] =
        "{\"Id\":\"" ID "\",\"Created\":1,\"Name\":[\"/one\"],\"State\":{\"Status\":1,\"Pid\":\"7\"},\"Config\":"
        "{\"Image\":{},\"Labels\":[\"gpumgr.deadline\"]},\"HostConfig\":{\"Devices\":{\"a\":1},\"Privileged\":\"yes\"}"
        "}";
    struct container_said said;
    struct error e = {0};
    assert_int_equal(container_inspect(json, strlen(json), &said, &e), 0);
    assert_string_equal(said.facts.name, "");
    assert_string_equal(said.facts.image, "");
    assert_int_equal(said.facts.state, ENGINE_UNKNOWN);
    assert_int_equal(said.facts.pid, 0);
    assert_int_equal(said.facts.created_real_ns, 0);
    assert_false(said.has_labels);
    assert_false(said.facts.has_own_devices);
}

static void count_rows(void *ctx, const struct container_said *said) {
    struct engine_facts *last = ctx;
    assert_true(container_is_id(said->facts.id));
    *last = said->facts;
}

static void lists(void **state) {
    static const struct {
        const char *json;
        int want;
        const char *last;
    } rows[] = {
        {"[]",                                                                                0,  ""   },
        {"[{\"Id\":\"" ID "\",\"Names\":[\"/a\",\"/b\"],\"State\":\"running\",\"Created\":1794732310},{\"Id\":\"" OTHER
         "\",\"Names\":[\"/two\"],\"Labels\":{\"gpumgr.deadline\":\"5s\"}}]",        2,  "two"},
        {"[{\"Id\":\"" ID "\",\"Names\":[\"/a\"]},{\"Id\":\"x\",\"Names\":[\"/b\"]},7,null]", 1,  "a"  },
        {"[{\"Names\":[\"/a\"]},{\"Id\":\"" ID "\"}]",                                        1,  ""   },
        {"{\"message\":\"no\"}",                                                              -1, ""   },
        {"[{\"Id\":\"" ID "\"}",                                                              -1, ""   },
        {"",                                                                                  -1, ""   },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct engine_facts last = {0};
        struct error e = {0};
        int r = container_list(rows[i].json, strlen(rows[i].json), count_rows, &last, &e);
        if (rows[i].want < 0 ? r >= 0 : r != rows[i].want) fail_msg("%s: %d %s", rows[i].json, r, e.text);
        assert_string_equal(last.name, rows[i].last);
        if (r < 0) assert_string_equal(last.id, ""); /* nothing of half a list */
    }
}

static void times(void **state) {
    static const struct {
        const char *text;
        int64_t want_ns;
    } rows[] = {
        {"2026-11-15T08:45:10Z",                1794732310000000000ll},
        {"2026-11-15T08:45:10.5Z",              1794732310500000000ll},
        {"2026-11-15T10:45:10.123456789+02:00", 1794732310123456789ll},
        {"2026-11-15T03:15:10-05:30",           1794732310000000000ll},
        {"2026-11-15T08:45:10.1234567899999Z",  1794732310123456789ll},
        {"0001-01-01T00:00:00Z",                0                    },
        {"2026-11-15",                          0                    },
        {"2026-11-15T08:45:10",                 0                    },
        {"2026-11-15T08:45:10 Z",               0                    },
        {"",                                    0                    },
        {"yesterday",                           0                    },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (container_time_ns(rows[i].text) != rows[i].want_ns)
            fail_msg("%s: %lld", rows[i].text, (long long)container_time_ns(rows[i].text));
}

/* An event without labels takes none away; a description without them does. */
static void merging(void **state) {
    struct engine_facts known = {.priority = ENGINE_NO_PRIORITY};
    struct container_said said = {
        .facts = {.id = ID, .name = "one", .deadline_ns = 5, .priority = 3},
          .has_labels = true
    };
    assert_true(container_merge(&known, &said));
    assert_false(container_merge(&known, &said));
    struct container_said bare = {
        .facts = {.id = ID, .name = "two", .state = ENGINE_EXITED, .priority = ENGINE_NO_PRIORITY}
    };
    assert_true(container_merge(&known, &bare));
    assert_string_equal(known.name, "two");
    assert_int_equal(known.deadline_ns, 5);
    assert_int_equal(known.priority, 3);
    bare.has_labels = true;
    assert_true(container_merge(&known, &bare));
    assert_int_equal(known.deadline_ns, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events),
        cmocka_unit_test(labels),
        cmocka_unit_test(labels_of_others),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(wrong_types_are_absent),
        cmocka_unit_test(lists),
        cmocka_unit_test(times),
        cmocka_unit_test(merging),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
