/* A line a GPU, for many GPUs or little height. Columns are as wide as the screen allows: first the names and the
 * sentence get their room, then the meters, then a sparkline beside each. */
#include <math.h>
#include <stdio.h>

#include "client/text.h"
#include "client/top_draw.h"
#include "client/top_figures.h"

enum {
    NAME_MIN = 6,
    NAME_MAX = 22,
    NOTE_MIN = 16,
    NOTE_MAX = 32,
    METER_MIN = 4,
    METER_MAX = 14,
    SPARK_MIN = 10,
    SPARK_MAX = 60
};

/* What a figure's text needs at most: "100%", "140/140G", "100/100°C!", "1000/1000W". */
static const int text_width_of[GAUGES] = {[GAUGE_UTIL] = 4, [GAUGE_MEMORY] = 9, [GAUGE_TEMP] = 8, [GAUGE_POWER] = 9};

struct widths {
    int name, note;
    int meter[GAUGES], spark[GAUGES];
    bool has_clock, has_fan, has_memory_temp;
};

static int longest_name(const struct view *v) {
    int most = NAME_MIN;
    for (size_t i = 0; i < v->count; i++) {
        int n = text_width(view_short_name(&v->of[i])) + (view_is_instance(&v->of[i]) ? 2 : 0);
        if (n > most) most = n;
    }
    return most > NAME_MAX ? NAME_MAX : most;
}

static bool any_fan(const struct view *v) {
    for (size_t i = 0; i < v->count; i++)
        if (latest_has(&v->of[i].latest, METRIC_FAN_SPEED, v->boot_ns)) return true;
    return false;
}

static int take(int *room, int most) {
    int n = *room < most ? *room : most;
    if (n < 0) n = 0;
    *room -= n;
    return n;
}

/* All of `width` and a space, or nothing. */
static bool take_whole(int *room, int width) {
    if (*room < width + 1) return false;
    *room -= width + 1;
    return true;
}

static struct widths widths_for(int width, const struct view *v) {
    static const enum top_gauge sparks[] = {GAUGE_UTIL, GAUGE_POWER, GAUGE_TEMP, GAUGE_MEMORY};
    struct widths w = {.name = NAME_MIN, .note = NOTE_MIN};
    int room = width - (1 + 2 + 1) - (NAME_MIN + 1) - NOTE_MIN; /* mark, index */
    for (int g = 0; g < GAUGES; g++) room -= text_width_of[g] + 1;
    for (int g = GAUGE_UTIL; g <= GAUGE_MEMORY; g++) w.meter[g] = take_whole(&room, METER_MIN) ? METER_MIN : 0;
    w.has_clock = take_whole(&room, 4);
    w.name += take(&room, longest_name(v) - NAME_MIN);
    for (int g = GAUGE_UTIL; g <= GAUGE_MEMORY; g++) w.meter[g] += w.meter[g] ? take(&room, 2) : 0;
    w.note += take(&room, NOTE_MAX - NOTE_MIN);
    w.has_fan = any_fan(v) && take_whole(&room, 4);
    for (size_t i = 0; i < ARRAY_LEN(sparks); i++) w.spark[sparks[i]] = take_whole(&room, SPARK_MIN) ? SPARK_MIN : 0;
    w.has_memory_temp = take_whole(&room, 5);
    for (int g = GAUGE_TEMP; g <= GAUGE_POWER; g++) w.meter[g] = take_whole(&room, METER_MIN + 2) ? METER_MIN + 2 : 0;
    for (int g = 0; g < GAUGES; g++) w.meter[g] += w.meter[g] ? take(&room, METER_MAX - w.meter[g]) : 0;
    for (int g = 0, share = room / GAUGES; g < GAUGES; g++) {
        int more = w.spark[g] + share > SPARK_MAX ? SPARK_MAX - w.spark[g] : share;
        w.spark[g] += w.spark[g] ? take(&room, more) : 0;
    }
    w.note += take(&room, room);
    return w;
}

static int gauge_width(const struct widths *w, int g) {
    return (w->meter[g] ? w->meter[g] + 1 : 0) + text_width_of[g] + (w->spark[g] ? w->spark[g] + 1 : 0);
}

static void draw_head(struct canvas *c, const struct widths *w, int y) {
    static const char *const titles[GAUGES] = {"UTIL", "MEMORY", "TEMP", "POWER"};
    canvas_fill(c, 0, y, c->width, ' ', STYLE_HEAD);
    canvas_text(c, 0, y, 3, "GPU", STYLE_HEAD);
    int x = 4;
    canvas_text(c, x, y, w->name, "MODEL", STYLE_HEAD);
    x += w->name + 1;
    for (int g = 0; g < GAUGES; g++) {
        canvas_text(c, x + (w->meter[g] ? 0 : text_width_of[g] - (int)text_width(titles[g])), y, 8, titles[g],
                    STYLE_HEAD);
        x += gauge_width(w, g) + 1;
    }
    if (w->has_memory_temp) canvas_right(c, x, y, 5, "MTEMP", STYLE_HEAD), x += 6;
    if (w->has_clock) canvas_right(c, x, y, 4, "MHZ", STYLE_HEAD), x += 5;
    if (w->has_fan) canvas_right(c, x, y, 4, "FAN", STYLE_HEAD), x += 5;
    canvas_text(c, x, y, w->note, "NOTE", STYLE_HEAD);
}

struct line {
    struct canvas *c;
    const struct top_data *d;
    const struct top_state *s;
    const struct view_device *gpu;
    const struct widths *w;
    struct top_figures f;
    int y;
};

static void draw_gauge(const struct line *l, int g, int x) {
    char text[48];
    struct canvas *c = l->c;
    const struct top_figures *f = &l->f;
    int meter = l->w->meter[g], spark = l->w->spark[g];
    if (meter) {
        canvas_meter(c, x, l->y, meter, f->value[g] / f->full[g], f->notch[g], f->style[g]);
        x += meter + 1;
    }
    top_gauge_text(f, (enum top_gauge)g, c->has_utf8, false, text, sizeof text);
    bool is_marked = f->style[g] == STYLE_WARN || f->style[g] == STYLE_BAD;
    canvas_right(c, x, l->y, text_width_of[g], text, is_marked ? f->style[g] : STYLE_PLAIN);
    x += text_width_of[g] + 1;
    if (!spark) return;
    float values[SPARK_MAX];
    history_series(history_find(&l->d->history, l->gpu->inventory.uuid), f->metric[g], l->d->view.boot_ns / 1000000000,
                   top_step_s(l->s, spark), values, spark);
    double lo = g == GAUGE_TEMP ? 20 : 0;
    canvas_chart(c, x, l->y, spark, 1,
                 &(struct chart){.values = values, .count = spark, .lo = lo, .hi = f->full[g], .style = f->style[g]});
}

static void draw_number(struct canvas *c, int x, int y, int width, double value, const char *unit) {
    char text[32];
    if (isnan(value)) return;
    snprintf(text, sizeof text, "%.0f%s", value, unit);
    canvas_right(c, x, y, width, text, STYLE_PLAIN);
}

static void draw_line(struct line *l) {
    struct canvas *c = l->c;
    const struct widths *w = l->w;
    struct top_figures *f = &l->f;
    char name[96];
    bool is_instance = view_is_instance(l->gpu);
    int y = l->y, x = 4 + w->name + 1;
    top_figures(&l->d->view, l->gpu, l->s->hot_c, f);
    if (!is_instance) canvas_printf(c, 1, y, 2, STYLE_BOLD, "%2d", l->gpu->inventory.index);
    snprintf(name, sizeof name, "%s%.80s", is_instance ? (c->has_utf8 ? "└ " : "- ") : "", view_short_name(l->gpu));
    canvas_text(c, 4, y, w->name, name, is_instance ? STYLE_DIM : STYLE_PLAIN);
    if (!f->is_well) { /* figures that are not there leave their room to what is wrong */
        canvas_text(c, x, y, c->width - x, f->note, f->note_style);
        return;
    }
    for (int g = 0; g < GAUGES; g++) {
        if (!is_instance || !isnan(f->value[g])) draw_gauge(l, g, x);
        x += gauge_width(w, g) + 1;
    }
    if (w->has_memory_temp) draw_number(c, x, y, 5, f->memory_temp_c, c->has_utf8 ? "°C" : "C"), x += 6;
    if (w->has_clock) draw_number(c, x, y, 4, f->sm_mhz, ""), x += 5;
    if (w->has_fan) draw_number(c, x, y, 4, f->fan * 100, "%"), x += 5;
    canvas_text(c, x, y, c->width - x, w->note < NOTE_MAX ? f->brief : f->note, f->note_style);
}

void top_draw_lines(struct canvas *c, const struct top_data *d, struct top_state *s, const struct top_layout *l) {
    struct widths w = widths_for(c->width, &d->view);
    const struct view_device *order[DEVICE_MAX];
    int count = 0, selected = 0, room = l->gpu_h - 1, place = 0;
    for (size_t i = 0; i < d->view.count && count < DEVICE_MAX; i++) {
        if (view_is_instance(&d->view.of[i])) continue;
        if (place++ == s->gpu) selected = count;
        order[count++] = &d->view.of[i];
        for (size_t k = 0; k < d->view.count && count < DEVICE_MAX; k++)
            if (d->view.of[k].inventory.parent == (int32_t)i) order[count++] = &d->view.of[k];
    }
    draw_head(c, &w, l->gpu_y);
    s->gpu_scroll = top_scroll(s->gpu_scroll, selected, count, room);
    for (int i = 0; i < room && s->gpu_scroll + i < count; i++) {
        int at = s->gpu_scroll + i, y = l->gpu_y + 1 + i;
        draw_line(&(struct line){.c = c, .d = d, .s = s, .gpu = order[at], .w = &w, .y = y});
        if (at != selected || !s->has_selection || s->focus != FOCUS_GPUS) continue;
        canvas_put(c, 0, y, c->has_utf8 ? 0x25b6 : '>', STYLE_KEY);
        canvas_mark(c, 0, y, 4 + w.name, STYLE_SELECTED);
    }
    if (count <= room) return;
    char text[48];
    snprintf(text, sizeof text, "%d to %d of %d ", s->gpu_scroll + 1, s->gpu_scroll + room, count);
    canvas_fill(c, c->width - 17, l->gpu_y, 17, ' ', STYLE_HEAD);
    canvas_right(c, 0, l->gpu_y, c->width, text, STYLE_HEAD);
}
