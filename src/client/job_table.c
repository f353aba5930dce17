#include "client/job_table.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "client/job_id.h"
#include "client/when.h"
#include "model/duration.h"
#include "model/job.h"
#include "model/size.h"

double job_number(const struct json_tree *j, const char *key) { return json_tree_number(json_tree_get(j, key), NAN); }
const char *job_text(const struct json_tree *j, const char *key) { return json_tree_text(json_tree_get(j, key), ""); }

void job_span(double s, char *ret, size_t room) {
    char words[DURATION_TEXT];
    if (isnan(s)) {
        snprintf(ret, room, "-");
    } else if (fabs(s) < 9.95) {
        snprintf(ret, room, "%.1fs", s);
    } else {
        double whole = fabs(s) < 3600 ? floor(fabs(s)) : floor(fabs(s) / 60) * 60; /* nobody counts seconds of hours */
        duration_text((int64_t)whole * NS_PER_S, words);
        snprintf(ret, room, "%s%s", s < 0 ? "-" : "", words);
    }
}

void job_list(const struct json_tree *list, char *ret, size_t room) {
    size_t used = 0;
    ret[0] = 0;
    for (size_t i = 0; i < json_tree_count(list) && used + 1 < room; i++) {
        const struct json_tree *item = json_tree_at(list, i);
        const char *text = json_tree_text(item, NULL);
        char number[24];
        snprintf(number, sizeof number, "%.0f", json_tree_number(item, 0));
        used += (size_t)snprintf(ret + used, room - used, "%s%.12s", i ? "," : "", text ? text : number);
    }
}

void job_command(const struct json_tree *command, char *ret, size_t room) {
    size_t used = 0, n = json_tree_count(command);
    const char *whole = json_tree_text(command, NULL);
    ret[0] = 0;
    if (whole) snprintf(ret, room, "%s", whole);
    for (size_t i = 0; i < n && used + 1 < room; i++)
        used += (size_t)snprintf(ret + used, room - used, "%s%s", i ? " " : "",
                                 json_tree_text(json_tree_at(command, i), ""));
    for (char *c = ret; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = ' ';
}

static void put_value(const struct json_tree *value, struct buf *b) {
    const char *text = json_tree_text(value, NULL);
    if (text)
        buf_puts(b, text);
    else
        buf_printf(b, "%.15g", json_tree_number(value, 0));
}

static void put_pair(void *ctx, const char *key, const struct json_tree *value) {
    struct buf *b = ctx;
    size_t n = json_tree_count(value);
    buf_printf(b, "%s%s=", b->len ? " " : "", key);
    if (!n) put_value(value, b);
    for (size_t i = 0; i < n; i++) {
        if (i) buf_putc(b, ',');
        put_value(json_tree_at(value, i), b);
    }
}

void job_pairs(const struct json_tree *object, struct buf *ret) { json_tree_each(object, put_pair, ret); }

/* ---- cells ---- */

static void put(struct table_cell *c, const char *text) { snprintf(c->text, sizeof c->text, "%s", text); }

static void put_id(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    double element = job_number(j, "element"), elements = job_number(json_tree_get(j, "elements"), "total");
    struct job_id id = {.job = (int64_t)job_number(j, "id"), .element = isnan(element) ? -1 : (int64_t)element};
    char text[JOB_ID_TEXT];
    job_id_text(&id, text);
    if (isnan(element) && elements > 1)
        snprintf(c->text, sizeof c->text, "%s[%.0f]", text, elements);
    else
        put(c, text);
}

static void put_state(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    static const struct {
        enum job_state state;
        const char *colour;
    } colours[] = {
        {JOB_RUNNING,   JOB_GREEN },
        {JOB_GRANTED,   JOB_GREEN },
        {JOB_FAILED,    JOB_RED   },
        {JOB_TIMEOUT,   JOB_RED   },
        {JOB_UNKNOWN,   JOB_RED   },
        {JOB_CANCELLED, JOB_YELLOW},
        {JOB_HELD,      JOB_YELLOW},
    };
    const struct json_tree *counts = json_tree_get(j, "elements");
    double total = job_number(counts, "total"), over = 0;
    put(c, job_text(j, "state"));
    for (size_t i = 0; i < ARRAY_LEN(colours); i++)
        if (strcmp(c->text, job_state_name(colours[i].state)) == 0) c->colour = colours[i].colour;
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++)
        if (job_state_is_over(s)) over += json_tree_number(json_tree_get(counts, job_state_name(s)), 0);
    if (total > 1 && over < total) { /* how far an array has come */
        size_t n = strlen(c->text);
        snprintf(c->text + n, sizeof c->text - n, " %.0f/%.0f", over, total);
    }
}

static void put_user(const struct json_tree *j, int64_t now_ns, struct table_cell *c) { put(c, job_text(j, "user")); }
static void put_name(const struct json_tree *j, int64_t now_ns, struct table_cell *c) { put(c, job_text(j, "name")); }

static void put_gpus(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    job_list(json_tree_get(j, "gpu_names"), c->text, sizeof c->text);
    if (!*c->text) job_list(json_tree_get(j, "gpu_uuids"), c->text, sizeof c->text);
}

/* "2", "0,3" for just these, "2 of 0,1,2,3", "10GiB of one", "2 x 40GiB". */
static void put_wants(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    const struct json_tree *scope = json_tree_get(j, "scope");
    double gpus = job_number(j, "gpus"), share = job_number(j, "share_bytes"), memory = job_number(j, "memory_bytes");
    char list[56], size[SIZE_TEXT];
    job_list(scope, list, sizeof list);
    if (share > 0) {
        size_text((uint64_t)share, size);
        snprintf(c->text, sizeof c->text, "%s of %s", size, *list ? list : "one");
    } else if (*list && (double)json_tree_count(scope) <= gpus) {
        snprintf(c->text, sizeof c->text, "GPU %s", list);
    } else if (!isnan(gpus)) {
        int n = snprintf(c->text, sizeof c->text, "%.0f", gpus);
        if (memory > 0) size_text((uint64_t)memory, size);
        if (memory > 0) n += snprintf(c->text + n, sizeof c->text - (size_t)n, " x %s", size);
        if (*list) snprintf(c->text + n, sizeof c->text - (size_t)n, " of %s", list);
    }
}

static void put_age(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    char age[32];
    double at = job_number(j, "submitted");
    if (isnan(at)) return;
    number_age(now_ns - (int64_t)(at * 1e9), age, sizeof age);
    snprintf(c->text, sizeof c->text, "%s ago", age);
}

static double took_s(const struct json_tree *j, int64_t now_ns) {
    double start = job_number(j, "started"), end = job_number(j, "ended");
    if (!(start > 0)) return NAN;
    return (end > 0 ? end : (double)now_ns / 1e9) - start;
}

static void put_took(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    if (!isnan(took_s(j, now_ns))) job_span(took_s(j, now_ns), c->text, sizeof c->text);
}

static void put_left(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    double limit = job_number(j, "time_limit_s"), took = took_s(j, now_ns);
    if (!(limit > 0) || isnan(took) || job_number(j, "ended") > 0) return;
    job_span(limit - took, c->text, sizeof c->text);
    if (limit - took < limit / 10) c->colour = JOB_YELLOW;
}

static void put_exit(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    double code = job_number(j, "exit_code"), signal = job_number(j, "signal");
    const char *name = signal > 0 ? sigabbrev_np((int)signal) : NULL;
    if (signal > 0 && name)
        snprintf(c->text, sizeof c->text, "%s", name);
    else if (signal > 0)
        snprintf(c->text, sizeof c->text, "signal %.0f", signal);
    else if (!isnan(code))
        snprintf(c->text, sizeof c->text, "%.0f", code);
    if (signal > 0 || code > 0) c->colour = JOB_RED;
}

static void put_place(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    if (job_number(j, "place") > 0) snprintf(c->text, sizeof c->text, "%.0f", job_number(j, "place"));
}

static void put_starts(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    double at = job_number(j, "starts_at");
    char text[WHEN_TEXT];
    if (!(at > 0)) {
        if (strcmp(job_text(j, "state"), job_state_name(JOB_HELD)) != 0) put(c, "not known");
        return;
    }
    when_text((int64_t)(at * 1e9), now_ns, text);
    put(c, (int64_t)(at * 1e9) <= now_ns ? "now" : text);
}

static void put_command(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    if (*job_text(j, "image")) put(c, job_text(j, "image"));
    if (!*c->text) job_command(json_tree_get(j, "command"), c->text, sizeof c->text);
}

static void put_priority(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    double p = job_number(j, "priority");
    if (!isnan(p) && p != 0) snprintf(c->text, sizeof c->text, "%+.0f", p);
}

static void put_peak(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    double bytes = job_number(j, "memory_peak_bytes");
    if (bytes > 0) number_bytes(bytes, c->text, sizeof c->text);
}

static void put_values(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    AUTO(buf_done) struct buf text = {0};
    job_pairs(json_tree_get(j, "values"), &text);
    if (text.len) put(c, text.s);
}

/* Of the time that it held its GPUs. */
static void put_busy(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    double ratio = job_number(j, "gpu_utilization_ratio");
    if (!isnan(ratio)) snprintf(c->text, sizeof c->text, "%.0f%%", ratio * 100);
    if (ratio < 0.1) c->colour = JOB_YELLOW;
}

const struct job_cell job_cell_id = {{.title = "JOB"}, put_id};
const struct job_cell job_cell_state = {{.title = "STATE"}, put_state};
const struct job_cell job_cell_user = {
    {.title = "USER", .shrink = 6},
    put_user
};
const struct job_cell job_cell_name = {
    {.title = "NAME", .shrink = 8},
    put_name
};
const struct job_cell job_cell_gpus = {
    {.title = "GPU", .drop = 2},
    put_gpus
};
const struct job_cell job_cell_wants = {
    {.title = "WANTS", .drop = 3},
    put_wants
};
const struct job_cell job_cell_age = {
    {.title = "HANDED IN", .to_the_right = true, .drop = 4},
    put_age
};
const struct job_cell job_cell_took = {
    {.title = "RAN", .to_the_right = true, .drop = 1},
    put_took
};
const struct job_cell job_cell_left = {
    {.title = "LEFT", .to_the_right = true, .drop = 3},
    put_left
};
const struct job_cell job_cell_exit = {
    {.title = "EXIT", .to_the_right = true, .drop = 1},
    put_exit
};
const struct job_cell job_cell_place = {
    {.title = "#", .to_the_right = true},
    put_place
};
const struct job_cell job_cell_starts = {
    {.title = "STARTS", .drop = 1},
    put_starts
};
const struct job_cell job_cell_command = {
    {.title = "COMMAND", .drop = TABLE_EXTRA, .shrink = 16},
    put_command
};
const struct job_cell job_cell_priority = {
    {.title = "PRIO", .to_the_right = true, .drop = 5},
    put_priority
};
const struct job_cell job_cell_peak = {
    {.title = "PEAK", .to_the_right = true, .drop = 5},
    put_peak
};
const struct job_cell job_cell_busy = {
    {.title = "BUSY", .to_the_right = true, .drop = 5},
    put_busy
};

const struct job_cell job_cell_values = {
    {.title = "SWEEP", .shrink = 12},
    put_values
};

void job_below(const struct json_tree *j, int64_t now_ns, char *ret, size_t room) {
    const char *why = job_text(j, "why"), *sooner = job_text(j, "sooner"), *text = job_text(j, "text");
    if (!*text) text = job_text(j, "state_text");
    if (*why && *sooner)
        snprintf(ret, room, "%s; sooner: %s", why, sooner);
    else
        snprintf(ret, room, "%s", *why ? why : text);
}

/* ---- the table ---- */

void job_wants(const struct json_tree *j, char *ret, size_t room) {
    struct table_cell c = {0};
    put_wants(j, 0, &c);
    bool is_number = *c.text && !c.text[strspn(c.text, "0123456789")];
    snprintf(ret, room, "%s%s", c.text, !is_number ? "" : strcmp(c.text, "1") == 0 ? " GPU" : " GPUs");
}

struct ordered {
    const struct json_tree *job;
    double by;
    size_t at; /* where it came: equal ones stay in that order */
};

static int compare(const void *a, const void *b) {
    const struct ordered *x = a, *y = b;
    if (x->by != y->by) return x->by < y->by ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static struct ordered *in_order(const struct json_tree *list, const char *order) {
    size_t n = json_tree_count(list);
    struct ordered *rows = calloc(n + 1, sizeof *rows);
    if (!rows) abort();
    for (size_t i = 0; i < n; i++) {
        double by = order ? job_number(json_tree_at(list, i), order) : 0;
        rows[i] = (struct ordered){json_tree_at(list, i), isnan(by) ? INFINITY : by, i};
    }
    if (order) qsort(rows, n, sizeof *rows, compare);
    return rows;
}

void job_table(const struct json_tree *list, const char *order, const struct job_cell *const *cells, size_t count,
               void (*below)(const struct json_tree *j, int64_t now_ns, char *ret, size_t room),
               const struct screen *screen, struct buf *out) {
    struct table_column columns[TABLE_COLUMNS_MAX] = {0};
    struct table *t = calloc(1, sizeof *t);
    int64_t now_ns = clock_real_ns();
    size_t n = json_tree_count(list);
    if (!t || count > TABLE_COLUMNS_MAX) abort();
    for (size_t c = 0; c < count; c++) columns[c] = cells[c]->column;
    t->columns = columns;
    t->column_count = (int)count;
    struct ordered *rows = in_order(list, order);
    for (size_t i = 0; i < n && t->row_count < TABLE_ROWS_MAX; i++, t->row_count++) {
        for (size_t c = 0; c < count; c++) cells[c]->put(rows[i].job, now_ns, &t->cell[t->row_count][c]);
        if (below) below(rows[i].job, now_ns, t->below[t->row_count], sizeof t->below[0]);
    }
    free(rows);
    table_print(t, screen->width, screen->has_colour, out);
    if (n > TABLE_ROWS_MAX) buf_printf(out, "and %zu more; --json has them all\n", n - TABLE_ROWS_MAX);
    free(t);
}
