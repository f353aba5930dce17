/* Columns, blocks, flush rows and rollups: what goes in comes out, whatever it is. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/series.h"
#include "model/series_block.h"
#include "model/series_flush.h"
#include "model/series_roll.h"
#include "tests/test.h"

static uint64_t seed = 1;
static uint64_t chance(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static struct series_coder *coder;
static int set_up(void **state) { return !(coder = series_coder_new()); }
static int tear_down(void **state) {
    series_coder_free(coder);
    return 0;
}

/* Ways in which readings go: each fills v from its index and chance. */
enum shape { CONSTANT, RAMP, NOISE, WALK, RARE_STEPS, EXTREMES, ANYTHING, SQUARES, SHAPES };
static const char *const shape_names[] = {"constant", "ramp",     "noise",    "walk",
                                          "steps",    "extremes", "anything", "squares"};
static void fill(enum shape shape, int64_t *v, size_t n) {
    int64_t at = (int64_t)(chance() % 100000) - 50000;
    for (size_t i = 0; i < n; i++) {
        switch (shape) {
        case CONSTANT: v[i] = at; break;
        case RAMP: v[i] = at + (int64_t)i * 1000; break;
        case NOISE: v[i] = at + (int64_t)(chance() % 60000); break;
        case WALK: v[i] = at += (int64_t)(chance() % 3) - 1; break;
        case RARE_STEPS: v[i] = at += chance() % 100 == 0 ? (int64_t)(chance() % (1ull << 40)) : 0; break;
        case EXTREMES: v[i] = (const int64_t[]){INT64_MIN, INT64_MAX, 0, -1, 1}[chance() % 5]; break;
        case ANYTHING: v[i] = (int64_t)chance(); break;
        default: v[i] = (int64_t)(i * i) * 77 - at; break;
        }
    }
}

static void columns_come_back(void **state) {
    static const size_t sizes[] = {1, 2, 3, 17, 100, 511, 512, 7200, 20000};
    static int64_t v[20000], back[20000];
    struct buf out = {0};
    struct error e;
    for (int shape = 0; shape < SHAPES; shape++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
            for (int effort = SERIES_QUICK; effort <= SERIES_SMALL; effort++) {
                size_t n = sizes[s];
                fill((enum shape)shape, v, n);
                buf_clear(&out);
                series_column_put(coder, v, n, (enum series_effort)effort, &out);
                memset(back, 0xee, sizeof back);
                if (series_column_get(coder, (uint8_t *)out.s, out.len, back, n, &e) < 0)
                    fail_msg("%s, %zu: %s", shape_names[shape], n, e.text);
                if (memcmp(v, back, n * sizeof *v) != 0) fail_msg("%s, %zu: differs", shape_names[shape], n);
                /* Nothing may be read that is not there, nor left over. */
                for (size_t cut = 0; cut < out.len && n < 600; cut++) {
                    uint8_t *part = malloc(cut + 1);
                    memcpy(part, out.s, cut);
                    assert_int_equal(series_column_get(coder, part, cut, back, n, &e), -EBADMSG);
                    free(part);
                }
                buf_putc(&out, 0);
                assert_int_equal(series_column_get(coder, (uint8_t *)out.s, out.len, back, n, &e), -EBADMSG);
            }
    buf_done(&out);
}

static void columns_are_small(void **state) {
    static const struct {
        enum shape shape;
        double most; /* bytes a value */
    } rows[] = {
        {CONSTANT,   0.001},
        {RAMP,       0.002},
        {WALK,       0.30 },
        {NOISE,      2.02 },
        {RARE_STEPS, 0.12 },
        {SQUARES,    0.003}
    };
    static int64_t v[7200];
    struct buf out = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fill(rows[i].shape, v, ARRAY_LEN(v));
        buf_clear(&out);
        series_column_put(coder, v, ARRAY_LEN(v), SERIES_SMALL, &out);
        double each = (double)out.len / ARRAY_LEN(v);
        if (each > rows[i].most) fail_msg("%s takes %.4f bytes a value", shape_names[rows[i].shape], each);
    }
    buf_done(&out);
}

static void values_are_scaled(void **state) {
    static const struct {
        const char *name;
        double scale, v[3];
        enum series_kind want;
        double step;
        int64_t first;
    } rows[] = {
        {"milliwatts",                 0.001,   {77.954, 0, 699.999},         SERIES_WHOLE, 0.001,   77954      },
        {"percent",                    0.01,    {0.29, 0.57, 1},              SERIES_WHOLE, 0.01,    29         },
        {"megahertz",                  1e6,     {345e6, 1980e6, 0},           SERIES_WHOLE, 1e6,     345        },
        {"nanoseconds",                1e-9,    {12.345678901, 0, 86400.5},   SERIES_WHOLE, 1e-9,    12345678901},
        {"half a degree",              1,       {34.5, 34, 35},               SERIES_REAL,  1,       0          },
        {"too many steps",             0.001,   {1e14, 0, 0},                 SERIES_REAL,  1,       0          },
        {"largest",                    1,       {DBL_MAX, -DBL_MAX, DBL_MIN}, SERIES_REAL,  1,       0          },
        {"kilobytes without a scale",  0,       {1288000, 0, 584000},         SERIES_STEP,  1000,    1288       },
        {"blocks without a scale",     0,       {2048, 0, 5120},              SERIES_STEP,  1024,    2          },
        {"whole without a scale",      0,       {7, 0, 1e9},                  SERIES_STEP,  1,       7          },
        {"real without a scale",       0,       {0.123456789, 0.5, 1},        SERIES_REAL,  1,       0          },
        {"minus zero without a scale", 0,       {-0.0, 0, 1},                 SERIES_REAL,  1,       0          },
        {"third",                      1.0 / 3, {1.0 / 3, 2.0 / 3, 7},        SERIES_WHOLE, 1.0 / 3, 1          },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t got[3];
        double step;
        enum series_kind kind = series_scale(rows[i].v, 3, rows[i].scale, got, &step);
        if (kind != rows[i].want || step != rows[i].step) fail_msg("%s: kind %d, step %g", rows[i].name, kind, step);
        if (kind != SERIES_REAL && got[0] != rows[i].first) fail_msg("%s: %lld", rows[i].name, (long long)got[0]);
        for (int k = 0; k < 3; k++) {
            double back = series_value(kind, step, got[k]);
            bool is_same = kind == SERIES_WHOLE ? fabs(back - rows[i].v[k]) <= fabs(back) * DBL_EPSILON
                                                : memcmp(&back, &rows[i].v[k], sizeof back) == 0;
            if (!is_same) fail_msg("%s: %.17g for %.17g", rows[i].name, back, rows[i].v[k]);
        }
    }
}

/* A number of steps must survive being read back and scaled again, as it does at each merge. */
static void scaling_is_stable(void **state) {
    static const double scales[] = {1e-9, 1e-3, 1e-2, 1, 1000, 1024, 1e6, 1.0 / 3, 0.0001};
    for (int i = 0; i < 200000; i++) {
        double scale = scales[i % (int)ARRAY_LEN(scales)], step;
        int64_t k = (int64_t)(chance() >> (14 + chance() % 50)) * (chance() & 1 ? 1 : -1), got;
        double v = (double)k * scale;
        if (series_scale(&v, 1, scale, &got, &step) != SERIES_WHOLE || got != k)
            fail_msg("%lld steps of %g became %lld", (long long)k, scale, (long long)got);
    }
}

static int read_memory(void *ctx, size_t offset, size_t len, const uint8_t **ret, struct error *e) {
    const struct buf *b = ctx;
    assert_true(offset + len <= b->len);
    *ret = (const uint8_t *)b->s + offset;
    return 0;
}

#define ROUNDS 3000
static void blocks_come_back(void **state) {
    static int64_t times[4][ROUNDS], v[ROUNDS], at[ROUNDS], back[ROUNDS];
    size_t n[4] = {ROUNDS, 0, 0, 0};
    for (size_t i = 0; i < ROUNDS; i++) {
        times[0][i] = 1790000000000 + (int64_t)i * 1000 + (int64_t)(chance() % 5);
        if (i % 50 != 7) times[1][n[1]++] = times[0][i];       /* missed now and then: a subset */
        if (i % 30 == 0) times[2][n[2]++] = times[0][i] + 333; /* read by another thread: times of its own */
        times[3][n[3]++] = times[0][i / 2 * 2];                /* the same time twice */
    }
    for (int effort = SERIES_QUICK; effort <= SERIES_SMALL; effort++) {
        struct block_writer w = {0};
        struct buf out = {0};
        struct block b = {0};
        struct error e;
        int64_t *kept[12];
        block_begin(&w, coder, BLOCK_RAW_COLUMNS, (enum series_effort)effort);
        for (int s = 0; s < 12; s++) {
            kept[s] = malloc(sizeof v);
            fill((enum shape)(s % SHAPES), kept[s], n[s % 4]);
            const int64_t *columns[] = {kept[s]};
            enum series_kind kind = (enum series_kind)(s % SERIES_KIND_COUNT);
            block_add(&w, (uint64_t)(1000 - s * 7), times[s % 4], n[s % 4], kind, kind == SERIES_STEP ? 1024 : 1,
                      columns);
        }
        block_end(&w, &out);
        assert_true(w.from_ms == times[0][0] && w.until_ms == times[0][ROUNDS - 1]);
        size_t head;
        assert_int_equal(block_head((uint8_t *)out.s, 6, out.len, &head, &e), 0);
        if (block_open((uint8_t *)out.s, head, out.len, &b, &e) < 0) fail_msg("%s", e.text);
        assert_int_equal(b.times_count, 4);
        assert_int_equal(b.times[1].parent, 1);
        struct block_source from = {read_memory, &out};
        for (int s = 0; s < 12; s++) {
            const struct block_entry *entry = block_find(&b, (uint64_t)(1000 - s * 7));
            assert_non_null(entry);
            assert_int_equal(b.times[entry->times].n, n[s % 4]);
            if (block_times(&b, &from, coder, entry->times, at, &e) < 0) fail_msg("%s", e.text);
            if (block_column(&b, &from, coder, entry, 0, back, &e) < 0) fail_msg("%s", e.text);
            assert_memory_equal(at, times[s % 4], n[s % 4] * sizeof *at);
            assert_memory_equal(back, kept[s], n[s % 4] * sizeof *v);
            assert_int_equal(entry->kind, s % SERIES_KIND_COUNT);
            if (entry->kind == SERIES_STEP) assert_true(entry->step == 1024);
            free(kept[s]);
        }
        assert_null(block_find(&b, 3));
        assert_int_equal(block_open((uint8_t *)out.s, head - 1, out.len, &(struct block){0}, &e), -EBADMSG);
        assert_int_equal(block_open((uint8_t *)out.s, head, out.len - 1, &(struct block){0}, &e), -EBADMSG);
        block_done(&b);
        buf_done(&out);
        block_writer_done(&w);
    }
}

struct seen {
    uint64_t subject, series[4];
    int64_t at[8], v[4][8];
    uint32_t round[4][8];
    enum series_kind kind[4];
    size_t rounds, n[4], count;
};
static int see_subject(void *ctx, uint64_t id, const int64_t *at_ms, size_t rounds, struct error *e) {
    struct seen *s = ctx;
    *s = (struct seen){.subject = id, .rounds = rounds};
    memcpy(s->at, at_ms, rounds * sizeof *at_ms);
    return 0;
}
static int see_series(void *ctx, uint64_t id, const uint32_t *round, const int64_t *v, size_t n, enum series_kind kind,
                      struct error *e) {
    struct seen *s = ctx;
    if (s->count == 4) return -E2BIG;
    s->series[s->count] = id;
    s->n[s->count] = n;
    s->kind[s->count] = kind;
    memcpy(s->v[s->count], v, n * sizeof *v);
    memcpy(s->round[s->count++], round, n * sizeof *round);
    return 0;
}

static void flush_rows_come_back(void **state) {
    static const int64_t at[] = {1790000000000, 1790000001001, 1790000000500, INT64_MAX, INT64_MIN};
    static const int64_t a[] = {1, 2, 3, 4, 5}, b[] = {INT64_MIN, INT64_MAX}, c[] = {0x3ff0000000000000},
                         still[] = {-5, -5};
    static const uint32_t all[] = {7, 8, 9, 10, 11}, some[] = {8, 11}, one[] = {9};
    static const struct flush_visit visit = {see_subject, see_series};
    struct buf out = {0};
    struct seen seen;
    struct error e;
    struct flush_writer w;
    flush_begin(&w, &out);
    flush_subject(&w, 3, at, 1, 0);
    flush_subject(&w, 9, at, 5, 4);
    flush_series(&w, 80, 5, all, 7, a, 5, SERIES_WHOLE);
    flush_series(&w, 90, 5, some, 7, b, 2, SERIES_WHOLE);
    flush_series(&w, 101, 5, one, 7, c, 1, SERIES_REAL);
    flush_series(&w, 102, 5, some, 7, still, 2, SERIES_WHOLE);
    flush_end(&w);
    assert_int_equal(flush_walk((uint8_t *)out.s, out.len, &visit, &seen, &e), 0);
    assert_int_equal(seen.subject, 9);
    assert_int_equal(seen.count, 4);
    assert_memory_equal(seen.at, at, sizeof at);
    assert_memory_equal(seen.v[0], a, sizeof a);
    assert_memory_equal(seen.v[1], b, sizeof b);
    assert_memory_equal(seen.v[2], c, sizeof c);
    assert_memory_equal(seen.v[3], still, sizeof still);
    assert_true(seen.round[0][4] == 4 && seen.round[1][0] == 1 && seen.round[1][1] == 4 && seen.round[2][0] == 2);
    assert_true(seen.kind[2] == SERIES_REAL && seen.kind[1] == SERIES_WHOLE && seen.series[1] == 90);
    for (size_t cut = 0; cut < out.len; cut++) {
        uint8_t *part = malloc(cut + 1);
        memcpy(part, out.s, cut);
        assert_int_equal(flush_walk(part, cut, &visit, &seen, &e), -EBADMSG);
        free(part);
    }
    buf_putc(&out, 0);
    assert_int_equal(flush_walk((uint8_t *)out.s, out.len, &visit, &seen, &e), -EBADMSG);
    buf_done(&out);
}

/* Rolled up at once, or in parts that are put together in any order: the same figures. */
static void rolls_are_what_the_samples_say(void **state) {
    static int64_t at[5000];
    static double v[5000];
    static struct roll whole[5000], parts[5000];
    for (int run = 0; run < 50; run++) {
        size_t n = 1 + chance() % 5000, have = 0;
        int64_t t = (int64_t)(chance() % 1000000) - 500000; /* also before 1970 */
        for (size_t i = 0; i < n; i++) {
            at[i] = t += (int64_t)(chance() % 2000);
            v[i] = (double)(int64_t)(chance() % 1000000) - 500000;
        }
        size_t rolls = roll_values(at, v, n, MS_PER_MINUTE, whole), seen = 0;
        for (size_t r = 0; r < rolls; r++) {
            double min = INFINITY, max = -INFINITY, sum = 0, count = 0;
            for (size_t i = 0; i < n; i++)
                if (at[i] >= whole[r].at_ms && at[i] < whole[r].at_ms + MS_PER_MINUTE) {
                    min = fmin(min, v[i]), max = fmax(max, v[i]), sum += v[i], count++;
                }
            assert_true(whole[r].at_ms % MS_PER_MINUTE == 0 && (r == 0 || whole[r].at_ms > whole[r - 1].at_ms));
            assert_true(min == whole[r].min && max == whole[r].max && count == whole[r].count);
            assert_true(fabs(roll_mean(&whole[r]) - sum / count) <= 1e-9 * (1 + fabs(sum / count)));
            seen += (size_t)count;
        }
        assert_int_equal(seen, n);
        size_t cut = chance() % n;
        have = roll_values(at + cut, v + cut, n - cut, MS_PER_MINUTE, parts);
        if (cut) have += roll_values(at, v, cut, MS_PER_MINUTE, parts + have);
        assert_int_equal(roll_settle(parts, have), rolls);
        assert_memory_equal(parts, whole, rolls * sizeof *whole);
    }
}

static void rolls_fit_into_columns(void **state) {
    static const struct {
        struct roll r;
        bool is_whole, want;
    } rows[] = {
        {{60000, 60, 5, 9, 33},               true,  true },
        {{-60000, 1, -0x1p52, 0x1p52, 1},     true,  false}, /* too far apart to be counted */
        {{0, 60, 5, 9, 33.5},                 true,  false},
        {{0, 60, 0.25, 0.5, 3},               false, false},
        {{0, 3, -DBL_MAX, DBL_MAX, INFINITY}, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t c[4][1], *columns[] = {c[0], c[1], c[2], c[3]};
        struct roll back;
        bool is_whole = roll_to_columns(&rows[i].r, 1, rows[i].is_whole, columns);
        assert_int_equal(is_whole, rows[i].want);
        assert_true(roll_from_columns(&back, 1, is_whole, &rows[i].r.at_ms, columns));
        assert_memory_equal(&back, &rows[i].r, sizeof back);
        double mean = roll_mean(&back);
        assert_true(mean >= back.min && mean <= back.max);
    }
}

static void several_stand_together(void **state) {
    static const struct {
        const char *metric;
        enum together want;
    } rows[] = {
        {"gpu_power_watts",                TOGETHER_SUM },
        {"gpu_temperature_celsius",        TOGETHER_MAX },
        {"gpu_temperature_margin_celsius", TOGETHER_MIN },
        {"gpu_utilization_ratio",          TOGETHER_MEAN},
        {"gpu_memory_used_bytes",          TOGETHER_SUM },
        {"gpu_energy_joules_total",        TOGETHER_SUM },
        {"gpu_sm_clock_hertz",             TOGETHER_MEAN},
        {"gpu_clock_reason_power_cap",     TOGETHER_MAX },
        {"gpu_ecc_corrected_total",        TOGETHER_SUM },
        {"gpu_pcie_link_width",            TOGETHER_MIN },
        {"gpu_performance_state",          TOGETHER_MAX },
        {"gpu_thermal_seconds_total",      TOGETHER_SUM }
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum together got = metric_together(&metrics[metric_find(rows[i].metric)]);
        if (got != rows[i].want) fail_msg("%s: %s", rows[i].metric, together_name(got));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_come_back),
        cmocka_unit_test(columns_are_small),
        cmocka_unit_test(values_are_scaled),
        cmocka_unit_test(scaling_is_stable),
        cmocka_unit_test(blocks_come_back),
        cmocka_unit_test(flush_rows_come_back),
        cmocka_unit_test(rolls_are_what_the_samples_say),
        cmocka_unit_test(rolls_fit_into_columns),
        cmocka_unit_test(several_stand_together),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
