/* History in a file: what goes in comes out of memory, of flush rows, of parts and of merged blocks alike, after a restart
 * too; rollups are what the readings say; old things go, newer files are refused. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "server/history.h"
#include "server/history_class.h"
#include "tests/test.h"

#define T0 1790000000000ll
#define T0_HOUR (T0 / MS_PER_DAY * MS_PER_DAY)

static char dir[64], path[128];

static int set_up(void **state) {
    snprintf(dir, sizeof dir, "/dev/shm/test-history-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/history.db", dir);
    return 0;
}
static int tear_down(void **state) {
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char file[160];
        snprintf(file, sizeof file, "%s%s", path, ends[i]);
        unlink(file);
    }
    return rmdir(dir);
}

static struct history *open_with(const struct history_options *o) {
    struct history *h;
    struct error e;
    if (history_open(path, o, &h, &e) < 0) fail_msg("%s", e.text);
    return h;
}

static int series(struct history *h, const char *subject, const char *metric, double scale) {
    struct error e;
    int s = history_handle(h, subject, metric, scale, &e);
    if (s < 0) fail_msg("%s", e.text);
    return s;
}

static void add(struct history *h, int64_t at_ms, int s, double v) {
    assert_int_equal(history_add(h, at_ms, &(struct history_value){s, v}, 1), 1);
}

static void flush(struct history *h) {
    struct error e;
    if (history_flush(h, "m", 1, &e) < 0) fail_msg("%s", e.text);
}

static void work(struct history *h, int64_t now_ms) {
    struct error e;
    int r;
    while ((r = history_work(h, now_ms, &e)) > 0) {}
    if (r < 0) fail_msg("%s", e.text);
}

static struct history_answer ask_many(struct history *h, const char *const *subjects, size_t n, const char *metric,
                                      int64_t from, int64_t to, int64_t step, size_t width, enum together how) {
    struct history_reader *r;
    struct history_answer a;
    struct error e;
    struct history_ask q = {subjects, n, metric, from, to, step, width, how};
    if (history_reader_open(h, &r, &e) < 0) fail_msg("%s", e.text);
    if (history_query(r, &q, &a, &e) < 0) fail_msg("%s", e.text);
    history_reader_close(r);
    return a;
}
static struct history_answer ask(struct history *h, const char *subject, const char *metric, int64_t from, int64_t to,
                                 int64_t step, size_t width) {
    return ask_many(h, &subject, 1, metric, from, to, step, width, TOGETHER_MEAN);
}

static uint64_t seed = 42;
static uint64_t chance(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* ---- the same readings, wherever they are ---- */
#define ROUNDS 9000 /* two hours and a half at 1 Hz */
static struct {
    int64_t at[ROUNDS];
    double v[4][ROUNDS]; /* NaN: absent */
} truth;
static const struct {
    const char *name;
    double scale;
} kinds[] = {
    {"watts",   0.001},
    {"ratio",   0    },
    {"kilo",    0    },
    {"degrees", 1    }
};

static void make_truth(void) {
    for (size_t i = 0; i < ROUNDS; i++) {
        truth.at[i] = T0_HOUR + MS_PER_HOUR + (int64_t)i * 1000 + (int64_t)(chance() % 9);
        truth.v[0][i] = (double)(chance() % 700000) * 0.001;
        truth.v[1][i] = (double)(chance() >> 11) * 0x1p-53;                 /* no steps at all */
        truth.v[2][i] = i % 30 ? NAN : (double)(chance() % 5000000) * 1000; /* seldom, whole thousands */
        truth.v[3][i] = i == 4000 ? 34.5 : (double)(30 + i / 1000);         /* one value that is no whole step */
        if (i > 2000 && i < 2100) truth.v[3][i] = NAN;                      /* a gap */
    }
}

static void check_truth(struct history *h, const char *when) {
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct history_answer a = ask(h, "gpu:A", kinds[k].name, T0_HOUR, T0_HOUR + MS_PER_DAY, 0, 100000);
        size_t at = 0;
        if (a.tier != HISTORY_RAW || a.step_ms) fail_msg("%s: %s is no list of readings", when, kinds[k].name);
        for (size_t i = 0; i < ROUNDS; i++) {
            if (isnan(truth.v[k][i])) continue;
            while (at < a.n && isnan(a.mean[at])) at++;
            if (at == a.n) fail_msg("%s: %s ends at %zu", when, kinds[k].name, i);
            if (a.at_ms[at] != truth.at[i] || a.mean[at] != truth.v[k][i])
                fail_msg("%s: %s number %zu is %.17g at %lld, not %.17g at %lld", when, kinds[k].name, i, a.mean[at],
                         (long long)a.at_ms[at], truth.v[k][i], (long long)truth.at[i]);
            at++;
        }
        if (at != a.n) fail_msg("%s: %s has %zu too many", when, kinds[k].name, a.n - at);
        history_answer_done(&a);
    }
}

static void what_goes_in_comes_out(void **state) {
    struct history *h = open_with(NULL);
    int handle[ARRAY_LEN(kinds)];
    make_truth();
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) handle[k] = series(h, "gpu:A", kinds[k].name, kinds[k].scale);
    for (size_t i = 0; i < ROUNDS; i++) {
        struct history_value v[ARRAY_LEN(kinds)];
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) v[k] = (struct history_value){handle[k], truth.v[k][i]};
        history_add(h, truth.at[i], v, ARRAY_LEN(v));
    }
    check_truth(h, "in memory");
    flush(h);
    check_truth(h, "in memory and flushed");
    history_close(h);
    h = open_with(NULL);
    assert_int_equal(series(h, "gpu:A", "degrees", 1), handle[3]);
    check_truth(h, "after a restart");
    struct error e;
    assert_int_equal(history_work(h, truth.at[ROUNDS - 1], &e), 0);
    assert_int_equal(history_work(h, truth.at[ROUNDS - 1] + 10 * MS_PER_MINUTE, &e), 1);
    check_truth(h, "in parts");
    struct history_stats st;
    history_stats(h, &st);
    assert_int_equal(st.memory_samples, 0);
    work(h, T0_HOUR + 100 * MS_PER_DAY);
    history_stats(h, &st);
    assert_true(st.merges > 5 && st.damaged_rows == 0);
    check_truth(h, "merged");
    history_close(h);
    h = open_with(NULL);
    check_truth(h, "merged, after a restart");
    history_close(h);
}

/* Minutes and hours against the readings, in every state of the file. */
static void check_rolls(struct history *h, const char *when, int64_t step, enum history_tier want) {
    struct history_answer a = ask(h, "gpu:A", "watts", T0_HOUR, T0_HOUR + MS_PER_DAY, step, 0);
    if (a.tier != want || a.step_ms != step) fail_msg("%s: tier %d, step %lld", when, a.tier, (long long)a.step_ms);
    assert_int_equal(a.read.rows[HISTORY_RAW], 0);
    size_t i = 0, seen = 0;
    for (size_t p = 0; p < a.n; p++) {
        double min = INFINITY, max = -INFINITY, sum = 0, n = 0;
        for (; i < ROUNDS && truth.at[i] < a.at_ms[p] + step; i++) {
            min = fmin(min, truth.v[0][i]), max = fmax(max, truth.v[0][i]), sum += truth.v[0][i], n++;
        }
        if (n == 0 ? !isnan(a.mean[p]) : a.min[p] != min || a.max[p] != max || !(fabs(a.mean[p] - sum / n) < 1e-9))
            fail_msg("%s: point %zu of %.0f: %g %g %g, not %g %g %g", when, p, n, a.min[p], a.mean[p], a.max[p], min,
                     sum / n, max);
        seen += (size_t)n;
    }
    assert_int_equal(seen, ROUNDS);
    history_answer_done(&a);
}

static void rollups_are_what_the_readings_say(void **state) {
    struct history *h = open_with(&(struct history_options){.part_ms = MS_PER_MINUTE});
    int s = series(h, "gpu:A", "watts", 0.001);
    make_truth();
    for (size_t i = 0; i < ROUNDS; i++) {
        add(h, truth.at[i], s, truth.v[0][i]);
        if (i % 97 == 0) {
            flush(h);
            work(h, truth.at[i]);
        }
    }
    flush(h);
    check_rolls(h, "as it comes", MS_PER_MINUTE, HISTORY_MINUTE);
    check_rolls(h, "as it comes", 5 * MS_PER_MINUTE, HISTORY_MINUTE);
    check_rolls(h, "as it comes", MS_PER_HOUR, HISTORY_HOUR);
    work(h, T0_HOUR + MS_PER_DAY);
    check_rolls(h, "after a day", MS_PER_MINUTE, HISTORY_MINUTE);
    check_rolls(h, "after a day", 3 * MS_PER_HOUR, HISTORY_HOUR);
    work(h, T0_HOUR + 70 * MS_PER_DAY);
    check_rolls(h, "after months", MS_PER_MINUTE, HISTORY_MINUTE);
    check_rolls(h, "after months", MS_PER_HOUR, HISTORY_HOUR);
    history_close(h);
}

/* Times that go back, that are far off, that come twice, and readings that come days late. */
static void time_is_what_it_is(void **state) {
    struct history *h = open_with(&(struct history_options){.part_ms = MS_PER_MINUTE, .keep_days = 1000});
    int s = series(h, "gpu:A", "n", 1);
    int64_t now = T0_HOUR + 3 * MS_PER_DAY;
    add(h, now, s, 1);
    add(h, now - 5000, s, 2); /* the clock was put back */
    add(h, now - 4000, s, 3);
    flush(h);
    add(h, now, s, 4); /* the same time again: the later counts */
    add(h, now + 1000, s, 5);
    add(h, 0, s, 6); /* 1970 */
    add(h, HISTORY_TIME_MAX_MS - 1, s, 7);
    flush(h);
    work(h, now);
    work(h, now + 2 * MS_PER_MINUTE);
    add(h, now - 2 * MS_PER_DAY, s, 8); /* days late */
    flush(h);
    work(h, now + 4 * MS_PER_MINUTE);
    work(h, now + 6 * MS_PER_MINUTE);
    work(h, now + 2 * MS_PER_DAY);
    add(h, now - 2 * MS_PER_DAY + 1000, s, 9); /* later still: into what is merged already */
    flush(h);
    work(h, now + 2 * MS_PER_DAY);
    work(h, now + 2 * MS_PER_DAY + 2 * MS_PER_MINUTE);
    static const struct {
        int64_t from, to;
        double want[6];
    } rows[] = {
        {-10000,                 10000,                  {2, 3, 4, 5}},
        {-2 * MS_PER_DAY - 1000, -2 * MS_PER_DAY + 5000, {8, 9}      },
        {-3 * MS_PER_DAY,        -MS_PER_DAY,            {8, 9}      }
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct history_answer a = ask(h, "gpu:A", "n", now + rows[i].from, now + rows[i].to, 0, 100000);
        size_t n = 0;
        for (size_t k = 0; k < a.n; k++) {
            if (isnan(a.mean[k])) continue;
            if (a.mean[k] != rows[i].want[n++]) fail_msg("row %zu: number %zu is %g", i, n, a.mean[k]);
            assert_true(k == 0 || a.at_ms[k] > a.at_ms[k - 1]);
        }
        if (n == 6 || rows[i].want[n] != 0) fail_msg("row %zu: %zu readings", i, n);
        history_answer_done(&a);
    }
    struct history_answer a = ask(h, "gpu:A", "n", 0, 1000, 0, 10);
    assert_true(a.n == 1 && a.mean[0] == 6 && a.at_ms[0] == 0);
    history_answer_done(&a);
    a = ask(h, "gpu:A", "n", HISTORY_TIME_MAX_MS - 1000, HISTORY_TIME_MAX_MS, 0, 10);
    assert_true(a.n == 1 && a.mean[0] == 7);
    history_answer_done(&a);
    a = ask(h, "gpu:A", "n", now - 2 * MS_PER_DAY, now - 2 * MS_PER_DAY + MS_PER_HOUR, MS_PER_HOUR, 0);
    assert_true(a.tier == HISTORY_HOUR && a.min[0] == 8 && a.max[0] == 9 && a.mean[0] == 8.5);
    history_answer_done(&a);
    history_close(h);
}

static void check_twins(struct history *h, const char *when) {
    struct history_answer a = ask(h, "gpu:A", "n", T0_HOUR, T0_HOUR + MS_PER_HOUR, 1000, 0);
    if (a.n != 2 || a.mean[1] != 20) fail_msg("%s: %zu readings", when, a.n);
    history_answer_done(&a);
    for (int64_t step = MS_PER_MINUTE; step <= MS_PER_HOUR; step *= 60) {
        a = ask(h, "gpu:A", "n", T0_HOUR, T0_HOUR + MS_PER_HOUR, step, 0);
        if (a.mean[0] != 15) fail_msg("%s: the mean is %g", when, a.mean[0]);
        history_answer_done(&a);
    }
}

/* A server that died before it could tell how far it had come gets some readings again. */
static void what_is_sent_again_counts_once(void **state) {
    struct history *h = open_with(NULL);
    int s = series(h, "gpu:A", "n", 1);
    add(h, T0_HOUR, s, 10);
    add(h, T0_HOUR + 1000, s, 20);
    flush(h);
    history_close(h);
    h = open_with(NULL);
    add(h, T0_HOUR + 1000, s, 20);
    check_twins(h, "in memory");
    flush(h);
    check_twins(h, "flushed");
    work(h, T0_HOUR + 2000);
    work(h, T0_HOUR + 20 * MS_PER_MINUTE);
    check_twins(h, "in parts");
    work(h, T0_HOUR + 90 * MS_PER_DAY);
    check_twins(h, "merged");
    history_close(h);
}

static void bad_input_is_refused(void **state) {
    struct history *h = open_with(NULL);
    struct history_reader *r;
    struct history_answer a;
    struct error e;
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[299] = 0;
    assert_int_equal(history_handle(h, "", "n", 1, &e), -EINVAL);
    assert_int_equal(history_handle(h, "gpu:A", "", 1, &e), -EINVAL);
    assert_int_equal(history_handle(h, longest, "n", 1, &e), -EINVAL);
    assert_int_equal(history_handle(h, "gpu:A", "n", NAN, &e), -EINVAL);
    assert_int_equal(history_handle(h, "gpu:A", "n", -1, &e), -EINVAL);
    int s = series(h, "gpu:A", "n", 1);
    static const struct {
        int64_t at_ms;
        double v;
        int want;
    } rows[] = {
        {T0,                  NAN,      0      },
        {T0,                  INFINITY, 0      },
        {-1,                  1,        -ERANGE},
        {HISTORY_TIME_MAX_MS, 1,        -ERANGE},
        {T0,                  1e308,    1      }
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(history_add(h, rows[i].at_ms, &(struct history_value){s, rows[i].v}, 1), rows[i].want);
    assert_int_equal(history_add(h, T0, &(struct history_value){s + 1, 1}, 1), 0);
    assert_int_equal(history_add(h, T0, &(struct history_value){-1, 1}, 1), 0);
    assert_int_equal(history_reader_open(h, &r, &e), 0);
    const char *who[] = {"gpu:A"};
    const struct history_ask asks[] = {
        {who, 1, "n", 10,        10,        0,    10, 0},
        {who, 1, "n", -5,        10,        0,    10, 0},
        {who, 1, "n", 0,         T0,        0,    0,  0},
        {who, 1, "n", 0,         T0,        1000, 0,  0},
        {who, 1, "n", 0,         INT64_MAX, 0,    10, 0},
        {who, 1, "n", INT64_MIN, INT64_MAX, 0,    10, 0},
        {who, 1, "n", 0,         T0,        -1,   10, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(asks); i++)
        if (history_query(r, &asks[i], &a, &e) != -EINVAL) fail_msg("ask %zu was taken", i);
    const struct history_ask nobody = {(const char *[]){"gpu:B"}, 1, "n", 0, T0 + 1, 0, 10, 0};
    assert_int_equal(history_query(r, &nobody, &a, &e), 0);
    for (size_t i = 0; i < a.n; i++) assert_true(isnan(a.mean[i]));
    history_answer_done(&a);
    history_reader_close(r);
    history_close(h);
}

static void several_are_put_together(void **state) {
    struct history *h = open_with(NULL);
    int a = series(h, "gpu:A", "w", 1), b = series(h, "gpu:B", "w", 1);
    for (int i = 0; i < 600; i++) { /* not quite at the same time, and B loses a minute */
        add(h, T0_HOUR + i * 1000, a, 100);
        if (i < 300 || i >= 360) add(h, T0_HOUR + i * 1000 + 700, b, i % 2 ? 200 : 300);
    }
    flush(h);
    static const char *const who[] = {"gpu:A", "gpu:B", "gpu:none"};
    static const struct {
        enum together how;
        double min, mean, max, alone;
    } rows[] = {
        {TOGETHER_SUM,  300, 350, 400, 100},
        {TOGETHER_MEAN, 150, 175, 200, 100},
        {TOGETHER_MAX,  200, 250, 300, 100},
        {TOGETHER_MIN,  100, 100, 100, 100}
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct history_answer r = ask_many(h, who, 3, "w", T0_HOUR, T0_HOUR + 600000, 10000, 0, rows[i].how);
        assert_int_equal(r.n, 60);
        for (size_t p = 0; p < r.n; p++) {
            bool is_alone = p > 31 && p < 36;
            if (p >= 29 && p <= 31) continue;
            if (is_alone ? r.mean[p] != rows[i].alone
                         : r.min[p] != rows[i].min || r.mean[p] != rows[i].mean || r.max[p] != rows[i].max)
                fail_msg("%s, point %zu: %g %g %g", together_name(rows[i].how), p, r.min[p], r.mean[p], r.max[p]);
        }
        history_answer_done(&r);
    }
    /* One second steps: rounds that fall into the next second are no hole. */
    struct history_answer r = ask_many(h, who, 2, "w", T0_HOUR + 10000, T0_HOUR + 290000, 500, 0, TOGETHER_SUM);
    for (size_t p = 4; p < r.n; p++) assert_true(r.mean[p] == 300 || r.mean[p] == 400);
    history_answer_done(&r);
    history_close(h);
}

/* Days pass; readings go after keep_days, rollups after rollup_days, events too; a year's view reads rollups only. */
static void old_things_go(void **state) {
    struct history *h = open_with(&(struct history_options){.keep_days = 2, .rollup_days = 20});
    int s = series(h, "gpu:A", "n", 1);
    struct history_answer a;
    int64_t now = T0_HOUR;
    for (int i = 0; i < 6 * 24 * 30; i++, now += 10 * MS_PER_MINUTE) {
        add(h, now, s, i);
        if (i % 144 == 0) {
            struct history_event v = {.at_ms = now, .severity = EVENT_INFO, .kind = "day"};
            assert_true(history_event_add(h, &v) > 0);
        }
        flush(h);
        work(h, now);
    }
    a = ask(h, "gpu:A", "n", now - 2 * MS_PER_DAY, now, 0, 10000);
    assert_true(a.tier == HISTORY_RAW && a.n == 288);
    history_answer_done(&a);
    a = ask(h, "gpu:A", "n", now - 10 * MS_PER_DAY, now - 9 * MS_PER_DAY, 0, 10000); /* finer than what is left */
    assert_true(a.tier == HISTORY_MINUTE && a.step_ms == MS_PER_MINUTE && a.read.rows[HISTORY_RAW] == 0);
    size_t points = 0;
    for (size_t i = 0; i < a.n; i++) points += !isnan(a.mean[i]);
    assert_int_equal(points, 144);
    history_answer_done(&a);
    a = ask(h, "gpu:A", "n", now - 365 * MS_PER_DAY, now, 0, 1000);
    assert_true(a.tier == HISTORY_HOUR && a.read.rows[HISTORY_RAW] == 0 && a.read.rows[HISTORY_MINUTE] == 0);
    assert_true(a.read.rows[HISTORY_HOUR] > 0 && a.read.rows[HISTORY_HOUR] < 60);
    history_answer_done(&a);
    a = ask(h, "gpu:A", "n", now - 30 * MS_PER_DAY, now - 23 * MS_PER_DAY, MS_PER_MINUTE, 0);
    for (size_t i = 0; i < a.n; i++) assert_true(isnan(a.mean[i]));
    history_answer_done(&a);
    struct history_reader *r;
    struct history_event events[100];
    struct error e;
    assert_int_equal(history_reader_open(h, &r, &e), 0);
    int n = history_events(r, &(struct history_events_ask){.limit = 100}, events, &e);
    assert_true(n >= 20 && n <= 21);
    history_reader_close(r);
    struct history_stats st;
    history_stats(h, &st);
    assert_true(st.deleted_rows > 0 && st.damaged_rows == 0 && st.dropped == 0);
    history_close(h);
}

/* A clock that jumps years ahead and back deletes nothing. */
static void a_jump_deletes_nothing(void **state) {
    struct history *h = open_with(&(struct history_options){.part_ms = MS_PER_MINUTE});
    int s = series(h, "gpu:A", "n", 1);
    for (int i = 0; i < 600; i++) {
        add(h, T0_HOUR + i * 1000, s, i);
        if (i % 5 == 0) {
            flush(h);
            work(h, T0_HOUR + i * 1000);
        }
    }
    work(h, T0_HOUR + 3000 * MS_PER_DAY);
    work(h, T0_HOUR + 3000 * MS_PER_DAY + MS_PER_MINUTE);
    work(h, T0_HOUR + 700000);
    struct history_answer a = ask(h, "gpu:A", "n", T0_HOUR, T0_HOUR + MS_PER_HOUR, 0, 1000);
    assert_int_equal(a.n, 600);
    history_answer_done(&a);
    history_close(h);
}

static void events_are_found(void **state) {
    struct history *h = open_with(NULL);
    struct history_reader *r;
    struct error e;
    struct history_event got[50];
    static const char *const who[] = {"gpu:A", "gpu:B", ""};
    static const char *const what[] = {"xid", "gpu_lost"};
    assert_int_equal(history_reader_open(h, &r, &e), 0);
    for (int i = 0; i < 40; i++) { /* two in each millisecond; the last ten still wait for a flush */
        struct history_event v = {.at_ms = T0 + i / 2, .severity = i % 4, .code = i, .pid = 100 + i};
        snprintf(v.subject, sizeof v.subject, "%s", who[i % 3]);
        snprintf(v.kind, sizeof v.kind, "%s", what[i % 2]);
        snprintf(v.text, sizeof v.text, "event %d", i);
        assert_true(history_event_add(h, &v) > 0);
        if (i == 14 || i == 29) flush(h);
    }
    for (int round = 0; round < 2; round++, flush(h)) {
        static const struct {
            struct history_events_ask ask;
            int want, first;
        } rows[] = {
            {{.limit = 50},                                                                               40, 39},
            {{.limit = 7},                                                                                7,  39},
            {{.limit = 50, .severity = EVENT_ERROR},                                                      20, 39},
            {{.limit = 50, .subject = "gpu:A"},                                                           14, 39},
            {{.limit = 50, .subject = "gpu:none"},                                                        0,  -1},
            {{.limit = 50, .kind = "xid"},                                                                20, 38},
            {{.limit = 50, .from_ms = T0 + 5, .to_ms = T0 + 10},                                          10, 19},
            {{.limit = 50, .kind = "xid", .severity = EVENT_ERROR, .subject = "gpu:B", .to_ms = T0 + 20}, 3,  34},
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            int n = history_events(r, &rows[i].ask, got, &e);
            if (n != rows[i].want || (n && got[0].code != rows[i].first))
                fail_msg("row %zu: %d events, the first %d", i, n, n ? got[0].code : -1);
        }
        int seen = 0;
        int64_t before = 0;
        for (int n; (n = history_events(r, &(struct history_events_ask){.limit = 7, .before = before}, got, &e)) > 0;) {
            for (int i = 0; i < n; i++, seen++) {
                char text[32];
                snprintf(text, sizeof text, "event %d", 39 - seen);
                assert_string_equal(got[i].text, text);
                assert_string_equal(got[i].subject, who[(39 - seen) % 3]);
                assert_true(got[i].pid == 139 - seen && got[i].at_ms == T0 + (39 - seen) / 2);
            }
            before = got[n - 1].id;
        }
        assert_int_equal(seen, 40);
    }
    assert_int_equal(history_events(r, &(struct history_events_ask){.limit = 0}, got, &e), -EINVAL);
    assert_int_equal(history_events(r, &(struct history_events_ask){.limit = 1001}, got, &e), -EINVAL);
    history_reader_close(r);
    history_close(h);
}

static void the_marker_is_that_of_the_last_flush(void **state) {
    struct history *h = open_with(&(struct history_options){.part_ms = 1000});
    struct error e;
    const void *marker;
    size_t len;
    int s = series(h, "gpu:A", "n", 1);
    history_marker(h, &marker, &len);
    assert_int_equal(len, 0);
    for (int i = 0; i < 4; i++) {
        char text[16];
        snprintf(text, sizeof text, "marker %d", i);
        add(h, T0 + i * 1000, s, i);
        assert_int_equal(history_flush(h, text, strlen(text), &e), 1);
        if (i == 2) work(h, T0), work(h, T0 + 5000); /* its flush row is gone, the marker is not */
        history_close(h);
        h = open_with(&(struct history_options){.part_ms = 1000});
        history_marker(h, &marker, &len);
        assert_int_equal(len, strlen(text));
        assert_memory_equal(marker, text, len);
    }
    history_close(h);
}

/* What came after a flush's marker was made is sent again after a crash, and counts once. Events have ids when they are added. */
static void a_seal_is_the_end_of_a_flush(void **state) {
    struct history *h = open_with(&(struct history_options){.part_ms = 1000});
    struct history_event got[4], v = {.at_ms = T0_HOUR, .kind = "first"};
    struct history_reader *r;
    struct error e;
    int s = series(h, "gpu:A", "n", 1);
    add(h, T0_HOUR, s, 0);
    assert_int_equal(history_event_add(h, &v), T0_HOUR << 16);
    history_seal(h);
    add(h, T0_HOUR + 1, s, 10); /* after the marker */
    assert_int_equal(history_event_add(h, &v), (T0_HOUR << 16) + 1);
    assert_int_equal(history_flush(h, "m", 1, &e), 1);
    work(h, T0_HOUR), work(h, T0_HOUR + 5000);
    history_close(h);
    h = open_with(&(struct history_options){.part_ms = 1000});
    add(h, T0_HOUR + 1, series(h, "gpu:A", "n", 1), 10); /* it comes again */
    flush(h);
    work(h, T0_HOUR), work(h, T0_HOUR + 5000);
    struct history_answer a = ask(h, "gpu:A", "n", T0_HOUR, T0_HOUR + MS_PER_MINUTE, MS_PER_MINUTE, 0);
    assert_true(a.n == 1 && a.mean[0] == 5);
    history_answer_done(&a);
    assert_int_equal(history_reader_open(h, &r, &e), 0);
    assert_int_equal(history_events(r, &(struct history_events_ask){.limit = 4}, got, &e), 1);
    history_reader_close(r);
    history_close(h);
}

static void write_file(const char *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void only_its_own_file_is_opened(void **state) {
    struct history *h = open_with(NULL), *other;
    struct error e;
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(history_open(path, NULL, &other, &e), -EBUSY);
    assert_non_null(strstr(e.text, "another server has it open"));
    history_close(h);
    char text[4096] = "this is no database, and longer than the sixteen bytes that SQLite looks at first";
    write_file(text, sizeof text);
    assert_int_equal(history_open(path, NULL, &other, &e), -EBADMSG);
    assert_int_equal(history_open("/nonexistent/history.db", NULL, &other, &e), -ENOENT);
    assert_int_equal(history_open(dir, NULL, &other, &e), -EISDIR);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(what_goes_in_comes_out),
        T(rollups_are_what_the_readings_say),
        T(time_is_what_it_is),
        T(bad_input_is_refused),
        T(what_is_sent_again_counts_once),
        T(several_are_put_together),
        T(old_things_go),
        T(a_jump_deletes_nothing),
        T(events_are_found),
        T(the_marker_is_that_of_the_last_flush),
        T(a_seal_is_the_end_of_a_flush),
        T(only_its_own_file_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
