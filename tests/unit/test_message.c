/* Messages in each form: what must stand in them, and that no text can break out of its place. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/json_read.h"
#include "model/message.h"
#include "tests/test.h"

static struct message sample_message(void) {
    struct message m = {.id = "lab-17",
                        .host = "lab",
                        .gpu_model = "NVIDIA H200",
                        .gpu_index = 5,
                        .link = "http://lab:7000/gpus/GPU-5",
                        .real_ns = 1763190065123000000};
    m.about = (struct notice){.subject = "gpu:GPU-5",
                              .topic = "xid",
                              .title = "XID error",
                              .text = "XID 79: fell off \"the\" <bus> & more",
                              .code = 79,
                              .severity = EVENT_CRITICAL,
                              .silent = 3,
                              .opened_ns = 1763190000000000000};
    return m;
}

static int count_leaf(void *ctx, const struct json_leaf *leaf, struct error *e) {
    ++*(int *)ctx;
    return 0;
}

static void forms(void **state) {
    struct message m = sample_message();
    AUTO(buf_done) struct buf hook = {0}, slack = {0}, mail = {0};
    struct error e;
    int leaves = 0;
    message_webhook(&hook, &m);
    message_slack(&slack, &m);
    message_mail(&mail, &m, "gpu@lab", "admin@lab");
    assert_int_equal(json_walk(slack.s, slack.len, count_leaf, &leaves, &e), 0);
    static const struct {
        int which;
        const char *text;
    } rows[] = {
        {0, "\"status\":\"firing\""                                   },
        {0, "\"startsAt\":\"2025-11-15T07:00:00.000Z\""               },
        {0, "\"endsAt\":\"0001-01-01T00:00:00Z\""                     },
        {0, "\"severity\":\"critical\""                               },
        {0, "\"code\":\"79\""                                         },
        {0, "\"uuid\":\"GPU-5\""                                      },
        {0, "(3 times since it was last told)"                        },
        {1, "*XID error: lab GPU 5 (NVIDIA H200)*"                    },
        {1, "&lt;bus&gt; &amp; more"                                  },
        {2, "Date: Sat, 15 Nov 2025 07:01:05 +0000\r\n"               },
        {2, "Subject: [gpumgr] XID error: lab GPU 5 (NVIDIA H200)\r\n"},
        {2, "Message-ID: <lab-17@lab>\r\n"                            },
        {2, "http://lab:7000/gpus/GPU-5"                              },
    };
    const char *texts[] = {hook.s, slack.s, mail.s};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (!strstr(texts[rows[i].which], rows[i].text)) fail_msg("no %s in\n%s", rows[i].text, texts[rows[i].which]);
}

static void it_is_over(void **state) {
    struct message m = sample_message();
    AUTO(buf_done) struct buf hook = {0}, head = {0};
    m.is_over = true;
    message_webhook(&hook, &m);
    message_headline(&head, &m);
    assert_non_null(strstr(hook.s, "\"status\":\"resolved\""));
    assert_non_null(strstr(hook.s, "\"endsAt\":\"2025-11-15T07:01:05.123Z\""));
    assert_string_equal(head.s, "Over: XID error: lab GPU 5 (NVIDIA H200)");
}

/* A process may name itself anything, and its name stands in an XID's text. */
static void nothing_breaks_out(void **state) {
    struct message m = sample_message();
    AUTO(buf_done) struct buf mail = {0}, hook = {0};
    struct error e;
    int leaves = 0;
    snprintf(m.about.text, sizeof m.about.text, "python\r\n\r\nBcc: other@lab\xff\"}");
    snprintf(m.gpu_model, sizeof m.gpu_model, "a\r\nBcc: x");
    message_mail(&mail, &m, "gpu@lab", "admin@lab");
    message_slack(&hook, &m);
    assert_null(strstr(mail.s, "\nBcc"));
    assert_int_equal(json_walk(hook.s, hook.len, count_leaf, &leaves, &e), 0);
}

/* Of a job: the subject is the sentence, in words of RFC 2047 where it is not ASCII; the text ends in lines of its own. */
static void of_a_job(void **state) {
    static const struct {
        const char *text, *subject;
    } rows[] = {
        {"job 17 (train, ada) is done",                 "Subject: [gpumgr] lab: job 17 (train, ada) is done\r\n"    },
        {"\u00fc",                                      "Subject: [gpumgr] =?utf-8?B?bGFiOiDDvA==?=\r\n"            },
        {"a\r\nBcc: x\u00fc",                           "Subject: [gpumgr] =?utf-8?B?bGFiOiBhICBCY2M6IHjDvA==?=\r\n"},
        {"\xff",                                        "Subject: [gpumgr] =?utf-8?B?bGFiOiA/?=\r\n"                },
        {"0123456789012345678901234567890123456\u00fc", /* no character is torn */
         "Subject: [gpumgr] =?utf-8?B?bGFiOiAwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2?=\r\n "
         "=?utf-8?B?w7w=?=\r\n"                              },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf mail = {0};
        struct message m = {
            .id = "job-17", .host = "lab", .gpu_index = -1, .link = "http://lab/jobs/17", .job = {.id = 17}};
        snprintf(m.about.text, sizeof m.about.text, "%s", rows[i].text);
        snprintf(m.job.more, sizeof m.job.more, "Machine: lab\nGPU: 0\n");
        message_mail(&mail, &m, "gpu@lab", "admin@lab");
        if (!strstr(mail.s, rows[i].subject)) fail_msg("no %s in\n%s", rows[i].subject, mail.s);
        assert_non_null(strstr(mail.s, "\r\n\r\nMachine: lab\r\nGPU: 0\r\n\r\nhttp://lab/jobs/17\r\n"));
        assert_null(strstr(mail.s, "\nBcc"));
    }
}

static void times(void **state) {
    static const struct {
        int64_t ns;
        const char *want;
    } rows[] = {
        {0,                   "1970-01-01T00:00:00.000Z"},
        {951782400000000000,  "2000-02-29T00:00:00.000Z"},
        {1709251199999000000, "2024-02-29T23:59:59.999Z"},
        {4102444800000000000, "2100-01-01T00:00:00.000Z"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[32];
        message_time(rows[i].ns, got);
        assert_string_equal(got, rows[i].want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(it_is_over),
                                       cmocka_unit_test(nothing_breaks_out), cmocka_unit_test(of_a_job),
                                       cmocka_unit_test(times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
