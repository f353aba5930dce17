#include "client/status_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "client/table.h"
#include "client/text.h"
#include "client/users.h"
#include "model/guard_words.h"

#define RED "\033[31m"
#define YELLOW "\033[33m"
#define GREEN "\033[32m"
#define DIM "\033[2m"

enum { RECENT_S = 24 * 3600, EVENTS_SHOWN = 5, BAR_WIDTH = 8, WIDE = 110 };

static const double gib = 1024.0 * 1024 * 1024;

/* What a cell is made from. */
struct seen {
    const struct view *v;
    const struct view_device *d;
    const struct status_look *look;
};

static bool get(const struct seen *s, int metric, double *ret) {
    if (!latest_has(&s->d->latest, metric, s->v->boot_ns)) return false;
    *ret = s->d->latest.of[metric].value;
    return true;
}

static void put(struct table_cell *c, const char *text) { snprintf(c->text, sizeof c->text, "%s", text); }

/* ---- cells ---- */

static void cell_index(const struct seen *s, struct table_cell *c) {
    if (view_is_instance(s->d))
        put(c, "");
    else
        snprintf(c->text, sizeof c->text, "%d", s->d->inventory.index);
}

static void cell_model(const struct seen *s, struct table_cell *c) {
    const char *branch = s->look->screen.has_utf8 ? "└ " : "- ";
    snprintf(c->text, sizeof c->text, "%s%.64s", view_is_instance(s->d) ? branch : "", view_short_name(s->d));
}

static void cell_state(const struct seen *s, struct table_cell *c) {
    char why[160];
    const char *state = view_state(s->d, why, sizeof why);
    put(c, strcmp(state, "not answering") == 0 ? "silent" : state);
    c->colour = !view_is_well(s->d) ? RED : s->d->state.state == DEVICE_OK ? GREEN : YELLOW;
}

/* As the guard would see it: the threshold that was set, else the card's own maximum less 3, else 83. */
static double hot_of(const struct seen *s) {
    if (!isnan(s->look->hot_c)) return s->look->hot_c;
    return s->d->inventory.temp_gpu_max_c > 0 ? s->d->inventory.temp_gpu_max_c - 3 : 83;
}

static void cell_temp(const struct seen *s, struct table_cell *c) {
    double temp, hot = hot_of(s);
    if (!get(s, METRIC_TEMP_CORE, &temp)) return;
    snprintf(c->text, sizeof c->text, "%.0f%s", temp, s->look->screen.has_utf8 ? "°C" : "C");
    c->colour = temp >= hot ? RED : temp >= hot - 10 ? YELLOW : NULL;
}

static void cell_power(const struct seen *s, struct table_cell *c) {
    double power, limit;
    if (!get(s, METRIC_POWER, &power)) return;
    if (get(s, METRIC_POWER_LIMIT_ENFORCED, &limit) || get(s, METRIC_POWER_LIMIT, &limit))
        snprintf(c->text, sizeof c->text, "%.0f/%.0fW", power, limit);
    else
        snprintf(c->text, sizeof c->text, "%.0fW", power);
}

static void cell_util(const struct seen *s, struct table_cell *c) {
    double util;
    if (!get(s, METRIC_UTIL_GPU, &util)) return;
    snprintf(c->text, sizeof c->text, "%.0f%%", util * 100);
    if (util < 0.005) c->colour = DIM;
}

static void cell_bar(const struct seen *s, struct table_cell *c) {
    double used, all;
    if (!get(s, METRIC_MEMORY_USED, &used) || !get(s, METRIC_MEMORY_TOTAL, &all) || all <= 0) return;
    int full = (int)(used / all * BAR_WIDTH + 0.5), width = s->look->screen.width >= WIDE ? BAR_WIDTH * 2 : BAR_WIDTH;
    if (width != BAR_WIDTH) full = (int)(used / all * width + 0.5);
    size_t n = 0;
    for (int i = 0; i < width; i++) {
        const char *mark = s->look->screen.has_utf8 ? (i < full ? "█" : "░") : i < full ? "#" : ".";
        n += (size_t)snprintf(c->text + n, sizeof c->text - n, "%s", mark);
    }
    if (used / all > 0.95) c->colour = YELLOW;
}

static void cell_memory(const struct seen *s, struct table_cell *c) {
    double used, all;
    if (!get(s, METRIC_MEMORY_USED, &used)) return;
    if (get(s, METRIC_MEMORY_TOTAL, &all))
        snprintf(c->text, sizeof c->text, "%.1f/%.1fG", used / gib, all / gib);
    else
        snprintf(c->text, sizeof c->text, "%.1fG", used / gib);
}

static void cell_clock(const struct seen *s, struct table_cell *c) {
    double hz;
    if (get(s, METRIC_CLOCK_SM, &hz) || get(s, METRIC_CLOCK_GRAPHICS, &hz))
        snprintf(c->text, sizeof c->text, "%.0f", hz / 1e6);
}

static void cell_memory_clock(const struct seen *s, struct table_cell *c) {
    double hz;
    if (get(s, METRIC_CLOCK_MEMORY, &hz)) snprintf(c->text, sizeof c->text, "%.0f", hz / 1e6);
}

static void cell_memory_temp(const struct seen *s, struct table_cell *c) {
    double temp;
    if (get(s, METRIC_TEMP_MEMORY, &temp))
        snprintf(c->text, sizeof c->text, "%.0f%s", temp, s->look->screen.has_utf8 ? "°C" : "C");
}

/* The guard, a hand or the budget holds it below its baseline; with room for it, to what. */
static bool put_held(const struct seen *s, struct table_cell *c) {
    static const char *const words[] = {
        [RING_HELD_BY_GUARD] = "guard", [RING_HELD_BY_HAND] = "by hand", [RING_HELD_BY_BUDGET] = "budget"};
    const struct ring_guard *g = &s->d->guard;
    if (!s->d->has_guard || g->mode != RING_GUARD_ACTS || !guard_is_low(g) || !isfinite(g->limit)) return false;
    put(c, words[g->held_by]);
    size_t n = strlen(c->text);
    if (s->look->screen.width >= WIDE)
        snprintf(c->text + n, sizeof c->text - n, " %.0f/%.0f%s", g->limit, g->baseline, guard_unit(g));
    c->colour = YELLOW;
    return true;
}

/* Why a card is slower than it could be; the gravest first, and an idle card is not slow. What the guard holds is slowed
 * by its limit, which the card would call "power". */
static void cell_slow(const struct seen *s, struct table_cell *c) {
    static const struct {
        int metric;
        const char *word, *colour;
    } reasons[] = {
        {METRIC_REASON_HW_THERMAL,  "heat!",   RED   },
        {METRIC_REASON_POWER_BRAKE, "brake!",  RED   },
        {METRIC_REASON_HW_SLOWDOWN, "slow!",   RED   },
        {METRIC_REASON_SW_THERMAL,  "heat",    YELLOW},
        {METRIC_REASON_POWER_CAP,   "power",   YELLOW},
        {METRIC_REASON_SYNC_BOOST,  "sync",    NULL  },
        {METRIC_REASON_APP_CLOCKS,  "clocks",  NULL  },
        {METRIC_REASON_DISPLAY,     "display", NULL  },
    };
    const size_t grave = 3; /* of them */
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        double on;
        if (i == grave && put_held(s, c)) return;
        if (!get(s, reasons[i].metric, &on) || on == 0) continue;
        put(c, reasons[i].word);
        c->colour = reasons[i].colour;
        return;
    }
}

static void cell_users(const struct seen *s, struct table_cell *c) {
    const struct ring_processes *p = &s->d->processes;
    if (!p->boot_ns) return;
    int n = snprintf(c->text, sizeof c->text, "%u", p->total);
    users_of(p, c->text + n, sizeof c->text - (size_t)n);
    if (!p->total) c->colour = DIM;
}

static const struct table_column columns[] = {
    {"GPU",    true,  0, 0},
    {"MODEL",  false, 0, 6},
    {"STATE",  false, 0, 0},
    {"TEMP",   true,  0, 0},
    {"MTEMP",  true,  7, 0},
    {"POWER",  true,  0, 0},
    {"UTIL",   true,  0, 0},
    {"",       false, 5, 0},
    {"MEMORY", true,  0, 0},
    {"MHZ",    true,  3, 0},
    {"MEMMHZ", true,  8, 0},
    {"SLOW",   false, 0, 0},
    {"PROCS",  false, 2, 5},
};
static void (*const cells[])(const struct seen *, struct table_cell *) = {
    cell_index, cell_model,  cell_state, cell_temp,         cell_memory_temp, cell_power, cell_util,
    cell_bar,   cell_memory, cell_clock, cell_memory_clock, cell_slow,        cell_users};
_Static_assert(ARRAY_LEN(cells) == ARRAY_LEN(columns), "a cell for each column");

/* ---- the whole ---- */

static void below(const struct view *v, const struct view_device *d, char *ret, size_t room) {
    char why[160], since[40], age[32];
    const char *state = view_state(d, why, sizeof why);
    if (view_is_well(d)) return;
    if (d->silent_ns) {
        snprintf(ret, room, "%s: %s", state, why);
        return;
    }
    number_time_here(d->state.since_real_ns, v->real_ns, since, sizeof since);
    number_age(v->boot_ns - d->state.since_boot_ns, age, sizeof age);
    snprintf(ret, room, "%s since %s (%s)%s%s", state, since, age, *why ? ": " : "", why);
}

static void add_row(const struct view *v, size_t at, const struct status_look *look, struct table *t) {
    if (t->row_count == TABLE_ROWS_MAX) return;
    struct seen s = {.v = v, .d = &v->of[at], .look = look};
    int row = t->row_count++;
    for (int c = 0; c < t->column_count; c++) cells[c](&s, &t->cell[row][c]);
    below(v, s.d, t->below[row], sizeof t->below[row]);
}

static void summary(const struct view *v, const struct status_look *look, struct buf *out) {
    AUTO(buf_done) struct buf line = {0};
    const char *dot = look->screen.has_utf8 ? " · " : ", ", *driver = "";
    double used_w = 0, limit_w = 0;
    unsigned gpus = 0, busy = 0, unwell = 0;
    for (size_t i = 0; i < v->count; i++) {
        struct seen s = {.v = v, .d = &v->of[i], .look = look};
        double value;
        if (view_is_instance(s.d)) continue;
        gpus++;
        unwell += !view_is_well(s.d);
        if (!*driver) driver = s.d->inventory.driver;
        if (get(&s, METRIC_UTIL_GPU, &value)) busy += value >= 0.01;
        if (get(&s, METRIC_POWER, &value)) used_w += value;
        if (get(&s, METRIC_POWER_LIMIT_ENFORCED, &value)) limit_w += value;
    }
    buf_printf(&line, "%u GPU%s", gpus, gpus == 1 ? "" : "s");
    if (gpus) buf_printf(&line, "%s%u busy", dot, busy);
    if (unwell) buf_printf(&line, "%s%u need%s attention", dot, unwell, unwell == 1 ? "s" : "");
    if (used_w > 0) buf_printf(&line, "%s%.0f W", dot, used_w);
    if (used_w > 0 && limit_w > 0) buf_printf(&line, " of %.0f W", limit_w);
    if (*driver) buf_printf(&line, "%sdriver %s", dot, driver);
    text_cut(out, line.s, look->screen.width);
    buf_putc(out, '\n');
}

static void recent_events(const struct view *v, const struct status_look *look, struct buf *b) {
    size_t shown = 0;
    for (size_t i = v->event_count; i > 0 && shown < EVENTS_SHOWN; i--) {
        const struct event *ev = &v->events[i - 1];
        char at[40], line[320], gpu[24] = "";
        if (ev->severity < EVENT_WARNING || v->real_ns - ev->real_ns > RECENT_S * NS_PER_S) continue;
        number_time_here(ev->real_ns, v->real_ns, at, sizeof at);
        if (ev->device >= 0) snprintf(gpu, sizeof gpu, "GPU %d: ", v->of[ev->device].inventory.index);
        snprintf(line, sizeof line, "%s  %s%s", at, gpu, ev->text);
        if (!shown++) buf_putc(b, '\n');
        if (look->screen.has_colour) buf_puts(b, ev->severity >= EVENT_ERROR ? RED : YELLOW);
        text_cut(b, line, look->screen.width);
        if (look->screen.has_colour) buf_puts(b, "\033[0m");
        buf_putc(b, '\n');
    }
}

void status_table(const struct view *v, const struct status_look *look, struct buf *b) {
    struct table *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->columns = columns;
    t->column_count = ARRAY_LEN(columns);
    for (size_t i = 0; i < v->count; i++) {
        if (view_is_instance(&v->of[i])) continue;
        add_row(v, i, look, t);
        for (size_t k = 0; k < v->count; k++)
            if (v->of[k].inventory.parent == (int32_t)i) add_row(v, k, look, t);
    }
    summary(v, look, b);
    if (v->driver.state == DRIVER_ABSENT && *v->driver.text) buf_printf(b, "The driver: %s\n", v->driver.text);
    if (t->row_count) table_print(t, look->screen.width, look->screen.has_colour, b);
    recent_events(v, look, b);
    free(t);
}
