#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "client/guard.h"
#include "client/table.h"
#include "client/text.h"
#include "model/guard_words.h"

#define RED "\033[31m"
#define YELLOW "\033[33m"
#define GREEN "\033[32m"

struct seen {
    const struct view *v;
    const struct view_device *d;
    const struct screen *screen;
};

static void put(struct table_cell *c, const char *text) { snprintf(c->text, sizeof c->text, "%s", text); }

/* ---- cells ---- */

static void cell_index(const struct seen *s, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%d", s->d->inventory.index);
}

static void cell_model(const struct seen *s, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%.64s", view_short_name(s->d));
}

static void cell_mode(const struct seen *s, struct table_cell *c) {
    put(c, s->d->has_guard ? guard_mode_word(&s->d->guard) : "-");
    c->colour = !s->d->has_guard || s->d->guard.mode != RING_GUARD_ACTS ? YELLOW : GREEN;
}

static void cell_lever(const struct seen *s, struct table_cell *c) {
    if (!s->d->has_guard) return;
    put(c, s->d->guard.lever == GUARD_BY_APP_CLOCKS ? "app clocks" : guard_lever_words(&s->d->guard));
}

static const char *degrees(const struct seen *s) { return s->screen->has_utf8 ? "°C" : "C"; }

static void sensor_text(const struct seen *s, enum guard_sensor sensor, char *ret, size_t room) {
    const struct ring_guard *g = &s->d->guard;
    if (!isnan(g->reading[sensor]) && !isnan(g->target[sensor]))
        snprintf(ret, room, "%.0f/%.0f%s", g->reading[sensor], g->target[sensor], degrees(s));
    else if (!isnan(g->target[sensor]))
        snprintf(ret, room, "?/%.0f%s", g->target[sensor], degrees(s));
}

static const char *sensor_colour(const struct seen *s, enum guard_sensor sensor) {
    double room = guard_room_c(&s->d->guard, sensor);
    return room < 0 ? RED : room < 3 ? YELLOW : NULL;
}

/* The sensor that decides, with its name where it is not the one that everybody expects. */
static void cell_worst(const struct seen *s, struct table_cell *c) {
    enum guard_sensor worst;
    char text[48] = "";
    if (!s->d->has_guard) return;
    if (!guard_worst(&s->d->guard, &worst)) {
        sensor_text(s, GUARD_CORE, c->text, sizeof c->text);
        return;
    }
    sensor_text(s, worst, text, sizeof text);
    snprintf(c->text, sizeof c->text, "%s%s",
             worst == GUARD_MEMORY   ? "mem "
             : worst == GUARD_MARGIN ? "margin "
                                     : "",
             text);
    c->colour = sensor_colour(s, worst);
}

static void cell_sensor(const struct seen *s, enum guard_sensor sensor, struct table_cell *c) {
    if (!s->d->has_guard) return;
    sensor_text(s, sensor, c->text, sizeof c->text);
    c->colour = sensor_colour(s, sensor);
}

static void cell_core(const struct seen *s, struct table_cell *c) { cell_sensor(s, GUARD_CORE, c); }
static void cell_memory(const struct seen *s, struct table_cell *c) { cell_sensor(s, GUARD_MEMORY, c); }
static void cell_margin(const struct seen *s, struct table_cell *c) { cell_sensor(s, GUARD_MARGIN, c); }

static void cell_limit(const struct seen *s, struct table_cell *c) {
    const struct ring_guard *g = &s->d->guard;
    if (!s->d->has_guard || g->lever == GUARD_BY_NONE || !isfinite(g->limit) || !isfinite(g->baseline)) return;
    snprintf(c->text, sizeof c->text, "%.0f/%.0f %s", g->limit, g->baseline, guard_unit(g));
    c->colour = guard_is_low(g) ? YELLOW : NULL;
}

static void cell_reason(const struct seen *s, struct table_cell *c) {
    if (s->d->has_guard && s->d->guard.mode != RING_GUARD_OFF) put(c, guard_short_reason(&s->d->guard));
}

static void cell_since(const struct seen *s, struct table_cell *c) {
    if (s->d->has_guard && s->d->guard.since_real_ns)
        number_time_here(s->d->guard.since_real_ns, s->v->real_ns, c->text, sizeof c->text);
}

static void cell_age(const struct seen *s, struct table_cell *c) {
    if (s->d->has_guard && s->d->guard.since_real_ns)
        number_age(s->v->real_ns - s->d->guard.since_real_ns, c->text, sizeof c->text);
}

static void cell_held(const struct seen *s, struct table_cell *c) {
    const struct ring_guard *g = &s->d->guard;
    if (!s->d->has_guard || g->mode != RING_GUARD_ACTS || !isfinite(g->throttled_s)) return;
    if (g->throttled_s < 1)
        put(c, "0 s");
    else
        number_age((int64_t)(g->throttled_s < 1e9 ? g->throttled_s * 1e9 : 1e18), c->text, sizeof c->text);
}

static const struct table_column columns[] = {
    {"GPU",    true,  0, 0},
    {"MODEL",  false, 0, 6},
    {"GUARD",  false, 0, 0},
    {"LEVER",  false, 0, 0},
    {"WORST",  true,  0, 0},
    {"CORE",   true,  9, 0},
    {"MEMORY", true,  8, 0},
    {"MARGIN", true,  7, 0},
    {"LIMIT",  true,  0, 0},
    {"REASON", false, 0, 0},
    {"SINCE",  false, 2, 0},
    {"FOR",    true,  6, 0},
    {"HELD",   true,  1, 0},
};
static void (*const cells[])(const struct seen *, struct table_cell *) = {
    cell_index,  cell_model, cell_mode,   cell_lever, cell_worst, cell_core, cell_memory,
    cell_margin, cell_limit, cell_reason, cell_since, cell_age,   cell_held};
_Static_assert(ARRAY_LEN(cells) == ARRAY_LEN(columns), "a cell for each column");

/* ---- under a row ---- */

/* By the clock on the wall: the ring has it by the boot clock. */
static void clock_text(const struct view *v, int64_t boot_ns, bool with_seconds, char *ret, size_t room) {
    number_time_here(v->real_ns + (boot_ns - v->boot_ns), v->real_ns, ret, room);
    if (!with_seconds && strlen(ret) == strlen("HH:MM:SS")) ret[strlen("HH:MM")] = 0;
}

static void below_by_hand(const struct view *v, const struct ring_guard *g, struct buf *b) {
    char until[40], by[40];
    if (!g->manual_until_ns) return;
    clock_text(v, g->manual_until_ns, false, until, sizeof until);
    buf_printf(b, "%sset by hand until %s", b->len ? "; " : "", until);
    if (!g->confirm_by_ns) return;
    clock_text(v, g->confirm_by_ns, true, by, sizeof by);
    buf_printf(b, ", must be confirmed by %s", by);
}

static void below(const struct view *v, const struct view_device *d, char *ret, size_t room) {
    AUTO(buf_done) struct buf b = {0};
    char why[160];
    const char *state = view_state(d, why, sizeof why);
    buf_puts(&b, "");
    if (!view_is_well(d))
        buf_printf(&b, "%s%s%s", state, *why ? ": " : "", why);
    else if (!d->has_guard)
        buf_puts(&b, "nothing is said of its guard: guard.mode is off, or it has not been read yet");
    if (d->has_guard && d->guard.mode == RING_GUARD_OBSERVES)
        buf_printf(&b, "%sobserves only: %s", b.len ? "; " : "", *d->guard.why ? d->guard.why : "nobody says why");
    if (d->has_guard) below_by_hand(v, &d->guard, &b);
    snprintf(ret, room, "%s", b.s);
}

/* ---- the whole ---- */

static void add_row(const struct view *v, const struct view_device *d, const struct screen *screen, struct table *t) {
    if (t->row_count == TABLE_ROWS_MAX) return;
    struct seen s = {.v = v, .d = d, .screen = screen};
    int row = t->row_count++;
    for (int c = 0; c < t->column_count; c++) cells[c](&s, &t->cell[row][c]);
    below(v, d, t->below[row], sizeof t->below[row]);
}

void guard_table(const struct view *v, const struct screen *screen, struct buf *b) {
    struct table *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->columns = columns;
    t->column_count = ARRAY_LEN(columns);
    for (size_t i = 0; i < v->count; i++)
        if (!view_is_instance(&v->of[i])) add_row(v, &v->of[i], screen, t);
    if (v->driver.state == DRIVER_ABSENT && *v->driver.text) buf_printf(b, "The driver: %s\n", v->driver.text);
    if (t->row_count)
        table_print(t, screen->width, screen->has_colour, b);
    else
        buf_puts(b, "gpumgr watches no GPU.\n");
    free(t);
}
