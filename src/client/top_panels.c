/* A panel a GPU: four meters, each with a chart of the last minutes beside it, and a line of what else matters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "client/text.h"
#include "client/top_draw.h"
#include "client/top_figures.h"

enum { LABEL = 6, METER_MIN = 8, METER_MAX = 30, CHART_MAX = 300, LONG_FROM = 84, TEXT_SHORT = 10, TEXT_LONG = 18 };

struct panel {
    struct canvas *c;
    const struct top_data *d;
    const struct top_state *s;
    const struct view_device *gpu;
    struct top_figures f;
    int x, y, width, height, band_h; /* x, y, width: inside its frame */
};

static int text_width_of(const struct panel *p) { return p->width >= LONG_FROM ? TEXT_LONG : TEXT_SHORT; }

/* Where charts are tall, they are what one looks at. */
static int meter_width(const struct panel *p) {
    int width = p->width / (p->band_h >= 3 ? 6 : 4);
    return width < METER_MIN ? METER_MIN : width > METER_MAX ? METER_MAX : width;
}

/* "mean 82%, 41 to 95" of what the chart shows. */
static void draw_extremes(const struct panel *p, int g, const float *values, int count, int x, int y, int width) {
    static const struct {
        double per;
        const char *unit;
    } units[GAUGES] = {
        [GAUGE_UTIL] = {0.01,                 "%"},
        [GAUGE_MEMORY] = {1024.0 * 1024 * 1024, "G"},
        [GAUGE_TEMP] = {1,                    "C"},
        [GAUGE_POWER] = {1,                    "W"},
    };
    double sum = 0, high = -INFINITY, low = INFINITY;
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (isnan(values[i])) continue;
        sum += values[i];
        if (values[i] > high) high = values[i];
        if (values[i] < low) low = values[i];
        n++;
    }
    if (!n) return;
    const char *unit = g == GAUGE_TEMP && p->c->has_utf8 ? "°" : units[g].unit;
    double per = units[g].per;
    canvas_printf(p->c, x, y, width, STYLE_DIM, "mean %.0f%s, %.0f to %.0f", sum / n / per, unit, low / per,
                  high / per);
}

static void draw_gauge(const struct panel *p, int g) {
    char text[64];
    struct canvas *c = p->c;
    int text_w = text_width_of(p), meter = meter_width(p), y = p->y + g * p->band_h;
    int chart_x = p->x + LABEL + meter + 1 + text_w + 2, chart_w = p->x + p->width - chart_x;
    canvas_text(c, p->x, y, LABEL - 1, top_gauge_word((enum top_gauge)g), STYLE_DIM);
    canvas_meter(c, p->x + LABEL, y, meter, p->f.value[g] / p->f.full[g], p->f.notch[g], p->f.style[g]);
    top_gauge_text(&p->f, (enum top_gauge)g, c->has_utf8, text_w == TEXT_LONG, text, sizeof text);
    canvas_right(c, p->x + LABEL + meter + 1, y, text_w, text, p->f.is_hot && g == GAUGE_TEMP ? STYLE_BAD : STYLE_BOLD);
    if (chart_w > CHART_MAX) chart_w = CHART_MAX;
    if (chart_w < 4) return;
    float values[CHART_MAX], line[CHART_MAX];
    int step = top_step_s(p->s, chart_w), metric = top_gauge_line((enum top_gauge)g);
    int64_t now_s = p->d->view.boot_ns / 1000000000;
    const struct history_device *h = history_find(&p->d->history, p->gpu->inventory.uuid);
    history_series(h, p->f.metric[g], now_s, step, values, chart_w);
    if (metric >= 0) history_series(h, metric, now_s, step, line, chart_w);
    double lo = g == GAUGE_TEMP ? 20 : 0, hi = p->f.full[g] + (g == GAUGE_TEMP ? 5 : 0);
    int chart_h = p->band_h - (p->band_h >= 3); /* air, where there is some */
    canvas_chart(c, chart_x, y, chart_w, chart_h,
                 &(struct chart){.values = values,
                                 .line = metric >= 0 ? line : NULL,
                                 .count = chart_w,
                                 .lo = lo,
                                 .hi = hi,
                                 .style = p->f.style[g]});
    if (p->band_h >= 2) draw_extremes(p, g, values, chart_w, p->x + LABEL, y + 1, meter + 1 + text_w);
}

/* ---- the line of words ---- */

/* Words from the left, each only where all of it has room. */
struct words {
    const struct panel *p;
    int x, y;
};

static void add_word(struct words *w, const char *text) {
    const struct panel *p = w->p;
    bool is_first = w->x == p->x;
    const char *dot = is_first ? "" : p->c->has_utf8 ? " · " : ", ";
    if (w->x + text_width(dot) + text_width(text) > p->x + p->width) return;
    w->x += canvas_text(p->c, w->x, w->y, 4, dot, STYLE_DIM);
    w->x += canvas_text(p->c, w->x, w->y, p->width, text, STYLE_DIM);
}

static void add_number(struct words *w, const char *before, double value, const char *after) {
    char text[64];
    if (isnan(value)) return;
    snprintf(text, sizeof text, "%s%.0f%s", before, value, after);
    add_word(w, text);
}

static void add_rate(struct words *w, const char *name, double rx, double tx) {
    char in[32], out[32], text[96];
    if (isnan(rx) || isnan(tx)) return;
    number_bytes(rx, in, sizeof in);
    number_bytes(tx, out, sizeof out);
    snprintf(text, sizeof text, "%s in %s/s, out %s/s", name, in, out);
    add_word(w, text);
}

/* "2 processes of alice, bob" */
static void add_processes(struct words *w) {
    const struct top_processes *all = &w->p->d->processes;
    AUTO(buf_done) struct buf text = {0};
    int count = 0, gpu = w->p->gpu->inventory.index;
    for (int i = 0; i < all->count; i++) count += all->of[i].gpu == gpu;
    if (!count) return;
    buf_printf(&text, "%d process%s", count, count == 1 ? "" : "es");
    const char *between = " of ";
    for (int i = 0; i < all->count; i++) {
        bool is_new = *all->of[i].user && all->of[i].gpu == gpu;
        for (int k = 0; is_new && k < i; k++)
            is_new = all->of[k].gpu != gpu || strcmp(all->of[k].user, all->of[i].user) != 0;
        if (!is_new) continue;
        buf_printf(&text, "%s%s", between, all->of[i].user);
        between = ", ";
    }
    add_word(w, text.s);
}

static void draw_words(const struct panel *p, int y) {
    struct words w = {.p = p, .x = p->x, .y = y};
    const struct top_figures *f = &p->f;
    add_number(&w, "", f->sm_mhz, " MHz");
    add_number(&w, "P", f->pstate, "");
    add_number(&w, "fan ", f->fan * 100, "%");
    add_processes(&w);
    add_number(&w, "memory ", f->memory_temp_c, p->c->has_utf8 ? "°C" : "C");
    add_number(&w, "SM ", f->sm_active * 100, "%");
    add_number(&w, "tensor ", f->tensor_active * 100, "%");
    add_number(&w, "DRAM ", f->dram_active * 100, "%");
    add_rate(&w, "PCIe", f->rx_bps, f->tx_bps);
}

/* ---- frame and instances ---- */

static void draw_frame(const struct panel *p, bool is_selected) {
    struct canvas *c = p->c;
    int left = p->x - 2, top = p->y - 1, width = p->width + 4;
    uint32_t style = !p->f.is_well ? STYLE_BAD : is_selected ? STYLE_KEY : STYLE_FRAME;
    canvas_box(c, left, top, width, p->height, style);
    char text[160];
    snprintf(text, sizeof text, "%s%d ", is_selected ? (c->has_utf8 ? " ▶ " : " > ") : " ", p->gpu->inventory.index);
    int x = left + 1 + canvas_text(c, left + 1, top, width - 2, text, STYLE_TITLE);
    snprintf(text, sizeof text, "%.100s ", view_short_name(p->gpu));
    x += canvas_text(c, x, top, (width - 4) / 2, text, STYLE_PLAIN);
    if (*p->f.note && p->f.is_well) {
        snprintf(text, sizeof text, " %.150s ", p->f.note);
        int n = text_width(text), room = left + width - 2 - x;
        if (n > room) n = room;
        canvas_text(c, left + width - 2 - n, top, n, text,
                    p->f.note_style == STYLE_DIM ? STYLE_PLAIN : p->f.note_style);
    }
}

static void draw_span(const struct panel *p) {
    int chart_w = p->width - (LABEL + meter_width(p) + 1 + text_width_of(p) + 2);
    if (chart_w > CHART_MAX) chart_w = CHART_MAX;
    if (chart_w < 12) return;
    char age[32], text[48];
    number_age((int64_t)top_step_s(p->s, chart_w) * chart_w * 1000000000, age, sizeof age);
    snprintf(text, sizeof text, " %s ", age);
    canvas_right(p->c, p->x, p->y + p->height - 2, p->width, text, STYLE_DIM);
}

static void draw_instances(const struct panel *p, int y) {
    for (size_t i = 0; i < p->d->view.count; i++) {
        const struct view_device *one = &p->d->view.of[i];
        struct top_figures f;
        char text[64];
        if (!view_is_instance(one) || &p->d->view.of[one->inventory.parent] != p->gpu) continue;
        top_figures(&p->d->view, one, p->s->hot_c, &f);
        top_gauge_text(&f, GAUGE_MEMORY, p->c->has_utf8, true, text, sizeof text);
        canvas_printf(p->c, p->x, y, 18, STYLE_PLAIN, "%s %s", p->c->has_utf8 ? "└" : "-", view_short_name(one));
        canvas_meter(p->c, p->x + 19, y, p->width / 4, f.value[GAUGE_MEMORY] / f.full[GAUGE_MEMORY], NAN, STYLE_MEMORY);
        int x = p->x + 20 + p->width / 4;
        x += canvas_text(p->c, x, y, p->x + p->width - x, text, STYLE_PLAIN);
        if (!isnan(f.value[GAUGE_UTIL]))
            canvas_printf(p->c, x, y, p->x + p->width - x, STYLE_PLAIN, ", %.0f%% active", f.value[GAUGE_UTIL] * 100);
        y++;
    }
}

static void draw_unwell(const struct panel *p) {
    int y = p->y + (p->height - 3) / 3;
    canvas_text(p->c, p->x, y, p->width, p->f.note, p->f.note_style);
    canvas_text(p->c, p->x, y + 1, p->width, p->gpu->inventory.uuid, STYLE_DIM);
}

static void draw_panel(struct panel *p, bool is_selected) {
    top_figures(&p->d->view, p->gpu, p->s->hot_c, &p->f);
    draw_frame(p, is_selected);
    if (!p->f.is_well) {
        draw_unwell(p);
        return;
    }
    for (int g = 0; g < GAUGES; g++) draw_gauge(p, g);
    draw_words(p, p->y + GAUGES * p->band_h);
    draw_instances(p, p->y + GAUGES * p->band_h + 1);
    draw_span(p);
}

void top_draw_panels(struct canvas *c, const struct top_data *d, struct top_state *s, const struct top_layout *l) {
    int count = top_gpus(&d->view), rows = (count + l->columns - 1) / l->columns;
    s->gpu_scroll = top_scroll(s->gpu_scroll, s->gpu / l->columns, rows, l->rows);
    for (int i = s->gpu_scroll * l->columns; i < count && i < (s->gpu_scroll + l->rows) * l->columns; i++) {
        int col = i % l->columns, row = i / l->columns - s->gpu_scroll;
        int left = col * c->width / l->columns, right = (col + 1) * c->width / l->columns;
        struct panel p = {.c = c,
                          .d = d,
                          .s = s,
                          .gpu = top_gpu(&d->view, i),
                          .x = left + 2,
                          .y = l->gpu_y + row * l->panel_h + 1,
                          .width = right - left - 4,
                          .height = l->panel_h,
                          .band_h = l->band_h};
        draw_panel(&p, s->has_selection && s->focus == FOCUS_GPUS && i == s->gpu);
    }
}
