/* The frame as a whole: header, footer, events, and what lies between them by the layout. */
#include "client/top_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "client/text.h"
#include "client/top_figures.h"

#define STALE_NS (5 * NS_PER_S)
enum { EVENT_RECENT_S = 24 * 3600 };

int top_scroll(int first, int selected, int count, int room) {
    if (selected < first) first = selected;
    if (selected >= first + room) first = selected - room + 1;
    if (first > count - room) first = count - room;
    return first < 0 ? 0 : first;
}

bool top_is_stale(const struct top_data *d, int64_t now_ns) {
    if (now_ns - d->newest_ns <= STALE_NS) return false;
    for (size_t i = 0; !d->is_remote && i < d->view.count; i++)
        for (int m = 0; m < METRIC_COUNT; m++)
            if (latest_has(&d->view.of[i].latest, m, now_ns)) return false;
    return true;
}

/* ---- the header ---- */

struct totals {
    int gpus, busy, unwell, held;
    double power_w, limit_w, used, memory, util, hottest;
    int utils, hottest_gpu;
};

static double or_zero(double x) { return isnan(x) ? 0 : x; }

static struct totals total(const struct top_data *d, const struct top_state *s) {
    struct totals t = {.hottest = NAN};
    for (size_t i = 0; i < d->view.count; i++) {
        const struct view_device *gpu = &d->view.of[i];
        struct top_figures f;
        if (view_is_instance(gpu)) continue;
        top_figures(&d->view, gpu, s->hot_c, &f);
        t.gpus++;
        t.busy += f.value[GAUGE_UTIL] >= 0.01;
        t.unwell += !f.is_well;
        t.held += !isnan(f.notch[GAUGE_POWER]);
        t.util += or_zero(f.value[GAUGE_UTIL]);
        t.utils += !isnan(f.value[GAUGE_UTIL]);
        t.used += or_zero(f.value[GAUGE_MEMORY]);
        t.memory += or_zero(f.full[GAUGE_MEMORY]);
        t.power_w += or_zero(f.value[GAUGE_POWER]);
        t.limit_w += or_zero(f.full[GAUGE_POWER]);
        if (isnan(f.value[GAUGE_TEMP]) || f.value[GAUGE_TEMP] <= t.hottest) continue;
        t.hottest = f.value[GAUGE_TEMP];
        t.hottest_gpu = gpu->inventory.index;
    }
    return t;
}

/* Pieces from the left, each only where all of it has room. */
struct pen {
    struct canvas *c;
    int x, y, end;
};

static void piece(struct pen *p, uint32_t style, const char *text) {
    const char *dot = p->c->has_utf8 ? "·" : ",";
    int width = text_width(text) + (p->x > 1 ? 3 : 0);
    if (p->x + width > p->end) return;
    if (p->x > 1) {
        canvas_text(p->c, p->x + (p->c->has_utf8 ? 1 : 0), p->y, 1, dot, STYLE_DIM);
        p->x += p->c->has_utf8 ? 3 : 2;
    }
    p->x += canvas_text(p->c, p->x, p->y, p->end - p->x, text, style);
}

/* Where the data come from and how old they are; what is wrong with that is loud. Returns where it begins. */
static int draw_age(struct canvas *c, const struct top_data *d, const struct top_state *s) {
    char text[160], clock[40], age[32] = "";
    uint32_t style = STYLE_DIM;
    int64_t ns = s->now_ns - d->newest_ns;
    number_time_here(s->now_real_ns, s->now_real_ns, clock, sizeof clock);
    number_age(ns, age, sizeof age);
    if (!d->newest_ns) {
        snprintf(text, sizeof text, " %s: nothing yet ", d->source);
        style = STYLE_WARN;
    } else if (top_is_stale(d, s->now_ns) || s->is_paused) {
        snprintf(text, sizeof text, " %s: %s %s ", d->source, s->is_paused ? "PAUSED" : "STALE", age);
        style = STYLE_ALARM;
    } else if (ns < 2 * NS_PER_S) {
        snprintf(text, sizeof text, " %s ", d->source); /* fresh: the figure would only flicker */
    } else {
        snprintf(text, sizeof text, " %s, %s old ", d->source, age);
    }
    int width = text_width(text), x = c->width - 10 - width;
    canvas_text(c, c->width - 9, 0, 9, clock, STYLE_BOLD);
    if (x > 0) canvas_text(c, x, 0, width, text, style);
    return x > 0 ? x : c->width - 10;
}

static void draw_summary(struct canvas *c, const struct top_data *d, const struct totals *t, int end, bool is_alone) {
    struct pen p = {.c = c, .x = 1, .end = end};
    char text[160];
    const char *driver = d->view.count ? d->view.of[0].inventory.driver : "";
    piece(&p, STYLE_TITLE, d->host);
    snprintf(text, sizeof text, "%d GPU%s, %d busy", t->gpus, t->gpus == 1 ? "" : "s", t->busy);
    piece(&p, STYLE_PLAIN, text);
    snprintf(text, sizeof text, "%d NEED%s ATTENTION", t->unwell, t->unwell == 1 ? "S" : "");
    if (t->unwell) piece(&p, STYLE_ALARM, text);
    snprintf(text, sizeof text, "%d held", t->held);
    if (t->held) piece(&p, STYLE_WARN, text);
    snprintf(text, sizeof text, "%.0f of %.0f W", t->power_w, t->limit_w);
    if (is_alone && t->limit_w > 0) piece(&p, STYLE_PLAIN, text);
    snprintf(text, sizeof text, "driver %s", driver);
    if (*driver) piece(&p, STYLE_DIM, text);
}

static void draw_totals(struct canvas *c, const struct top_data *d, const struct totals *t) {
    const double gib = 1024.0 * 1024 * 1024;
    char words[4][64];
    const struct {
        const char *name;
        double ratio;
        uint32_t style;
        char *words;
    } parts[] = {
        {"util",  t->utils ? t->util / t->utils : NAN,            STYLE_UTIL,   words[0]},
        {"mem",   t->memory > 0 ? t->used / t->memory : NAN,      STYLE_MEMORY, words[1]},
        {"power", t->limit_w > 0 ? t->power_w / t->limit_w : NAN, STYLE_POWER,  words[2]},
    };
    snprintf(words[0], sizeof words[0], "%.0f%%", t->utils ? 100 * t->util / t->utils : 0);
    snprintf(words[1], sizeof words[1], "%.0f/%.0fG", t->used / gib, t->memory / gib);
    snprintf(words[2], sizeof words[2], "%.0f/%.0fW", t->power_w, t->limit_w);
    snprintf(words[3], sizeof words[3], "hottest GPU %d, %.0f%s", t->hottest_gpu, t->hottest, c->has_utf8 ? "°C" : "C");
    int x = 1, room = c->width - 2, meter = (room - 70) / 3;
    if (meter > 24) meter = 24;
    if (meter < 4) meter = 4;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        int width = (int)strlen(parts[i].name) + 1 + meter + 1 + (int)strlen(parts[i].words);
        if (isnan(parts[i].ratio) || x + width > c->width - 1) continue;
        x += canvas_text(c, x, 1, 8, parts[i].name, STYLE_DIM) + 1;
        canvas_meter(c, x, 1, meter, parts[i].ratio, NAN, parts[i].style);
        x += meter + 1;
        x += canvas_text(c, x, 1, 40, parts[i].words, STYLE_PLAIN) + 3;
    }
    if (!isnan(t->hottest) && x + text_width(words[3]) < c->width) canvas_text(c, x, 1, 40, words[3], STYLE_PLAIN);
}

void top_draw_header(struct canvas *c, const struct top_data *d, const struct top_state *s, int height) {
    struct totals t = total(d, s);
    int end = draw_age(c, d, s);
    draw_summary(c, d, &t, end, height < 2);
    if (height >= 2 && t.gpus) draw_totals(c, d, &t);
}

/* ---- the footer ---- */

static int key_hint(struct canvas *c, int x, int y, const char *key, const char *what) {
    int width = text_width(key) + 1 + text_width(what) + 2;
    if (x + width > c->width) return x;
    x += canvas_text(c, x, y, 16, key, STYLE_KEY) + 1;
    return x + canvas_text(c, x, y, 40, what, STYLE_DIM) + 2;
}

void top_draw_footer(struct canvas *c, const struct top_data *d, const struct top_state *s, int y) {
    char text[280];
    if (s->overlay == OVERLAY_FILTER) {
        int x = canvas_text(c, 1, y, 8, "filter:", STYLE_KEY) + 2;
        x += canvas_text(c, x, y, c->width - x - 1, s->filter, STYLE_BOLD);
        canvas_put(c, x, y, c->has_utf8 ? 0x2588 : '_', STYLE_BOLD);
        if (!*s->filter)
            canvas_text(c, x + 2, y, c->width - x - 2, "words, gpu:0, user:alice, cmd:train, !word", STYLE_DIM);
        return;
    }
    if (*s->message || *d->problem) {
        canvas_text(c, 1, y, c->width - 2, *s->message ? s->message : d->problem, *s->message ? STYLE_BOLD : STYLE_BAD);
        return;
    }
    int x = 1;
    snprintf(text, sizeof text, "sort: %s", top_sort_word(s->sort));
    x = key_hint(c, x, y, "q", "quit");
    x = key_hint(c, x, y, "?", "help");
    if (s->page == PAGE_GPU) {
        x = key_hint(c, x, y, "Esc", "back");
        x = key_hint(c, x, y, c->has_utf8 ? "← →" : "Left Right", "other GPU");
    } else {
        x = key_hint(c, x, y, "/", *s->filter ? s->filter : "filter");
        x = key_hint(c, x, y, "s", text);
        x = key_hint(c, x, y, "Tab", s->focus == FOCUS_GPUS ? "processes" : "GPUs");
        x = key_hint(c, x, y, "g", "GPU detail");
    }
    x = key_hint(c, x, y, "p", s->is_paused ? "go on" : "pause");
    if (s->has_signals && !d->is_remote) key_hint(c, x, y, "K", "signal");
}

/* ---- events ---- */

static bool is_worth_showing(const struct top_state *s, const struct event *ev) {
    return ev->severity >= EVENT_WARNING && s->now_real_ns - ev->real_ns < EVENT_RECENT_S * NS_PER_S;
}

static int count_events(const struct top_data *d, const struct top_state *s) {
    int n = 0;
    for (size_t i = 0; i < d->view.event_count; i++) n += is_worth_showing(s, &d->view.events[i]);
    return n;
}

void top_draw_events(struct canvas *c, const struct top_data *d, const struct top_state *s, int y, int height) {
    int row = height;
    for (size_t i = d->view.event_count; i > 0 && row > 0; i--) {
        const struct event *ev = &d->view.events[i - 1];
        char at[40], gpu[24] = "";
        if (!is_worth_showing(s, ev)) continue;
        number_time_here(ev->real_ns, s->now_real_ns, at, sizeof at);
        if (ev->device >= 0) snprintf(gpu, sizeof gpu, "GPU %d: ", d->view.of[ev->device].inventory.index);
        int x = 1 + canvas_text(c, 1, y + --row, 20, at, STYLE_DIM) + 2;
        canvas_put(c, 0, y + row, ev->severity >= EVENT_ERROR ? '!' : ' ', STYLE_BAD);
        canvas_printf(c, x, y + row, c->width - x, ev->severity >= EVENT_ERROR ? STYLE_BAD : STYLE_WARN, "%s%s", gpu,
                      ev->text);
    }
}

/* ---- the whole ---- */

static struct top_shape shape_of(const struct canvas *c, const struct top_data *d, const struct top_state *s) {
    struct top_shape shape = {.width = c->width,
                              .height = c->height,
                              .lines = (int)d->view.count,
                              .processes = s->shown.count,
                              .events = count_events(d, s),
                              .wish = s->form};
    int of[GPU_MAX] = {0};
    shape.gpus = top_gpus(&d->view);
    for (size_t i = 0; i < d->view.count; i++) {
        int parent = d->view.of[i].inventory.parent;
        if (parent >= 0 && parent < GPU_MAX && ++of[parent] > shape.instances) shape.instances = of[parent];
    }
    return shape;
}

static void draw_nothing(struct canvas *c, const struct top_data *d, const struct top_layout *l) {
    const char *text = *d->problem                                                     ? d->problem
                       : d->view.driver.state == DRIVER_ABSENT && *d->view.driver.text ? d->view.driver.text
                                                                                       : "No GPU is being read yet.";
    canvas_text(c, 2, l->gpu_y + 1, c->width - 4, text, STYLE_BOLD);
    canvas_text(c, 2, l->gpu_y + 2, c->width - 4, "This goes on looking; `gpumgr doctor` says what is missing.",
                STYLE_DIM);
}

void top_draw(struct canvas *c, const struct top_data *d, struct top_state *s) {
    struct top_shape shape = shape_of(c, d, s);
    struct top_layout l = top_layout(&shape);
    canvas_clear(c);
    top_draw_header(c, d, s, l.header_h);
    if (shape.gpus == 0) {
        draw_nothing(c, d, &l);
    } else if (s->page == PAGE_GPU) {
        top_draw_gpu(c, d, s);
    } else {
        if (l.form == FORM_PANELS)
            top_draw_panels(c, d, s, &l);
        else
            top_draw_lines(c, d, s, &l);
        if (l.process_h) top_draw_processes(c, d, s, l.process_y, l.process_h);
        top_draw_events(c, d, s, l.event_y, l.event_h);
    }
    if (!s->is_once) top_draw_footer(c, d, s, l.footer_y);
    top_draw_overlay(c, d, s);
}
