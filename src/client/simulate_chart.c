/* What is shown of a simulation over time: a curve below the other, on one scale. */
#include <math.h>
#include <stdio.h>

#include "client/simulate.h"

#define ROWS_WAIT 3
#define ROWS_BUSY 1

#define POINTS_MAX 512

/* The part of a column that a row shows, in eighths or as best ASCII can. */
static void put_glyph(double v, double most, int below, int rows, bool has_utf8, struct buf *b) {
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const marks[] = {" ", ".", ".", ".", ":", ":", ":", "#", "#"};
    double levels = most > 0 ? v / most * rows * 8 : 0;
    long eighth = lround(levels) - 8L * below;
    if (below == 0 && v > 0 && eighth < 1) eighth = 1; /* little is not nothing */
    if (eighth < 0) eighth = 0;
    if (eighth > 8) eighth = 8;
    buf_puts(b, (has_utf8 ? eighths : marks)[eighth]);
}

static void put_curve(const struct simulate_view *v, size_t at, int64_t until_ns, bool is_busy, double most,
                      size_t width, const struct screen *s, struct buf *b) {
    double curve[POINTS_MAX];
    char scale[24];
    simulate_curve(simulate_column(v, at), until_ns, is_busy, curve, width);
    int rows = is_busy ? ROWS_BUSY : ROWS_WAIT;
    for (int below = rows - 1; below >= 0; below--) {
        snprintf(scale, sizeof scale, "%.0f", most);
        buf_printf(b, "%-10s%6s %s", below == 0 ? simulate_column_name(v, at) : "",
                   below == rows - 1 ? scale
                   : below           ? ""
                                     : "0",
                   s->has_utf8 ? "▕" : "|");
        for (size_t i = 0; i < width; i++) put_glyph(curve[i], most, below, rows, s->has_utf8, b);
        while (b->len && b->s[b->len - 1] == ' ') b->s[--b->len] = 0;
        buf_putc(b, '\n');
    }
}

static double most_of(const struct simulate_view *v, int64_t until_ns, size_t width) {
    double most = 1, curve[POINTS_MAX];
    for (size_t i = 0; i < simulate_columns(v); i++) {
        simulate_curve(simulate_column(v, i), until_ns, false, curve, width);
        for (size_t k = 0; k < width; k++) most = fmax(most, curve[k]);
    }
    return ceil(most);
}

int64_t simulate_until_ns(const struct simulate_view *v) {
    double last_s = 1e-9;
    for (size_t i = 0; i < simulate_columns(v); i++) last_s = fmax(last_s, simulate_column(v, i)->makespan_s);
    return (int64_t)ceil(last_s * 1e9);
}

/* Where the time is: from nothing to the end of the slowest. */
static void put_axis(int64_t until_ns, size_t width, bool has_utf8, struct buf *b) {
    char text[32];
    simulate_span((double)until_ns / 1e9, text, sizeof text);
    buf_printf(b, "%17s%s", "", has_utf8 ? "└" : "+");
    for (size_t i = 0; i < width; i++) buf_puts(b, has_utf8 ? "─" : "-");
    buf_printf(b, "\n%18s0%*s\n", "", (int)width - 1, text);
}

void simulate_chart(const struct simulate_view *v, const struct screen *s, struct buf *b) {
    size_t width = s->width > 40 ? (size_t)s->width - 19 : 21;
    int64_t until_ns = simulate_until_ns(v);
    if (width > POINTS_MAX) width = POINTS_MAX;
    double most = most_of(v, until_ns, width);
    buf_puts(b, "\njobs that wait\n");
    for (size_t i = 0; i < simulate_columns(v); i++) put_curve(v, i, until_ns, false, most, width, s, b);
    put_axis(until_ns, width, s->has_utf8, b);
    buf_puts(b, "\nGPUs in use\n");
    most = v->setup.gpu ? v->setup.gpus : (double)v->setup.nodes * v->setup.gpus_per_node;
    for (size_t i = 0; i < simulate_columns(v); i++) put_curve(v, i, until_ns, true, most, width, s, b);
    put_axis(until_ns, width, s->has_utf8, b);
}
