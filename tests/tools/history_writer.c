/* History under system tests: writes readings whose values follow from their number, and says after each flush how many
 * are stored; or looks at a file and says what is in it. Time is the readings' own, twenty seconds each, so that parts,
 * merges and retention happen all the time.
 *
 *   history_writer write PATH [COUNT]   for ever, or until COUNT are stored; a line a flush
 *   history_writer check PATH           every reading up to the marker, once, with its value: how many
 *   history_writer count PATH           readings that can be read, damaged rows */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/history.h"

#define T0_MS 1790000000000ll
#define APART_MS 20000
#define EACH 5 /* readings a flush */

static const struct {
    const char *subject, *metric;
    double scale;
} series[] = {
    {"gpu:A", "watts", 0.001},
    {"gpu:A", "ratio", 0    },
    {"gpu:B", "watts", 0.001}
};

static double value(size_t s, uint64_t n) {
    uint64_t x = (n + 1) * 0x9e3779b97f4a7c15ull * (s + 1);
    return series[s].scale > 0 ? (double)(x >> 44) * series[s].scale : (double)(x >> 11) * 0x1p-53;
}

static int die(const char *what, const struct error *e) {
    fprintf(stderr, "%s: %s\n", what, e->text);
    exit(error_exit_code(e->code));
}

static uint64_t marked(struct history *h) {
    const void *marker;
    size_t len;
    uint64_t n = 0;
    history_marker(h, &marker, &len);
    if (len == sizeof n) memcpy(&n, marker, sizeof n);
    return n;
}

static void write_on(struct history *h, uint64_t most) {
    struct error e;
    int handles[3], r;
    for (size_t s = 0; s < 3; s++)
        if ((handles[s] = history_handle(h, series[s].subject, series[s].metric, series[s].scale, &e)) < 0)
            die("series", &e);
    for (uint64_t n = marked(h); n < most; n += EACH) {
        for (uint64_t i = n; i < n + EACH; i++)
            for (size_t s = 0; s < 3; s++)
                if (history_add(h, T0_MS + (int64_t)i * APART_MS, &(struct history_value){handles[s], value(s, i)},
                                1) != 1)
                    fprintf(stderr, "dropped\n");
        uint64_t next = n + EACH;
        if (n % 50 == 0) {
            struct history_event v = {.at_ms = T0_MS + (int64_t)n * APART_MS, .kind = "tick", .code = (int)n};
            (void)history_event_add(h, &v);
        }
        while (history_flush(h, &next, sizeof next, &e) < 0) {
            printf("failed %d %s\n", e.code, e.text);
            fflush(stdout);
            if (getchar() == EOF) exit(3); /* until somebody has made room */
        }
        printf("%" PRIu64 "\n", next);
        fflush(stdout);
        while ((r = history_work(h, T0_MS + (int64_t)next * APART_MS, &e)) > 0) {}
        if (r < 0) fprintf(stderr, "work: %s\n", e.text);
    }
}

static uint64_t look(struct history *h, uint64_t n, bool is_strict) {
    struct history_reader *reader;
    struct error e;
    uint64_t found = 0;
    if (history_reader_open(h, &reader, &e) < 0) die("reader", &e);
    for (size_t s = 0; s < 3; s++) {
        struct history_answer a = {0};
        struct history_ask ask = {.subjects = &series[s].subject,
                                  .subject_count = 1,
                                  .metric = series[s].metric,
                                  .from_ms = T0_MS,
                                  .to_ms = T0_MS + (int64_t)(n + 1000) * APART_MS,
                                  .step_ms = APART_MS / 2};
        if (history_query(reader, &ask, &a, &e) < 0) die("query", &e);
        uint64_t at = 0;
        for (size_t i = 0; i < a.n; i++) {
            if (isnan(a.mean[i])) continue;
            uint64_t k = (uint64_t)(a.at_ms[i] - T0_MS) / APART_MS;
            if (a.mean[i] != value(s, k) || a.at_ms[i] != T0_MS + (int64_t)k * APART_MS) {
                printf("%s number %" PRIu64 " is wrong\n", series[s].metric, k);
                exit(4);
            }
            if (is_strict && k != at) {
                printf("%s number %" PRIu64 " is missing\n", series[s].metric, at);
                exit(4);
            }
            at++;
        }
        if (is_strict && at != n) {
            printf("%s: %" PRIu64 " readings, %" PRIu64 " marked\n", series[s].metric, at, n);
            exit(4);
        }
        found += at;
        history_answer_done(&a);
    }
    history_reader_close(reader);
    return found;
}

int main(int argc, char **argv) {
    struct history *h;
    struct error e;
    struct history_options options = {.keep_days = 10000, .rollup_days = 10000};
    if (argc < 3) return 2;
    if (history_open(argv[2], &options, &h, &e) < 0) die("open", &e);
    struct history_stats stats;
    uint64_t n = marked(h);
    if (strcmp(argv[1], "write") == 0)
        write_on(h, argc > 3 ? strtoull(argv[3], NULL, 10) : UINT64_MAX);
    else if (strcmp(argv[1], "check") == 0)
        printf("%" PRIu64 " %" PRIu64 "\n", n, look(h, n, true));
    else {
        uint64_t found = look(h, n, false);
        history_stats(h, &stats);
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", n, found, stats.damaged_rows);
    }
    history_close(h);
    return 0;
}
