/* The figures of one GPU that people look at first, and the one sentence about it that matters most. Pure: a device of a
 * view in, numbers and words out. NaN is what is not known. */
#pragma once

#include <stdbool.h>

#include "client/top_canvas.h"
#include "client/view.h"

/* The four that have a meter and a chart, in the order in which they are shown. */
enum top_gauge { GAUGE_UTIL, GAUGE_MEMORY, GAUGE_TEMP, GAUGE_POWER, GAUGES };

struct top_figures {
    double value[GAUGES]; /* ratio, bytes, degrees, watts */
    double full[GAUGES];  /* what a full meter stands for */
    double notch[GAUGES]; /* a mark below it, as a share: the limit that a guard holds; NaN: none */
    uint32_t style[GAUGES];
    int metric[GAUGES]; /* whose history its chart shows */
    double sm_mhz, memory_mhz, memory_temp_c, fan, pstate;
    double sm_active, tensor_active, dram_active; /* true activity, where the card counts it */
    double rx_bps, tx_bps;
    bool is_well, is_hot;
    uint32_t note_style;
    char note[200]; /* "LOST 12 s: ...", "held at 412 of 700 W: core hot", ...; empty when all is well */
    char brief[24]; /* the same in 16 columns: "held: core hot" */
};

/* hot_c: the threshold that was set, or NaN; a guard's own target goes before it. */
void top_figures(const struct view *v, const struct view_device *d, double hot_c, struct top_figures *ret);

/* "97%", "101/141G", "78/83C", "688/700W"; "-" where it is not known. Short, for a line, or longer, for a panel. */
void top_gauge_text(const struct top_figures *f, enum top_gauge g, bool has_utf8, bool is_long, char *ret, size_t room);

int top_gauge_metric(enum top_gauge g);     /* as a rule; top_figures.metric may know better */
int top_gauge_line(enum top_gauge g);       /* which other metric is a line in its chart, or -1 */
const char *top_gauge_word(enum top_gauge); /* "util" */
