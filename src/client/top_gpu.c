/* Everything that is known of one GPU: what it is, what its guard does, and every metric of the catalogue that it has,
 * each with its last minutes. Counters show how fast they grow. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "client/text.h"
#include "client/top_draw.h"
#include "client/top_figures.h"
#include "model/guard_words.h"

enum { COLUMN_MIN = 66, LABEL = 30, VALUE = 11, SPARK_MAX = 120, PROCESSES_MIN = 6 };

static void metric_text(const struct metric *m, double value, bool has_utf8, char *ret, size_t room) {
    char number[48];
    switch (m->unit) {
    case UNIT_RATIO: snprintf(ret, room, "%.1f %%", value * 100); return;
    case UNIT_CELSIUS: snprintf(ret, room, has_utf8 ? "%.0f °C" : "%.0f C", value); return;
    case UNIT_WATTS: snprintf(ret, room, "%.1f W", value); return;
    case UNIT_JOULES: snprintf(ret, room, "%.2f kWh", value / 3.6e6); return;
    case UNIT_BYTES: number_bytes(value, ret, room); return;
    case UNIT_BYTES_PER_SECOND:
        number_bytes(value, number, sizeof number);
        snprintf(ret, room, "%s/s", number);
        return;
    case UNIT_HERTZ: snprintf(ret, room, "%.0f MHz", value / 1e6); return;
    case UNIT_SECONDS:
        if (m->kind == KIND_COUNTER)
            snprintf(ret, room, "%.1f s", value);
        else
            snprintf(ret, room, "%.2f ms", value * 1e3);
        return;
    case UNIT_BOOL: snprintf(ret, room, "%s", value != 0 ? "yes" : "no"); return;
    case UNIT_NUMBER: number_text(value, m->scale, ret, room); return;
    }
}

static void to_growth(float *values, int count) {
    for (int i = count - 1; i > 0; i--) values[i] -= values[i - 1];
    if (count) values[0] = NAN;
}

/* From the least to the most that is shown; ratios from 0, and a value that stands still lies low. Whether it moves. */
static bool range_of(const float *values, int count, const struct metric *m, double *lo, double *hi) {
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int i = 0; i < count; i++) {
        if (isnan(values[i])) continue;
        if (values[i] < *lo) *lo = values[i];
        if (values[i] > *hi) *hi = values[i];
    }
    bool moves = *hi > *lo;
    if (m->unit == UNIT_RATIO || m->unit == UNIT_BOOL) *lo = 0, *hi = 1;
    if (m->kind == KIND_COUNTER) *lo = 0;
    if (*hi <= *lo) *hi = *lo + 1;
    return moves;
}

/* "tensor half active": the catalogue's name without what all have and without the unit, which the value shows. */
static void label_text(const struct metric *m, char *ret, size_t room) {
    static const char *const ends[] = {"_total", "_bytes_per_second", "_bytes", "_seconds", "_ratio", "_celsius",
                                       "_watts", "_joules",           "_hertz"};
    const char *name = strncmp(m->name, "gpu_", 4) == 0 ? m->name + 4 : m->name;
    snprintf(ret, room, "%s", name);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t n = strlen(ret), k = strlen(ends[i]);
        if (n > k && strcmp(ret + n - k, ends[i]) == 0 && (i == 0 || m->unit != UNIT_NUMBER)) ret[n - k] = 0;
    }
    if (m->unit == UNIT_SECONDS && m->kind == KIND_COUNTER) {
        size_t n = strlen(ret);
        snprintf(ret + n, room - n, " time");
    }
    for (char *c = ret; *c; c++)
        if (*c == '_') *c = ' ';
}

static void draw_metric(struct canvas *c, const struct top_data *d, const struct top_state *s,
                        const struct view_device *gpu, int metric, int x, int y, int width) {
    const struct metric *m = &metrics[metric];
    char text[64];
    label_text(m, text, sizeof text);
    canvas_text(c, x, y, LABEL, text, STYLE_PLAIN);
    metric_text(m, gpu->latest.of[metric].value, c->has_utf8, text, sizeof text);
    bool is_set = m->unit == UNIT_BOOL && gpu->latest.of[metric].value != 0;
    canvas_right(c, x + LABEL + 1, y, VALUE, text, is_set ? STYLE_WARN : STYLE_BOLD);
    int chart_x = x + LABEL + 1 + VALUE + 1, chart_w = x + width - chart_x;
    if (chart_w > SPARK_MAX) chart_w = SPARK_MAX;
    if (chart_w < 4) return;
    float values[SPARK_MAX];
    double lo, hi;
    history_series(history_find(&d->history, gpu->inventory.uuid), metric, d->view.boot_ns / 1000000000,
                   top_step_s(s, chart_w), values, chart_w);
    if (m->kind == KIND_COUNTER) to_growth(values, chart_w);
    bool moves = range_of(values, chart_w, m, &lo, &hi);
    canvas_chart(
        c, chart_x, y, chart_w, 1,
        &(struct chart){
            .values = values, .count = chart_w, .lo = lo, .hi = hi, .style = moves ? STYLE_UTIL : STYLE_FRAME});
}

/* ---- who it is ---- */

static int draw_identity(struct canvas *c, const struct top_data *d, const struct top_state *s,
                         const struct view_device *gpu, int y) {
    const struct inventory *i = &gpu->inventory;
    const char *dot = c->has_utf8 ? " · " : ", ";
    struct top_figures f;
    AUTO(buf_done) struct buf b = {0};
    top_figures(&d->view, gpu, s->hot_c, &f);
    canvas_fill(c, 0, y, c->width, c->has_utf8 ? 0x2500 : '-', STYLE_FRAME);
    int x = 2 + canvas_printf(c, 2, y, 12, STYLE_TITLE, " GPU %d ", i->index);
    x += canvas_printf(c, x, y, c->width / 2, STYLE_BOLD, "%s ", i->name);
    if (*f.note) canvas_printf(c, x + 2, y, c->width - x - 4, f.note_style, " %s ", f.note);
    buf_printf(&b, "%s", i->uuid);
    if (*i->pci) buf_printf(&b, "%s%s", dot, i->pci);
    if (*i->serial) buf_printf(&b, "%sserial %s", dot, i->serial);
    if (*i->vbios) buf_printf(&b, "%sVBIOS %s", dot, i->vbios);
    if (*i->architecture) buf_printf(&b, "%s%s", dot, i->architecture);
    canvas_text(c, 1, y + 1, c->width - 2, b.s, STYLE_DIM);
    const struct ring_guard *g = &gpu->guard;
    if (!gpu->has_guard) return y + 2;
    buf_clear(&b);
    buf_printf(&b, "guard %s by %s", guard_mode_word(g), guard_lever_words(g));
    if (g->lever != GUARD_BY_NONE && isfinite(g->limit) && isfinite(g->baseline))
        buf_printf(&b, ", limit %.0f of %.0f %s", g->limit, g->baseline, guard_unit(g));
    if (isfinite(g->target[GUARD_CORE]))
        buf_printf(&b, ", target %.0f %s", g->target[GUARD_CORE], c->has_utf8 ? "°C" : "C");
    buf_printf(&b, "%s%s", dot, guard_reason_words((enum guard_reason)g->reason));
    if (*g->why) buf_printf(&b, "%s%s", dot, g->why);
    canvas_text(c, 1, y + 2, c->width - 2, b.s, guard_is_low(g) ? STYLE_WARN : STYLE_PLAIN);
    return y + 3;
}

/* ---- the whole ---- */

static int list_metrics(const struct view *v, const struct view_device *gpu, int *ret) {
    int n = 0;
    for (int m = 0; m < METRIC_COUNT; m++)
        if (latest_has(&gpu->latest, m, v->boot_ns)) ret[n++] = m;
    return n;
}

void top_draw_gpu(struct canvas *c, const struct top_data *d, struct top_state *s) {
    const struct view_device *gpu = top_gpu(&d->view, s->gpu);
    int of[METRIC_COUNT], y, columns = c->width / COLUMN_MIN, rows, shown;
    if (!gpu) return;
    if (columns < 1) columns = 1;
    if (columns > 4) columns = 4;
    int count = list_metrics(&d->view, gpu, of);
    y = draw_identity(c, d, s, gpu, 1);
    rows = (count + columns - 1) / columns;
    if (rows < 1) rows = 1;
    int room = c->height - 1 - y, processes = s->shown.count + 2;
    if (processes > room / 3) processes = room / 3;
    if (processes < PROCESSES_MIN && room - rows < processes) processes = 0;
    room -= processes + 1;
    shown = room < rows ? room : rows;
    s->metric_rows = count;
    if (s->metric >= count) s->metric = count ? count - 1 : 0;
    s->metric_scroll = top_scroll(s->metric_scroll, rows ? s->metric % rows : 0, rows, shown);
    canvas_fill(c, 0, y, c->width, c->has_utf8 ? 0x2500 : '-', STYLE_FRAME);
    canvas_printf(c, 2, y, c->width - 4, STYLE_TITLE, " %d metrics ", count);
    for (int i = 0; i < count; i++) {
        int row = i % rows - s->metric_scroll, left = i / rows * c->width / columns,
            right = (i / rows + 1) * c->width / columns;
        if (row < 0 || row >= shown) continue;
        draw_metric(c, d, s, gpu, of[i], left + 1, y + 1 + row, right - left - 3);
        if (i == s->metric) canvas_mark(c, left + 1, y + 1 + row, LABEL + 1 + VALUE, STYLE_SELECTED);
    }
    if (count)
        canvas_printf(c, 16, y, c->width - 18, STYLE_KEY, " %s: %s ", metrics[of[s->metric]].name,
                      metrics[of[s->metric]].help);
    if (processes) top_draw_processes(c, d, s, c->height - 1 - processes, processes);
}
