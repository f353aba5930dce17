/* The thermal model against two recordings of a real H200: the one it was fitted to and one it has not seen. */
#include "tests/test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "sim/thermal.h"

enum { ROWS_MAX = 12000, COLUMNS_MAX = 16 };

struct span {
    double from_s, to_s;
};

struct recording {
    const char *file;
    int core_column, mem_column, power_column, energy_column; /* -1: not there */
    struct span copies[2];                                    /* when memory copies ran; matrix products otherwise */
    size_t rows;
    double t[ROWS_MAX], watts[ROWS_MAX], core[ROWS_MAX], mem[ROWS_MAX];
};

static struct recording step = {
    .file = "h200-step-50hz.csv",
    .core_column = 1,
    .mem_column = 2,
    .power_column = 4,
    .energy_column = -1,
    .copies = {{174.1, 199.2}},
};
static struct recording trace = {
    .file = "h200-trace-10hz.csv",
    .core_column = 1,
    .mem_column = 14,
    .power_column = -1,
    .energy_column = 3,
    .copies = {{130, 169.5}, {284.9, 305.2}},
};

static int split(char *line, double *ret) {
    int n = 0;
    for (char *rest = line, *word; n < COLUMNS_MAX && (word = strsep(&rest, ","));) ret[n++] = atof(word);
    return n;
}

static void load(struct recording *r) {
    char path[4096], line[512];
    snprintf(path, sizeof path, "%s/tests/data/%s", getenv("SOURCE_DIR"), r->file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    double before_mj = 0;
    while (r->rows < ROWS_MAX && fgets(line, sizeof line, f)) {
        double c[COLUMNS_MAX] = {0};
        split(line, c);
        size_t i = r->rows++;
        r->t[i] = c[0];
        r->core[i] = c[r->core_column];
        r->mem[i] = c[r->mem_column];
        if (r->power_column >= 0) r->watts[i] = c[r->power_column] / 1000;
        /* The slower one has no instant power; its energy counter gives the mean of each interval. */
        if (r->energy_column >= 0 && i > 0) r->watts[i - 1] = (c[3] - before_mj) / 1000 / (r->t[i] - r->t[i - 1]);
        before_mj = c[3];
    }
    if (r->energy_column >= 0) r->watts[r->rows - 1] = r->watts[r->rows - 2];
    fclose(f);
    assert_true(r->rows > 3000);
}

/* As script/fit-plant: DRAM activity of 15.8 % in products and 90 % in copies, times 200 W at full activity. */
static double memory_watts(const struct recording *r, size_t i) {
    bool copying = false;
    for (size_t k = 0; k < ARRAY_LEN(r->copies); k++)
        copying |= r->t[i] >= r->copies[k].from_s && r->t[i] < r->copies[k].to_s;
    return 200 * fmax(r->watts[i] - 118, 0) * (copying ? 0.90 / 347 : 0.158 / 574);
}

/* The air of the room is not in the recordings: the best constant is taken for core and memory together with the
 * sensor's offset, and what remains is the model's error. */
static double rms(const double *error, size_t n) {
    double mean = 0, sum = 0;
    for (size_t i = 0; i < n; i++) mean += error[i] / (double)n;
    for (size_t i = 0; i < n; i++) sum += (error[i] - mean) * (error[i] - mean);
    return sqrt(sum / (double)n);
}

static void replay(const struct recording *r, double *ret_core_rms, double *ret_mem_rms) {
    static double core_error[ROWS_MAX], mem_error[ROWS_MAX];
    struct thermal t;
    thermal_settle(&t, r->watts[0] - memory_watts(r, 0), memory_watts(r, 0), 1, 1);
    for (size_t i = 0; i < r->rows; i++) {
        core_error[i] = thermal_core_c(&t, 0) - r->core[i];
        mem_error[i] = thermal_mem_c(&t, 0) - r->mem[i];
        if (i + 1 == r->rows) break;
        double mem_w = memory_watts(r, i);
        thermal_step(&t, r->watts[i] - mem_w, mem_w, 1, 1, r->t[i + 1] - r->t[i]);
    }
    *ret_core_rms = rms(core_error, r->rows);
    *ret_mem_rms = rms(mem_error, r->rows);
}

static void check(struct recording *r, double core_bound, double mem_bound) {
    double core, mem;
    load(r);
    replay(r, &core, &mem);
    print_message("# %s: core %.2f C, memory %.2f C rms\n", r->file, core, mem);
    assert_true(core < core_bound);
    assert_true(mem < mem_bound);
}

static void fitted_recording(void **state) { check(&step, 1.85, 1.40); }

static void unseen_recording(void **state) { check(&trace, 1.85, 1.45); }

/* Advancing in one step or in a thousand ends at the same place. */
static void steps_do_not_matter(void **state) {
    struct thermal one = {0}, many = {0};
    thermal_step(&one, 500, 40, 1, 1.5, 5);
    for (int i = 0; i < 1000; i++) thermal_step(&many, 500, 40, 1, 1.5, 0.005);
    assert_true(fabs(thermal_core_c(&one, 0) - thermal_core_c(&many, 0)) < 1e-6);
    assert_true(fabs(thermal_mem_c(&one, 0) - thermal_mem_c(&many, 0)) < 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fitted_recording),
        cmocka_unit_test(unseen_recording),
        cmocka_unit_test(steps_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
