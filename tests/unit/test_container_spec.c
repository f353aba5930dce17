/* What a container may be asked for, what a change changes, how it travels; and JSON that is passed on unread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_slice.h"
#include "model/container_spec.h"
#include "model/container_spec_json.h"
#include "model/wire_container_call.h"
#include "tests/test.h"

static int read_spec(const char *json, struct buf *record, struct container_spec *ret, struct error *e) {
    buf_clear(record);
    int r = container_spec_from_json(json, strlen(json), record, e);
    return r < 0 ? r : container_spec_decode(record->s, record->len, ret, e);
}

static void what_is_refused(void **state) {
    static const struct {
        const char *json, *sentence;
    } rows[] = {
        {"[]",                                         "a container is an object"            },
        {"{\"imag\":\"x\"}",                           "did you mean \"image\"?"             },
        {"{\"image\":\"\"}",                           "image: \"\" is no name"              },
        {"{\"image\":\"a b\"}",                        "image: \"a b\" is no name"           },
        {"{\"name\":\"a\"}",                           "name: not from 2"                    },
        {"{\"name\":\"-ab\"}",                         "name: \"-ab\""                       },
        {"{\"env\":{\"A B\":\"x\"}}",                  "env: \"A B=x\" is not NAME=VALUE"    },
        {"{\"env\":{\"CUDA_VISIBLE_DEVICES\":\"0\"}}", "follows from gpus"                   },
        {"{\"env\":[\"A=b\"]}",                        "env: not an object"                  },
        {"{\"labels\":{\"gpumgr.uid\":\"0\"}}",        "is set by gpumgr itself"             },
        {"{\"labels\":{\"gpumgr.pin\":\"..\"}}",       "is set by gpumgr itself"             },
        {"{\"mounts\":[\"relative:/x\"]}",             "mounts: \"relative:/x\""             },
        {"{\"mounts\":[\"/data:/\"]}",                 "mounts: / is the container's own"    },
        {"{\"mounts\":[\"/data:/:ro\"]}",              "mounts: / is the container's own"    },
        {"{\"mounts\":[\"/a\\n/b:/c\"]}",              "mounts: "                            },
        {"{\"gpus\":65}",                              "gpus: neither"                       },
        {"{\"gpus\":\"some\"}",                        "gpus: neither"                       },
        {"{\"gpu_ids\":[0,0]}",                        "GPU 0 is there twice"                },
        {"{\"gpu_ids\":[\"x\"]}",                      "\"x\" is neither an index nor a UUID"},
        {"{\"gpus\":2,\"gpu_ids\":[0]}",               "names 1 GPUs, but gpus asks for 2"   },
        {"{\"deadline\":\"soon\"}",                    "deadline: "                          },
        {"{\"deadline\":\"2s\",\"period\":\"1s\"}",    "period: shorter"                     },
        {"{\"ui\":\"0\"}",                             "ui: "                                },
        {"{\"ui\":\"99999\"}",                         "ui: "                                },
        {"{\"restart\":\"on-failure:x\"}",             "restart: "                           },
        {"{\"cwd\":\"here\"}",                         "cwd: \"here\" is not a full path"    },
        {"{\"shared\":1}",                             "shared: neither"                     },
    };
    AUTO(buf_done) struct buf record = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct container_spec s;
        struct error e = {0};
        if (read_spec(rows[i].json, &record, &s, &e) >= 0) fail_msg("%s was taken", rows[i].json);
        if (!strstr(e.text, rows[i].sentence)) fail_msg("%s: %s", rows[i].json, e.text);
    }
}

static const char whole[] =
    "{\"name\":\"lab\",\"image\":\"a/b:1\",\"command\":[\"sh\",\"-c\",\"x y\"],\"env\":{\"A\":\"1\",\"B\":\"\"},"
    "\"mounts\":[\"/data:/d:ro\"],\"labels\":{\"team\":\"x\"},\"gpus\":2,\"gpu_ids\":[\"0\",\"1\"],\"cwd\":\"/w\","
    "\"deadline\":\"30s\",\"period\":\"1m\",\"ui\":\"8888/lab\",\"restart\":\"on-failure:3\"}";

static void there_and_back(void **state) {
    AUTO(buf_done) struct buf record = {0}, json = {0}, again = {0};
    struct container_spec s;
    struct error e = {0};
    assert_int_equal(read_spec(whole, &record, &s, &e), 0);
    container_spec_put_json(&s, &json);
    assert_string_equal(json.s, whole);
    container_spec_encode(&s, &again);
    assert_int_equal(again.len, record.len);
    assert_memory_equal(again.s, record.s, record.len);
    for (size_t n = 0; n < record.len; n++) { /* whatever is cut is refused */
        struct container_spec ignored;
        assert_true(container_spec_decode(record.s, n, &ignored, &e) < 0);
    }
}

/* Whoever writes a record himself may leave out that he gives something. */
static void what_is_not_said_to_be_given(void **state) {
    static const struct {
        const char *name, *image, *sentence;
    } rows[] = {
        {"x HTTP/1.1\r\n\r\nDELETE /x", "a",      "name: " },
        {"a-gpumgr-up",                 "a",      "name: " },
        {"",                            "a\r\nb", "image: "},
        {"ab",                          "a b",    "image: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf record = {0};
        struct container_spec s = {.name = rows[i].name, .image = rows[i].image}, ignored;
        struct error e = {0};
        container_spec_encode(&s, &record);
        assert_int_equal(container_spec_decode(record.s, record.len, &ignored, &e), -EINVAL);
        if (strncmp(e.text, rows[i].sentence, strlen(rows[i].sentence)) != 0) fail_msg("%zu: %s", i, e.text);
    }
}

static void note(void *ctx, const char *key, const char *from, const char *to) {
    buf_printf(ctx, "%s:%s>%s;", key, from ? from : "-", to ? to : "-");
}

static void changes(void **state) {
    static const struct {
        const char *change, *want;
    } rows[] = {
        {"{}",                                                     ""                                        },
        {"{\"image\":\"a/b:2\"}",                                  "image:a/b:1>a/b:2;"                      },
        {"{\"name\":\"\"}",                                        ""                                        },
        {"{\"env\":{\"A\":\"2\",\"C\":\"3\"}}",                    "env.A:1>2;env.B:>-;env.C:->3;"           },
        {"{\"mounts\":[\"/other:/d\"]}",                           "mounts:/data:/d:ro>-;mounts:->/other:/d;"},
        {"{\"labels\":{}}",                                        "labels.team:x>-;"                        },
        {"{\"gpus\":1}",                                           "gpus:0 1>1;"                             },
        {"{\"gpus\":\"all\"}",                                     "gpus:0 1>all;"                           },
        {"{\"command\":\"echo a\"}",                               "command:sh -c 'x y'>sh -c 'echo a';"     },
        {"{\"deadline\":\"\",\"period\":\"\",\"restart\":\"no\"}",
         "deadline:30s>-;period:1m>-;restart:on-failure:3>no;"                                               },
    };
    AUTO(buf_done) struct buf old_record = {0};
    struct container_spec old;
    struct error e = {0};
    assert_int_equal(read_spec(whole, &old_record, &old, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf record = {0}, seen = {0};
        struct container_spec change;
        if (read_spec(rows[i].change, &record, &change, &e) < 0) fail_msg("%s: %s", rows[i].change, e.text);
        struct container_spec fresh = container_spec_changed(&old, &change);
        buf_puts(&seen, "");
        container_spec_diff(&old, &fresh, note, &seen);
        assert_string_equal(seen.s, rows[i].want);
    }
}

static void calls(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct wire_frame f;
    struct error e;
    struct wire_container_call call = {.request = 7,
                                       .verb = CONTAINER_VERB_EDIT,
                                       .account = "ada",
                                       .is_admin = true,
                                       .of = "lab",
                                       .lines = 9,
                                       .record = (const uint8_t *)"abc",
                                       .record_len = 3};
    struct wire_container_call got;
    wire_put_container_call(&b, &call);
    assert_int_equal(wire_frame(b.s, b.len, &f, &e), (int)b.len);
    assert_int_equal(wire_get_container_call(&f, &got, &e), 0);
    assert_true(got.request == 7 && got.verb == CONTAINER_VERB_EDIT && got.is_admin && !got.is_shared &&
                got.lines == 9);
    assert_true(got.record_len == 3 && memcmp(got.record, "abc", 3) == 0);
    assert_string_equal(got.of, "lab");
    assert_string_equal(got.account, "ada");
    for (size_t n = 0; n < f.len; n++) {
        struct wire_frame cut = f;
        cut.len = n;
        assert_true(wire_get_container_call(&cut, &got, &e) < 0);
    }
    buf_clear(&b);
    struct wire_container_answer a = {.request = 8, .result = -EPERM, .text = "no"}, back;
    wire_put_container_answer(&b, &a);
    assert_int_equal(wire_frame(b.s, b.len, &f, &e), (int)b.len);
    assert_int_equal(wire_get_container_answer(&f, &back, &e), 0);
    assert_true(back.request == 8 && back.result == -EPERM && back.len == 0);
    assert_string_equal(back.text, "no");
}

static void slices(void **state) {
    static const char json[] =
        " {\"a\" : [1, {\"x\":\"]}\\\"\"}, null],\"b\":{},\"c\":\"\\u00e4\\n\\ud83d\\ude00\\ud800\",\"d\":-1.5e3 } ";
    struct json_slice all = {json, sizeof json - 1}, key, value;
    AUTO(buf_done) struct buf text = {0}, out = {0};
    size_t at = 0, members = 0;
    while (json_slice_next(all, &at, &key, &value)) members++;
    assert_int_equal(members, 4);
    assert_true(json_slice_is(json_slice_get(all, "d"), "-1.5e3"));
    assert_true(json_slice_is(json_slice_get(all, "b"), "{}"));
    assert_int_equal(json_slice_get(all, "none").len, 0);
    at = members = 0;
    while (json_slice_next(json_slice_get(all, "a"), &at, &key, &value)) members++;
    assert_int_equal(members, 3);
    json_slice_text(json_slice_get(all, "c"), &text);
    assert_string_equal(text.s, "\xc3\xa4\n\xf0\x9f\x98\x80\xef\xbf\xbd");
    buf_puts(&out, "[");
    json_slice_put(json_slice_get(all, "a"), &out);
    json_slice_put(json_slice_get(all, "d"), &out);
    buf_puts(&out, "]");
    assert_string_equal(out.s, "[[1, {\"x\":\"]}\\\"\"}, null],-1.5e3]");
    at = 0;
    assert_false(json_slice_next(json_slice_get(all, "b"), &at, &key, &value));
    assert_false(json_slice_next(json_slice_get(all, "d"), &at, &key, &value));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused), cmocka_unit_test(there_and_back),
        cmocka_unit_test(changes),         cmocka_unit_test(calls),
        cmocka_unit_test(slices),          cmocka_unit_test(what_is_not_said_to_be_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
