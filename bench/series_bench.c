/* What history costs: a day of readings through history.h exactly as the server uses it (a flush every five seconds of
 * data, work after each), then size on disk, values read back, and queries. `bench/series` makes the data and runs this.
 *
 *   series_bench DIR GPUS SECONDS COLUMNS.bin TRACE.csv */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "server/history.h"

#define T0_MS 1789948800000ll
#define FLUSH_MS 5000

/* The generator's columns as rows of the catalogue: the name, and what one of its numbers is worth in the unit. */
static const struct column {
    const char *name;
    double worth;
    bool is_own; /* no row of the catalogue: a number with steps of one */
} day[] = {
    {"gpu_temperature_celsius",        1,     false},
    {"gpu_memory_temperature_celsius", 1,     false},
    {"gpu_power_watts",                0.001, false},
    {"gpu_energy_joules_total",        0.001, false},
    {"gpu_sm_clock_hertz",             1e6,   false},
    {"gpu_memory_clock_hertz",         1e6,   false},
    {"gpu_video_clock_hertz",          1e6,   false},
    {"gpu_utilization_ratio",          0.01,  false},
    {"gpu_memory_utilization_ratio",   0.01,  false},
    {"gpu_encoder_utilization_ratio",  0.01,  false},
    {"gpu_decoder_utilization_ratio",  0.01,  false},
    {"gpu_memory_used_bytes",          1,     false},
    {"gpu_memory_free_bytes",          1,     false},
    {"gpu_fan_speed_ratio",            0.01,  false},
    {"gpu_pcie_tx_bytes_per_second",   1e3,   false},
    {"gpu_pcie_rx_bytes_per_second",   1e3,   false},
    {"gpu_pcie_replays_total",         1,     false},
    {"gpu_ecc_corrected_total",        1,     false},
    {"throttle_reasons",               1,     true },
    {"processes",                      1,     true },
};
#define DAY_COLUMNS ARRAY_LEN(day)
static const struct column trace[] = {
    {"gpu_temperature_celsius",        1,     false},
    {"gpu_power_watts",                0.001, false},
    {"gpu_energy_joules_total",        0.001, false},
    {"gpu_utilization_ratio",          0.01,  false},
    {"gpu_memory_utilization_ratio",   0.01,  false},
    {"gpu_memory_used_bytes",          1,     false},
    {"gpu_sm_clock_hertz",             1e6,   false},
    {"gpu_memory_clock_hertz",         1e6,   false},
    {"throttle_reasons",               1,     true },
    {"gpu_performance_state",          1,     false},
    {"gpu_pcie_tx_bytes_per_second",   1e3,   false},
    {"gpu_pcie_rx_bytes_per_second",   1e3,   false},
    {"processes",                      1,     true },
    {"gpu_memory_temperature_celsius", 1,     false},
    {"cycle_us",                       1,     true },
};
#define TRACE_COLUMNS ARRAY_LEN(trace)

static void die(const char *what, const struct error *e) {
    fprintf(stderr, "series_bench: %s%s%s\n", what, e ? ": " : "", e ? e->text : "");
    exit(1);
}

static double scale_of(const struct column *c) {
    if (c->is_own) return 1;
    int id = metric_find(c->name);
    if (id < 0) die(c->name, NULL);
    return metrics[id].scale;
}

static int series_of(struct history *h, const char *subject, const struct column *c) {
    struct error e;
    int s = history_handle(h, subject, c->name, scale_of(c), &e);
    if (s < 0) die("series", &e);
    return s;
}

/* How late a round is: no pattern that a compressor could find. */
static int64_t late(size_t round, int64_t most_ms) {
    return most_ms ? (int64_t)((round * 0x9e3779b97f4a7c15ull ^ round * 0xc2b2ae3d27d4eb4full >> 7) >> 40) % most_ms
                   : 0;
}

static void subject_of(size_t gpu, char ret[64]) { snprintf(ret, 64, "gpu:GPU-00000000-0000-4000-8000-%012zu", gpu); }

static void work_off(struct history *h, int64_t now_ms) {
    struct error e;
    int r;
    while ((r = history_work(h, now_ms, &e)) > 0) {}
    if (r < 0) die("work", &e);
}

static void flush(struct history *h, int64_t now_ms) {
    char marker[8 * 24] = {0}; /* of the size that a server writes for eight GPUs */
    struct error e;
    memcpy(marker, &now_ms, sizeof now_ms);
    if (history_flush(h, marker, sizeof marker, &e) < 0) die("flush", &e);
    work_off(h, now_ms);
}

/* Windows end, and everything is merged that ever will be. */
static void settle(struct history *h, int64_t end_ms) {
    for (int i = 0; i < 4; i++) work_off(h, end_ms + (1 + 12 * i) * MS_PER_DAY);
}

static const struct history_options options = {.keep_days = 1000, .rollup_days = 1000};

static struct history *fresh(const char *path) {
    struct history *h;
    struct error e;
    char beside[512];
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        snprintf(beside, sizeof beside, "%s%s", path, ends[i]);
        unlink(beside);
    }
    if (history_open(path, &options, &h, &e) < 0) die("open", &e);
    return h;
}

static double file_bytes(const char *path) {
    struct stat st;
    if (stat(path, &st) < 0) die(path, NULL);
    return (double)st.st_size;
}

struct query_time {
    double cpu_us, wall_us;
    size_t points;
    uint64_t rows;
};

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of queries for one series each. */
static struct query_time time_query(struct history_reader *r, size_t gpus, int64_t from_ms, int64_t to_ms,
                                    int64_t step_ms) {
    enum { TIMES = 60 };
    double cpu[TIMES], wall[TIMES];
    struct query_time t = {0};
    struct error e;
    for (size_t i = 0; i < TIMES; i++) {
        char subject[64];
        const char *subjects[] = {subject};
        subject_of(i % gpus, subject);
        struct history_ask ask = {subjects, 1, day[i / gpus % DAY_COLUMNS].name, from_ms, to_ms, step_ms, 0, 0};
        struct history_answer a;
        int64_t began = clock_boot_ns(), began_cpu = clock_thread_cpu_ns();
        if (history_query(r, &ask, &a, &e) < 0) die("query", &e);
        wall[i] = (double)(clock_boot_ns() - began) / 1e3;
        cpu[i] = (double)(clock_thread_cpu_ns() - began_cpu) / 1e3;
        t.points = a.n;
        t.rows = a.read.rows[0] + a.read.rows[1] + a.read.rows[2];
        history_answer_done(&a);
    }
    qsort(cpu, TIMES, sizeof *cpu, by_size);
    qsort(wall, TIMES, sizeof *wall, by_size);
    t.cpu_us = cpu[TIMES / 2];
    t.wall_us = wall[TIMES / 2];
    return t;
}

/* Every reading of every series again, bit by bit in steps. */
static uint64_t read_back(struct history_reader *r, const int64_t *columns, size_t gpus, size_t seconds,
                          int64_t jitter_ms) {
    uint64_t wrong = 0;
    struct error e;
    for (size_t s = 0; s < gpus * DAY_COLUMNS; s++) {
        char subject[64];
        const char *subjects[] = {subject};
        const struct column *c = &day[s % DAY_COLUMNS];
        subject_of(s / DAY_COLUMNS, subject);
        struct history_ask ask = {subjects, 1, c->name, T0_MS, T0_MS + (int64_t)seconds * 1000 + 60000, 1000, 0, 0};
        struct history_answer a;
        if (history_query(r, &ask, &a, &e) < 0) die("query", &e);
        if (a.n != seconds || a.step_ms)
            wrong += seconds;
        else
            for (size_t i = 0; i < seconds; i++) {
                int64_t at_ms = T0_MS + (int64_t)i * 1000 + late(i, jitter_ms);
                wrong += a.at_ms[i] != at_ms || a.mean[i] != (double)columns[s * seconds + i] * c->worth;
            }
        history_answer_done(&a);
    }
    return wrong;
}

struct day_result {
    double cpu_s, wall_s, bytes;
    uint64_t samples, wrong;
    struct query_time minute_live, second_live, minute, second;
};

static void feed_day(struct history *h, const int64_t *columns, size_t gpus, size_t seconds, int64_t jitter_ms) {
    struct history_value *values = calloc(gpus * DAY_COLUMNS, sizeof *values);
    for (size_t s = 0; s < gpus * DAY_COLUMNS; s++) {
        char subject[64];
        subject_of(s / DAY_COLUMNS, subject);
        values[s].series = series_of(h, subject, &day[s % DAY_COLUMNS]);
    }
    for (size_t t = 0; t < seconds; t++) {
        int64_t at_ms = T0_MS + (int64_t)t * 1000 + late(t, jitter_ms);
        for (size_t s = 0; s < gpus * DAY_COLUMNS; s++)
            values[s].value = (double)columns[s * seconds + t] * day[s % DAY_COLUMNS].worth;
        for (size_t g = 0; g < gpus; g++)
            if (history_add(h, at_ms, values + g * DAY_COLUMNS, DAY_COLUMNS) != (int)DAY_COLUMNS) die("add", NULL);
        if ((t + 1) * 1000 % FLUSH_MS == 0) flush(h, at_ms);
    }
    free(values);
}

static struct day_result run_day(const char *path, const int64_t *columns, size_t gpus, size_t seconds,
                                 int64_t jitter_ms) {
    struct day_result d = {.samples = (uint64_t)gpus * DAY_COLUMNS * seconds};
    struct history *h = fresh(path);
    struct history_reader *r;
    struct error e;
    int64_t end_ms = T0_MS + (int64_t)seconds * 1000;
    int64_t cpu = clock_process_cpu_ns(), wall = clock_boot_ns();
    feed_day(h, columns, gpus, seconds, jitter_ms);
    flush(h, end_ms);
    d.cpu_s = (double)(clock_process_cpu_ns() - cpu) / 1e9;
    d.wall_s = (double)(clock_boot_ns() - wall) / 1e9;
    if (history_reader_open(h, &r, &e) < 0) die("reader", &e);
    d.minute_live = time_query(r, gpus, end_ms - MS_PER_DAY, end_ms, 60000);
    d.second_live = time_query(r, gpus, end_ms - MS_PER_DAY, end_ms, 1000);
    cpu = clock_process_cpu_ns(), wall = clock_boot_ns();
    settle(h, end_ms);
    d.cpu_s += (double)(clock_process_cpu_ns() - cpu) / 1e9;
    d.wall_s += (double)(clock_boot_ns() - wall) / 1e9;
    d.minute = time_query(r, gpus, end_ms - MS_PER_DAY, end_ms, 60000);
    d.second = time_query(r, gpus, end_ms - MS_PER_DAY, end_ms, 1000);
    d.wrong = read_back(r, columns, gpus, seconds, jitter_ms);
    history_reader_close(r);
    history_close(h);
    d.bytes = file_bytes(path);
    return d;
}

/* The trace of a real card: one GPU, ten rounds a second; PCIe every tenth round. */
static void run_trace(const char *path, const char *csv, double *ret_bytes, double *ret_empty, uint64_t *ret_samples) {
    struct history *h = fresh(path);
    history_close(h);
    *ret_empty = file_bytes(path);
    h = fresh(path);
    struct history_value values[TRACE_COLUMNS];
    for (size_t i = 0; i < TRACE_COLUMNS; i++)
        values[i].series = series_of(h, "gpu:GPU-00000000-0000-4000-8000-000000000200", &trace[i]);
    FILE *f = fopen(csv, "r");
    char line[1024];
    int64_t end_ms = T0_MS;
    if (!f || !fgets(line, sizeof line, f)) die(csv, NULL);
    for (size_t row = 0; fgets(line, sizeof line, f); row++) {
        char *at = line;
        int64_t at_ms = T0_MS + llround(strtod(at, &at) * 1000);
        for (size_t i = 0; i < TRACE_COLUMNS && *at == ','; i++) {
            double v = strtod(at + 1, &at) * trace[i].worth;
            values[i].value = strstr(trace[i].name, "pcie") && row % 10 ? NAN : v;
        }
        int taken = history_add(h, at_ms, values, TRACE_COLUMNS);
        if (taken < 0) die("add", NULL);
        *ret_samples += (uint64_t)taken;
        if (row % 50 == 49) flush(h, at_ms);
        end_ms = at_ms;
    }
    fclose(f);
    flush(h, end_ms);
    settle(h, end_ms);
    history_close(h);
    *ret_bytes = file_bytes(path);
}

static int verdict(bool is_good, int *bad) {
    *bad += !is_good;
    return is_good ? ' ' : '!';
}

int main(int argc, char **argv) {
    if (argc != 6) die("usage: series_bench DIR GPUS SECONDS COLUMNS.bin TRACE.csv", NULL);
    size_t gpus = strtoull(argv[2], NULL, 10), seconds = strtoull(argv[3], NULL, 10);
    size_t bytes = gpus * DAY_COLUMNS * seconds * sizeof(int64_t);
    char path[400];
    snprintf(path, sizeof path, "%s/history.db", argv[1]);
    int fd = open(argv[4], O_RDONLY | O_CLOEXEC), bad = 0;
    if (fd < 0 || file_bytes(argv[4]) != (double)bytes) die("the columns do not fit", NULL);
    const int64_t *columns = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (columns == MAP_FAILED) die("mmap", NULL);
    double trace_bytes, trace_empty;
    uint64_t trace_samples = 0;
    struct day_result d = run_day(path, columns, gpus, seconds, 0), j = run_day(path, columns, gpus, seconds, 5);
    run_trace(path, argv[5], &trace_bytes, &trace_empty, &trace_samples);
    double n = (double)d.samples, tn = (double)trace_samples;
    bool is_day = gpus == 8 && seconds == 86400;
    printf("%" PRIu64 " readings of a day, a flush every 5 s of it; %" PRIu64 " of a real H200\n", d.samples,
           trace_samples);
#define ROW(good, fmt, ...) printf("%c %-52s " fmt "\n", verdict(good, &bad), __VA_ARGS__)
    ROW(!is_day || d.bytes / n <= 0.60, "%8.4f   (limit 0.60)", "bytes a reading on disk, rollups and all",
        d.bytes / n);
    ROW(1, "%8.4f", "  the same with rounds up to 4 ms late", j.bytes / n);
    ROW(trace_bytes / tn <= 1.0, "%8.4f   (limit 1.0)", "bytes a reading of the H200 trace, whole file",
        trace_bytes / tn);
    ROW(1, "%8.4f", "  without what an empty file takes", (trace_bytes - trace_empty) / tn);
    ROW(!is_day || n / d.cpu_s >= 5e6, "%8.2f   (limit 5)", "million readings a CPU second, compaction included",
        n / d.cpu_s / 1e6);
    ROW(1, "%8.2f", "  of wall time", n / d.wall_s / 1e6);
    ROW(d.minute.wall_us < 1000, "%8.0f   (limit 1000; %zu points, %" PRIu64 " rows)", "µs: 24 h of a series at 60 s",
        d.minute.wall_us, d.minute.points, d.minute.rows);
    ROW(d.minute_live.wall_us < 1000, "%8.0f   (limit 1000; %" PRIu64 " rows)",
        "  up to now, the last hours not yet merged", d.minute_live.wall_us, d.minute_live.rows);
    ROW(d.second.wall_us < 10000, "%8.0f   (limit 10000; %zu points, %" PRIu64 " rows)", "µs: 24 h of a series at 1 s",
        d.second.wall_us, d.second.points, d.second.rows);
    ROW(d.second_live.wall_us < 10000, "%8.0f   (limit 10000; %" PRIu64 " rows)", "  up to now", d.second_live.wall_us,
        d.second_live.rows);
    ROW(d.wrong + j.wrong == 0, "%8" PRIu64 "   (limit 0)", "values that did not come back as they went in",
        d.wrong + j.wrong);
    if (is_day)
        puts("  (VictoriaMetrics 1.79 on the same day: 0.600 bytes, 2.1 M a CPU second, 0.9-1.9 ms, 23-28 ms; "
             "Prometheus 2.42:\n   1.132 bytes, 1.3 M, 6.8 ms, 77 ms; measured on another run, not by this one)");
    printf("{\"bench\":\"series\",\"readings\":%" PRIu64
           ",\"bytes_per_reading\":%.4f,\"bytes_per_reading_jitter\":%.4f,\"bytes_per_reading_h200\":%.4f,"
           "\"readings_per_cpu_s\":%.0f,\"query_60s_us\":%.0f,\"query_60s_live_us\":%.0f,\"query_1s_us\":%.0f,\"query_"
           "1s_live_us\":%.0f,\"wrong\":%" PRIu64 ",\"ok\":%s}\n",
           d.samples, d.bytes / n, j.bytes / n, trace_bytes / tn, n / d.cpu_s, d.minute.wall_us, d.minute_live.wall_us,
           d.second.wall_us, d.second_live.wall_us, d.wrong + j.wrong, bad ? "false" : "true");
    return bad > 0;
}
