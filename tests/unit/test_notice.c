/* When a person is told: stories of events, each step with the word that it must get. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "model/notice.h"
#include "tests/test.h"

#define S 1000000000ll

struct step {
    int at_s;
    const char *kind; /* NULL: time passes */
    int severity, code;
    enum notice_word want;
};

static enum notice_word take(struct notice_book *b, const struct notice_policy *p, const struct step *s, int *at) {
    struct event ev = {.severity = s->severity, .code = s->code};
    if (!s->kind) return notice_tick(b, p, s->at_s * S, at);
    snprintf(ev.kind, sizeof ev.kind, "%s", s->kind);
    snprintf(ev.text, sizeof ev.text, "at %d", s->at_s);
    return notice_take(b, p, "gpu:A", &ev, s->at_s * S, at);
}

static void stories(void **state) {
    static const struct {
        const char *name;
        struct step of[8];
    } rows[] = {
        {"lost and back",
         {{100, "gpu_lost", EVENT_CRITICAL, 0, NOTICE_TELL},
          {101, "gpu_lost", EVENT_CRITICAL, 0, NOTICE_NOTHING},
          {102, "gpu_back", EVENT_INFO, 0, NOTICE_TELL_OVER},
          {103, "gpu_back", EVENT_INFO, 0, NOTICE_NOTHING}}                                                           },
        {"back without a loss",                                    {{100, "gpu_back", EVENT_INFO, 0, NOTICE_NOTHING}} },
        {"gets worse: told again",
         {{100, "gpu_not_answering", EVENT_WARNING, 0, NOTICE_TELL},
          {108, "gpu_lost", EVENT_CRITICAL, 0, NOTICE_TELL},
          {200, "gpu_back", EVENT_INFO, 0, NOTICE_TELL_OVER}}                                                         },
        {"comes and goes: held back, then told because it lasts",
         {{100, "gpu_lost", EVENT_CRITICAL, 0, NOTICE_TELL},
          {110, "gpu_back", EVENT_INFO, 0, NOTICE_TELL_OVER},
          {120, "gpu_lost", EVENT_CRITICAL, 0, NOTICE_NOTHING},
          {130, NULL, 0, 0, NOTICE_NOTHING},
          {700, NULL, 0, 0, NOTICE_TELL},
          {701, NULL, 0, 0, NOTICE_NOTHING},
          {702, "gpu_back", EVENT_INFO, 0, NOTICE_TELL_OVER}}                                                         },
        {"comes and goes: over before it was told",
         {{100, "gpu_lost", EVENT_CRITICAL, 0, NOTICE_TELL},
          {110, "gpu_back", EVENT_INFO, 0, NOTICE_TELL_OVER},
          {120, "gpu_lost", EVENT_CRITICAL, 0, NOTICE_NOTHING},
          {130, "gpu_back", EVENT_INFO, 0, NOTICE_NOTHING},
          {800, NULL, 0, 0, NOTICE_NOTHING}}                                                                          },
        {"an XID once, another code at once, the same much later",
         {{100, "xid", EVENT_ERROR, 31, NOTICE_TELL},
          {101, "xid", EVENT_ERROR, 31, NOTICE_NOTHING},
          {102, "xid", EVENT_ERROR, 79, NOTICE_TELL},
          {800, "xid", EVENT_ERROR, 31, NOTICE_TELL}}                                                                 },
        {"below the chosen severity",
         {{100, "xid", EVENT_INFO, 43, NOTICE_NOTHING}, {101, "guard_manual", EVENT_INFO, 0, NOTICE_NOTHING}}         },
        {"held back by the guard: once an episode",
         {{100, "guard_lowered", EVENT_INFO, 0, NOTICE_TELL},
          {101, "guard_lowered", EVENT_INFO, 0, NOTICE_NOTHING},
          {102, "guard_raised", EVENT_INFO, 0, NOTICE_NOTHING},
          {150, "guard_free", EVENT_INFO, 0, NOTICE_TELL_OVER}}                                                       },
        {"a failing part, and well again",
         {{100, "failing_fan", EVENT_CRITICAL, 0, NOTICE_TELL}, {900, "failing_fan", EVENT_INFO, 0, NOTICE_TELL_OVER}}},
        {"a kind that nobody listed",
         {{100, "something_new", EVENT_ERROR, 0, NOTICE_TELL},
          {101, "something_new", EVENT_INFO, 0, NOTICE_TELL_OVER}}                                                    },
        {"the clock was set back",
         {{1000, "xid", EVENT_ERROR, 31, NOTICE_TELL},
          {100, "xid", EVENT_ERROR, 31, NOTICE_TELL},
          {101, "xid", EVENT_ERROR, 31, NOTICE_NOTHING}}                                                              },
    };
    static struct notice_book b;
    const struct notice_policy p = {.least = EVENT_WARNING, .again_ns = 300 * S};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        memset(&b, 0, sizeof b);
        for (size_t k = 0; k < ARRAY_LEN(rows[i].of) && rows[i].of[k].at_s; k++) {
            int at;
            enum notice_word got = take(&b, &p, &rows[i].of[k], &at);
            if (got != rows[i].of[k].want)
                fail_msg("%s, step %zu: %d, not %d", rows[i].name, k, got, rows[i].of[k].want);
            if (got != NOTICE_NOTHING) assert_true(at >= 0 && *b.of[at].title && *b.of[at].text);
        }
    }
}

static void subjects_do_not_mix(void **state) {
    static struct notice_book b;
    const struct notice_policy p = {.least = EVENT_WARNING, .again_ns = 300 * S};
    struct event lost = {.severity = EVENT_CRITICAL, .kind = "gpu_lost", .text = "x"},
                 back = {.kind = "gpu_back", .text = "y"};
    int at;
    assert_int_equal(notice_take(&b, &p, "gpu:A", &lost, S, &at), NOTICE_TELL);
    assert_int_equal(notice_take(&b, &p, "gpu:B", &lost, S, &at), NOTICE_TELL);
    assert_int_equal(notice_take(&b, &p, "gpu:C", &back, S, &at), NOTICE_NOTHING);
    assert_int_equal(notice_take(&b, &p, "gpu:B", &back, S, &at), NOTICE_TELL_OVER);
    assert_string_equal(b.of[at].subject, "gpu:B");
    assert_true(b.of[0].is_open);
}

/* A full book forgets what is over before it forgets what lasts, and counts what it did not tell. */
static void full_book(void **state) {
    static struct notice_book b;
    const struct notice_policy p = {.least = EVENT_WARNING, .again_ns = 300 * S};
    struct event lost = {.severity = EVENT_CRITICAL, .kind = "gpu_lost", .text = "x"};
    struct event xid = {.severity = EVENT_ERROR, .kind = "xid", .text = "x"};
    int at;
    assert_int_equal(notice_take(&b, &p, "gpu:A", &lost, S, &at), NOTICE_TELL);
    for (int i = 0; i < 2 * NOTICE_BOOK_MAX; i++) {
        xid.code = i;
        assert_int_equal(notice_take(&b, &p, "gpu:A", &xid, (2 + i) * S, &at), NOTICE_TELL);
    }
    assert_int_equal(b.count, NOTICE_BOOK_MAX);
    assert_int_equal(notice_take(&b, &p, "gpu:A", &lost, 3000 * S, &at), NOTICE_NOTHING);
    for (int i = 0; i < 9; i++) (void)notice_take(&b, &p, "gpu:A", &xid, (1100 + i) * S, &at);
    assert_int_equal(notice_take(&b, &p, "gpu:A", &xid, 5000 * S, &at), NOTICE_TELL);
    assert_int_equal(b.of[at].silent, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stories), cmocka_unit_test(subjects_do_not_mix),
                                       cmocka_unit_test(full_book)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
