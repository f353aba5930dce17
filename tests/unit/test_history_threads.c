/* One thread adds, one flushes and compacts, others ask: every answer holds each reading once, up to one that was there
 * when it was asked for. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/history.h"
#include "tests/test.h"

#define READINGS 3000
#define APART_MS 60000ll /* a window of two hours is 120 of them: many are merged while this runs */
#define T0 1789948800000ll

static struct history *h;
static char path[128];
static _Atomic int64_t added, flushed;
static _Atomic bool stop;
static _Atomic int wrong, answers[3];

static void *adder(void *ctx) {
    struct error e;
    int a = history_handle(h, "gpu:A", "n", 1, &e);
    for (int64_t i = 0; i < READINGS; i++) {
        char name[32];
        struct history_value v = {a, (double)i};
        if (history_add(h, T0 + i * APART_MS, &v, 1) != 1) wrong++;
        if (i % 100 == 0) { /* new names while others walk the old ones */
            snprintf(name, sizeof name, "gpu:%lld", (long long)i);
            v.series = history_handle(h, name, "n", 1, &e);
            if (history_add(h, T0 + i * APART_MS, &v, 1) != 1) wrong++;
            struct history_event event = {.at_ms = T0 + i * APART_MS, .kind = "hundred", .code = (int)i};
            if (history_event_add(h, &event) < 0) wrong++;
        }
        atomic_store(&added, i + 1);
        while (i - atomic_load(&flushed) > 20) usleep(200); /* as fast as the store thread, no faster */
    }
    return NULL;
}

static void *keeper(void *ctx) {
    struct error e;
    while (!atomic_load(&stop)) {
        int64_t n = atomic_load(&added);
        if (history_flush(h, &n, sizeof n, &e) < 0) wrong++;
        atomic_store(&flushed, n);
        int r;
        while ((r = history_work(h, T0 + n * APART_MS, &e)) > 0) {}
        if (r < 0) {
            fprintf(stderr, "work: %s\n", e.text);
            wrong++;
        }
    }
    return NULL;
}

/* The readings are their own numbers: a list must count up from 0, an interval's mean is the middle of its ends. */
static bool is_right(const struct history_answer *a, int64_t least) {
    int64_t next = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (isnan(a->mean[i])) continue;
        if (a->step_ms == 0) {
            if (a->mean[i] != (double)next++) return false;
            continue;
        }
        if (a->min[i] != (double)next || a->mean[i] != (a->min[i] + a->max[i]) / 2) return false;
        next = (int64_t)a->max[i] + 1;
    }
    return next >= least;
}

static void *asker(void *ctx) {
    struct history_reader *r;
    struct error e;
    unsigned turn = (unsigned)(uintptr_t)ctx;
    if (history_reader_open(h, &r, &e) < 0) {
        wrong++;
        return NULL;
    }
    while (!atomic_load(&stop)) {
        static const int64_t steps[] = {1000, MS_PER_MINUTE, MS_PER_HOUR};
        int64_t least = atomic_load(&added);
        struct history_answer a;
        struct history_ask ask = {(const char *[]){"gpu:A"}, 1, "n", T0, T0 + READINGS * APART_MS,
                                  steps[turn % 3],           0, 0};
        if (history_query(r, &ask, &a, &e) < 0) {
            fprintf(stderr, "query: %s\n", e.text);
            wrong++;
            continue;
        }
        if (!is_right(&a, least)) wrong++;
        answers[turn++ % 3]++;
        history_answer_done(&a);
        struct history_event events[64];
        int n = history_events(r, &(struct history_events_ask){.limit = 64}, events, &e);
        for (int i = 0; i < n; i++) /* all of them, each once, the newest first */
            if (events[i].code != (n - 1 - i) * 100) wrong++;
        if (n < (least + 99) / 100) wrong++;
    }
    history_reader_close(r);
    return NULL;
}

static void nobody_sees_a_reading_twice_or_not(void **state) {
    pthread_t threads[4];
    struct error e;
    char dir[] = "/dev/shm/test-history-XXXXXX", file[160];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/history.db", dir);
    assert_int_equal(history_open(path, &(struct history_options){.keep_days = 100}, &h, &e), 0);
    pthread_create(&threads[0], NULL, adder, NULL);
    pthread_create(&threads[1], NULL, keeper, NULL);
    pthread_create(&threads[2], NULL, asker, (void *)0);
    pthread_create(&threads[3], NULL, asker, (void *)1);
    pthread_join(threads[0], NULL);
    atomic_store(&stop, true);
    for (int i = 1; i < 4; i++) pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    for (int i = 0; i < 3; i++) assert_true(answers[i] > 0);
    struct history_stats stats;
    history_stats(h, &stats);
    assert_true(stats.merges > 20 && stats.parts > 40 && stats.damaged_rows == 0);
    history_close(h);
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        snprintf(file, sizeof file, "%s%s", path, ends[i]);
        unlink(file);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_sees_a_reading_twice_or_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
