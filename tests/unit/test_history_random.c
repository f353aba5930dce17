/* History against a list in memory: random series, times, gaps, clock steps, late readings, flushes, work and restarts in
 * any order; after each stretch every reading and every rollup is compared with the list. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/history.h"
#include "tests/test.h"

#define SERIES 5
#define READINGS 4000
#define T0 1789948800000ll

static uint64_t seed;
static uint64_t chance(uint64_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static const struct {
    const char *subject, *metric;
    double scale;
} names[SERIES] = {
    {"gpu:A",  "watts", 0.001},
    {"gpu:A",  "share", 0    },
    {"gpu:B",  "watts", 0.001},
    {"gpu:B",  "bytes", 0    },
    {"host:h", "count", 1    }
};

static struct {
    int64_t at;
    double v;
} truth[SERIES][READINGS];
static size_t count[SERIES];

static double reading(int s) {
    switch (s) {
    case 0: return (double)(chance(700000)) * 0.001;
    case 1: return (double)chance(1ull << 53) * 0x1p-53;
    case 2: return chance(500) ? 100 : (double)chance(1000) / 7; /* now and then no whole step */
    case 3: return (double)chance(1000000) * 1000;
    default: return (double)(int64_t)(chance(2000) - 1000);
    }
}

/* A series never has two readings of one time here: which of them counts is another test. */
static void put(struct history *h, const int *handles, int s, int64_t at) {
    for (size_t i = 0; i < count[s]; i++)
        if (truth[s][i].at == at) return;
    if (count[s] == READINGS) return;
    double v = reading(s);
    assert_int_equal(history_add(h, at, &(struct history_value){handles[s], v}, 1), 1);
    truth[s][count[s]].at = at;
    truth[s][count[s]++].v = v;
}

static int by_time(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void check_readings(struct history_reader *r, int s) {
    struct history_answer a;
    struct error e;
    struct history_ask ask = {
        &names[s].subject, 1, names[s].metric, T0 - MS_PER_DAY * 5, T0 + MS_PER_DAY * 12, 10000, 0, 0};
    qsort(truth[s], count[s], sizeof *truth[s], by_time);
    if (history_query(r, &ask, &a, &e) < 0) fail_msg("%s", e.text);
    size_t n = 0;
    for (size_t i = 0; i < a.n; i++) {
        if (isnan(a.mean[i])) continue;
        if (n == count[s] || a.at_ms[i] != truth[s][n].at || fabs(a.mean[i] - truth[s][n].v) > 1e-13 * fabs(a.mean[i]))
            fail_msg("series %d: number %zu is %.17g at %lld", s, n, a.mean[i], (long long)a.at_ms[i]);
        n++;
    }
    if (n != count[s]) fail_msg("series %d: %zu of %zu readings", s, n, count[s]);
    history_answer_done(&a);
}

static void check_rolls(struct history_reader *r, int s, int64_t step) {
    struct history_answer a;
    struct error e;
    struct history_ask ask = {
        &names[s].subject, 1, names[s].metric, T0 - MS_PER_DAY * 5, T0 + MS_PER_DAY * 12, step, 0, 0};
    if (history_query(r, &ask, &a, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(a.read.rows[HISTORY_RAW], 0);
    size_t n = 0;
    for (size_t i = 0; i < a.n; i++) {
        double min = INFINITY, max = -INFINITY, sum = 0;
        size_t began = n;
        for (; n < count[s] && truth[s][n].at < a.at_ms[i] + step; n++) {
            min = fmin(min, truth[s][n].v), max = fmax(max, truth[s][n].v), sum += truth[s][n].v;
        }
        double mean = sum / (double)(n - began), near = 1e-12 * fmax(fabs(min), fabs(max));
        if (n == began
                ? !isnan(a.mean[i])
                : fabs(a.min[i] - min) > near || fabs(a.max[i] - max) > near || !(fabs(a.mean[i] - mean) <= 4 * near))
            fail_msg("series %d, step %lld: %.17g %.17g %.17g, not %.17g %.17g %.17g", s, (long long)step, a.min[i],
                     a.mean[i], a.max[i], min, mean, max);
    }
    assert_int_equal(n, count[s]);
    history_answer_done(&a);
}

static void check(struct history *h) {
    struct history_reader *r;
    struct error e;
    assert_int_equal(history_reader_open(h, &r, &e), 0);
    for (int s = 0; s < SERIES; s++) {
        check_readings(r, s);
        check_rolls(r, s, MS_PER_MINUTE);
        check_rolls(r, s, 7 * MS_PER_MINUTE);
        check_rolls(r, s, MS_PER_HOUR);
        check_rolls(r, s, 5 * MS_PER_HOUR);
    }
    history_reader_close(r);
}

static struct history *open_again(const char *path, int *handles) {
    struct history *h;
    struct error e;
    struct history_options options = {
        .keep_days = 1000, .part_ms = 1000 + (int64_t)chance(600000), .part_samples = 300 + chance(3000)};
    if (history_open(path, &options, &h, &e) < 0) fail_msg("%s", e.text);
    for (int s = 0; s < SERIES; s++)
        assert_true((handles[s] = history_handle(h, names[s].subject, names[s].metric, names[s].scale, &e)) >= 0);
    return h;
}

static void step(struct history **h, const char *path, int *handles, int64_t *now) {
    struct error e;
    int r;
    switch (chance(40)) {
    case 0: *now += (int64_t)chance(4 * (uint64_t)MS_PER_HOUR); break; /* nobody read anything */
    case 1: *now -= (int64_t)chance(300000); break;                    /* the clock was put back */
    case 2: put(*h, handles, (int)chance(SERIES), *now - (int64_t)chance(2 * (uint64_t)MS_PER_DAY)); break; /* late */
    case 3:
        assert_true(history_flush(*h, now, sizeof *now, &e) >= 0);
        history_close(*h);
        *h = open_again(path, handles);
        break;
    case 4:
    case 5:
    case 6: assert_true(history_flush(*h, now, sizeof *now, &e) >= 0); break;
    case 7:
    case 8:
        for (int i = (int)chance(30); i >= 0 && (r = history_work(*h, *now, &e)) != 0; i--)
            if (r < 0) fail_msg("%s", e.text);
        break;
    default:
        *now += (int64_t)chance(20000);
        for (int s = 0; s < SERIES; s++)
            if (chance(10)) put(*h, handles, s, *now + (s == 4 ? 7 : 0));
        break;
    }
}

static void any_order_gives_the_same(void **state) {
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    for (uint64_t run = 1; run <= 12; run++) {
        char dir[] = "/dev/shm/test-history-XXXXXX", path[64], file[80];
        int handles[SERIES];
        int64_t now = T0;
        struct error e;
        seed = run * 0x9e3779b97f4a7c15ull;
        memset(count, 0, sizeof count);
        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof path, "%s/history.db", dir);
        struct history *h = open_again(path, handles);
        for (int stretch = 0; stretch < 4; stretch++) {
            for (int i = 0; i < 500; i++) step(&h, path, handles, &now);
            check(h);
        }
        assert_true(history_flush(h, NULL, 0, &e) >= 0);
        for (int d = 1; d < 80; d += 13) {
            int r;
            while ((r = history_work(h, now + d * MS_PER_DAY, &e)) > 0) {}
            if (r < 0) fail_msg("%s", e.text);
            check(h);
        }
        struct history_stats st;
        history_stats(h, &st);
        assert_true(st.merges > 10 && st.damaged_rows == 0 && st.dropped == 0);
        history_close(h);
        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
            snprintf(file, sizeof file, "%s%s", path, ends[i]);
            unlink(file);
        }
        assert_int_equal(rmdir(dir), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order_gives_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
