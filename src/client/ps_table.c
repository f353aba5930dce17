#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_tree.h"
#include "base/number.h"
#include "client/ps.h"
#include "client/table.h"
#include "model/duration.h"

#define RED "\033[31m"
#define YELLOW "\033[33m"
#define GREEN "\033[32m"

struct drawing {
    const struct view *v;
    const struct json_tree *tasks; /* all of the document */
    double now_s;
};

static double number(const struct json_tree *j, const char *key) {
    return json_tree_number(json_tree_get(j, key), NAN);
}
static const char *text(const struct json_tree *j, const char *key) {
    return json_tree_text(json_tree_get(j, key), "");
}

static void put(struct table_cell *c, const char *words) { snprintf(c->text, sizeof c->text, "%s", words); }

/* "12.3s", "-0.4s", "1m30s": with tenths where they matter. */
static void put_span(struct table_cell *c, double s) {
    char words[DURATION_TEXT];
    if (isnan(s)) {
        put(c, "-");
    } else if (fabs(s) < 0.1) {
        snprintf(c->text, sizeof c->text, "%.0fms", s * 1000);
    } else if (fabs(s) < 60) {
        snprintf(c->text, sizeof c->text, "%.1fs", s);
    } else {
        duration_text((int64_t)fabs(s) * NS_PER_S, words);
        snprintf(c->text, sizeof c->text, "%s%s", s < 0 ? "-" : "", words);
    }
}

static void put_deadline(struct table_cell *c, double s) {
    char words[DURATION_TEXT];
    if (isnan(s)) {
        put(c, "-");
        return;
    }
    duration_text((int64_t)(s * 1e9), words);
    put(c, words);
}

/* GPUs by number where this machine has them, else by the beginning of their UUID. */
static void put_gpus(const struct drawing *d, struct table_cell *c, const struct json_tree *gpus) {
    size_t used = 0;
    c->text[0] = 0;
    for (size_t i = 0; i < json_tree_count(gpus) && used + 16 < sizeof c->text; i++) {
        const char *uuid = json_tree_text(json_tree_at(gpus, i), "");
        char name[16];
        snprintf(name, sizeof name, "%.12s", uuid);
        for (size_t k = 0; k < d->v->count; k++) {
            const struct inventory *is = &d->v->of[k].inventory;
            if (strcmp(is->uuid, uuid) == 0 && !view_is_instance(&d->v->of[k]))
                snprintf(name, sizeof name, "%d", is->index);
            else if (strcmp(is->uuid, uuid) == 0)
                snprintf(name, sizeof name, "%d:%u", d->v->of[is->parent].inventory.index, is->gi);
        }
        used += (size_t)snprintf(c->text + used, sizeof c->text - used, "%s%s", used ? "," : "", name);
    }
    if (!used) put(c, "-");
}

/* ---- containers ---- */

/* clang-format off */
static const struct table_column container_columns[] = {
    {.title = "CONTAINER", .shrink = 12},
    {.title = "GPU", .drop = 3},
    {.title = "DEADLINE", .to_the_right = true},
    {.title = "TASKS", .to_the_right = true},
    {.title = "SLACK", .to_the_right = true},
    {.title = "HIT RATE", .to_the_right = true},
    {.title = "STATE", .drop = 2},
    {.title = "IMAGE", .drop = 4, .shrink = 12},
};
/* clang-format on */

/* What is left to the task of this container that has least; NaN: none runs with a deadline. */
static double left_s(const struct drawing *d, const char *id, const struct json_tree **gpus) {
    double least = NAN;
    for (size_t i = 0; i < json_tree_count(d->tasks); i++) {
        const struct json_tree *t = json_tree_at(d->tasks, i);
        if (strcmp(text(t, "container_id"), id) != 0 || strcmp(text(t, "state"), "ended") == 0) continue;
        if (!*gpus) *gpus = json_tree_get(t, "gpus");
        double left = number(t, "float_s");
        if (isnan(least) || left < least) least = left;
    }
    return least;
}

static void container_row(const struct drawing *d, const struct json_tree *j, struct table_cell *c) {
    const struct json_tree *gpus = NULL;
    double running = number(j, "running"), ended = number(j, "ended"), misses = number(j, "misses");
    double hits = number(j, "hits"), rate = number(j, "hit_rate");
    double left = left_s(d, text(j, "id"), &gpus);
    put(&c[0], text(j, "name"));
    put_gpus(d, &c[1], gpus);
    put_deadline(&c[2], number(j, "deadline_s"));
    if (ended > 0)
        snprintf(c[3].text, sizeof c[3].text, "%.0f+%.0f", running, ended);
    else
        snprintf(c[3].text, sizeof c[3].text, "%.0f", running);
    put_span(&c[4], isnan(left) ? number(j, "least_float_s") : left);
    if (!isnan(left) && left < 0) c[4].colour = RED;
    if (isnan(rate))
        put(&c[5], "-");
    else
        snprintf(c[5].text, sizeof c[5].text, "%.0f%% %.0f/%.0f", floor(rate * 100), hits, hits + misses);
    if (!isnan(rate)) c[5].colour = misses > 0 ? RED : GREEN;
    put(&c[6], text(j, "state"));
    put(&c[7], text(j, "image"));
}

/* ---- tasks ---- */

/* clang-format off */
static const struct table_column task_columns[] = {
    {.title = "PID", .to_the_right = true},
    {.title = "GPU"},
    {.title = "USER", .drop = 1, .shrink = 8},
    {.title = "CONTAINER", .shrink = 10},
    {.title = "STARTED", .drop = 3},
    {.title = "TOOK", .to_the_right = true},
    {.title = "DEADLINE", .to_the_right = true},
    {.title = "FLOAT", .to_the_right = true},
    {.title = "STATE"},
    {.title = "COMMAND", .drop = 4, .shrink = 10},
};
/* clang-format on */

/* In words as well as in colour: a miss must be seen on any terminal. */
static void put_state(struct table_cell *c, const struct json_tree *j) {
    const char *state = text(j, "state");
    const struct json_tree *hit = json_tree_get(j, "hit");
    bool has_hit = hit && !json_tree_is_null(hit), is_miss = has_hit && number(j, "float_s") < 0;
    if (strcmp(state, "overdue") == 0) {
        put(c, "OVERDUE");
        c->colour = RED;
    } else if (strcmp(state, "ended") == 0 && has_hit) {
        put(c, is_miss ? "MISS" : "hit");
        c->colour = is_miss ? RED : GREEN;
    } else {
        put(c, state);
    }
}

static void put_started(const struct drawing *d, struct table_cell *c, double s) {
    char age[32];
    if (isnan(s)) return;
    number_age((int64_t)((d->now_s - s) * 1e9), age, sizeof age);
    snprintf(c->text, sizeof c->text, "%s ago", age);
}

static void task_row(const struct drawing *d, const struct json_tree *j, struct table_cell *c) {
    double start = number(j, "start"), end = number(j, "end");
    const char *command = text(j, "command");
    for (const char *at = command; *at && *at != ' '; at++) /* without the directory of its program */
        if (*at == '/') command = at + 1;
    snprintf(c[0].text, sizeof c[0].text, "%.0f", number(j, "pid"));
    put_gpus(d, &c[1], json_tree_get(j, "gpus"));
    put(&c[2], text(j, "user"));
    put(&c[3], *text(j, "container") ? text(j, "container") : "-");
    put_started(d, &c[4], start);
    put_span(&c[5], (isnan(end) ? d->now_s : end) - start);
    put_deadline(&c[6], number(j, "deadline_s"));
    put_span(&c[7], number(j, "float_s"));
    put_state(&c[8], j);
    if (c[8].colour && strcmp(c[8].colour, RED) == 0) c[7].colour = RED;
    put(&c[9], command);
}

/* ---- both ---- */

typedef void (*row_fn)(const struct drawing *d, const struct json_tree *j, struct table_cell *c);

static void draw(const struct drawing *d, const struct json_tree *list, const struct table_column *columns, int count,
                 row_fn row, const struct screen *screen, struct buf *out) {
    struct table *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->columns = columns;
    t->column_count = count;
    size_t n = json_tree_count(list);
    for (size_t i = 0; i < n && t->row_count < TABLE_ROWS_MAX; i++)
        row(d, json_tree_at(list, i), t->cell[t->row_count++]);
    table_print(t, screen->width, screen->has_colour, out);
    if (n > TABLE_ROWS_MAX) buf_printf(out, "and %zu more; --json has them all\n", n - TABLE_ROWS_MAX);
    free(t);
}

int ps_table(const struct buf *document, const struct view *v, bool all, const struct screen *screen, struct buf *out,
             struct error *e) {
    struct json_tree *root;
    int r = json_tree_parse(document->s, document->len, &root, e);
    if (r < 0) return r;
    const struct json_tree *containers = json_tree_get(root, "containers"), *tasks = json_tree_get(root, "tasks");
    struct drawing d = {.v = v, .tasks = tasks, .now_s = (double)clock_real_ns() / 1e9};
    if (json_tree_count(containers)) {
        draw(&d, containers, container_columns, ARRAY_LEN(container_columns), container_row, screen, out);
        buf_putc(out, '\n');
    }
    if (json_tree_count(tasks))
        draw(&d, tasks, task_columns, ARRAY_LEN(task_columns), task_row, screen, out);
    else
        buf_puts(out, all ? "No GPU task is known.\n" : "No GPU task runs; --all shows those that ended.\n");
    json_tree_free(root);
    return 0;
}
