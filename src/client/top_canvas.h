/* What a frame of `gpumgr top` is drawn on: a grid of cells, each one character and a style. Knows no terminal, so that
 * a test, `--once` and curses all see the same frame. Whatever is drawn beyond the edge is cut off. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum top_style {
    STYLE_PLAIN,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_TITLE, /* names of things */
    STYLE_FRAME, /* lines around things */
    STYLE_HEAD,  /* of a table */
    STYLE_KEY,   /* in the line of keys */
    STYLE_TRACK, /* the empty part of a meter */
    STYLE_GOOD,
    STYLE_WARN,
    STYLE_BAD,
    STYLE_ALARM, /* loud: a state that someone must see */
    STYLE_UTIL,
    STYLE_MEMORY,
    STYLE_TEMP,
    STYLE_POWER,
    STYLE_COUNT,
    STYLE_SELECTED = 0x40, /* added to any of them */
    STYLE_ON_TRACK = 0x80  /* likewise: within a meter */
};

struct top_cell {
    uint32_t glyph;
    uint32_t style;
};

struct canvas {
    int width, height;
    struct top_cell *cells;
    bool has_utf8;
    bool has_track; /* the terminal shows STYLE_TRACK as a background, so that a meter's empty part needs no glyph */
};

void canvas_init(struct canvas *c, int width, int height, bool has_utf8);
void canvas_done(struct canvas *c);
void canvas_resize(struct canvas *c, int width, int height);
void canvas_clear(struct canvas *c);

void canvas_put(struct canvas *c, int x, int y, uint32_t glyph, uint32_t style);
void canvas_fill(struct canvas *c, int x, int y, int width, uint32_t glyph, uint32_t style);

/* At most `width` columns of the text; a mark at the end says that something was cut. Returns the columns used. What the
 * grid cannot show (control characters, wide or broken ones, anything but ASCII where that is all there is) is '?'. */
int canvas_text(struct canvas *c, int x, int y, int width, const char *text, uint32_t style);
int canvas_printf(struct canvas *c, int x, int y, int width, uint32_t style, const char *fmt, ...) PRINTF(6, 7);

/* The same, ending at x + width. */
void canvas_right(struct canvas *c, int x, int y, int width, const char *text, uint32_t style);

/* Adds `style` to what is there: STYLE_SELECTED. */
void canvas_mark(struct canvas *c, int x, int y, int width, uint32_t style);

/* A frame with a title in its upper edge. */
void canvas_box(struct canvas *c, int x, int y, int width, int height, uint32_t style);

/* A bar filled to `ratio`; with a notch where `notch` (a ratio, NaN: none) is. NaN is an empty bar. */
void canvas_meter(struct canvas *c, int x, int y, int width, double ratio, double notch, uint32_t style);

/* Values from left to right, one a column, between lo and hi; NaN is a gap. `line`: values to be drawn as a thin line
 * where the chart leaves room (limits), or NULL. */
struct chart {
    const float *values, *line;
    int count; /* columns; they end at the right edge */
    double lo, hi;
    uint32_t style;
};
void canvas_chart(struct canvas *c, int x, int y, int width, int height, const struct chart *chart);

/* As text, a line a row, without trailing spaces. */
void canvas_print(const struct canvas *c, struct buf *out);
