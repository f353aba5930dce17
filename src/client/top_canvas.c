#include "client/top_canvas.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include "base/json.h"

void canvas_resize(struct canvas *c, int width, int height) {
    if (width < 1) width = 1;
    if (height < 1) height = 1;
    if (c->cells && c->width == width && c->height == height) return;
    free(c->cells);
    c->cells = calloc((size_t)width * (size_t)height, sizeof *c->cells);
    if (!c->cells) abort();
    c->width = width;
    c->height = height;
    canvas_clear(c);
}

void canvas_init(struct canvas *c, int width, int height, bool has_utf8) {
    *c = (struct canvas){.has_utf8 = has_utf8};
    canvas_resize(c, width, height);
}

void canvas_done(struct canvas *c) {
    free(c->cells);
    *c = (struct canvas){0};
}

void canvas_clear(struct canvas *c) {
    for (int i = 0; i < c->width * c->height; i++) c->cells[i] = (struct top_cell){.glyph = ' '};
}

void canvas_put(struct canvas *c, int x, int y, uint32_t glyph, uint32_t style) {
    if (x < 0 || y < 0 || x >= c->width || y >= c->height) return;
    c->cells[y * c->width + x] = (struct top_cell){.glyph = glyph, .style = style};
}

void canvas_fill(struct canvas *c, int x, int y, int width, uint32_t glyph, uint32_t style) {
    for (int i = 0; i < width; i++) canvas_put(c, x + i, y, glyph, style);
}

void canvas_mark(struct canvas *c, int x, int y, int width, uint32_t style) {
    for (int i = x < 0 ? 0 : x; i < x + width && i < c->width; i++)
        if (y >= 0 && y < c->height) c->cells[y * c->width + i].style |= style;
}

/* ---- text ---- */

/* The next character of UTF-8 text as the grid may show it. */
static uint32_t next_glyph(const struct canvas *c, const char **text) {
    const unsigned char *s = (const unsigned char *)*text;
    size_t n = s[0] < 0x80 ? 1 : json_utf8_len(*text);
    *text += n ? n : 1;
    if (n == 1) return s[0] < 0x20 || s[0] == 0x7f ? '?' : s[0];
    if (n == 0 || !c->has_utf8) return '?';
    uint32_t glyph = n == 2 ? s[0] & 0x1fu : n == 3 ? s[0] & 0x0fu : s[0] & 0x07u;
    for (size_t i = 1; i < n; i++) glyph = glyph << 6 | (s[i] & 0x3fu);
    return wcwidth((wchar_t)glyph) == 1 ? glyph : '?';
}

int canvas_text(struct canvas *c, int x, int y, int width, const char *text, uint32_t style) {
    int n = 0;
    for (; *text && n < width; n++) canvas_put(c, x + n, y, next_glyph(c, &text), style);
    if (*text && n > 0) canvas_put(c, x + n - 1, y, c->has_utf8 ? 0x2026 : '~', style);
    return n;
}

int canvas_printf(struct canvas *c, int x, int y, int width, uint32_t style, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return canvas_text(c, x, y, width, text, style);
}

void canvas_right(struct canvas *c, int x, int y, int width, const char *text, uint32_t style) {
    const char *s = text;
    int n = 0;
    while (*s) {
        next_glyph(c, &s);
        n++;
    }
    if (n > width) n = width;
    canvas_text(c, x + width - n, y, n, text, style);
}

/* ---- shapes ---- */

void canvas_box(struct canvas *c, int x, int y, int width, int height, uint32_t style) {
    static const uint32_t round[] = {0x256d, 0x256e, 0x2570, 0x256f, 0x2500, 0x2502},
                          plain[] = {'+', '+', '+', '+', '-', '|'};
    const uint32_t *g = c->has_utf8 ? round : plain;
    canvas_fill(c, x + 1, y, width - 2, g[4], style);
    canvas_fill(c, x + 1, y + height - 1, width - 2, g[4], style);
    for (int i = 1; i < height - 1; i++) {
        canvas_put(c, x, y + i, g[5], style);
        canvas_fill(c, x + 1, y + i, width - 2, ' ', STYLE_PLAIN);
        canvas_put(c, x + width - 1, y + i, g[5], style);
    }
    canvas_put(c, x, y, g[0], style);
    canvas_put(c, x + width - 1, y, g[1], style);
    canvas_put(c, x, y + height - 1, g[2], style);
    canvas_put(c, x + width - 1, y + height - 1, g[3], style);
}

void canvas_meter(struct canvas *c, int x, int y, int width, double ratio, double notch, uint32_t style) {
    if (width <= 0) return;
    if (isnan(ratio) || ratio < 0) ratio = 0;
    if (ratio > 1) ratio = 1;
    int eighths = (int)(ratio * width * 8 + 0.5), full = eighths / 8, part = eighths % 8;
    if (!c->has_utf8) full = (int)(ratio * width + 0.5), part = 0;
    if (!full && !part && ratio > 0) part = c->has_utf8;
    for (int i = 0; i < width; i++) {
        if (i < full)
            canvas_put(c, x + i, y, c->has_utf8 ? 0x2588 : '#', style);
        else if (i == full && part)
            canvas_put(c, x + i, y, 0x2590u - (uint32_t)part, style | STYLE_ON_TRACK);
        else
            canvas_put(c, x + i, y, c->has_track ? ' ' : c->has_utf8 ? 0x2591 : '.', STYLE_TRACK);
    }
    if (isnan(notch) || notch < 0 || notch > 1) return;
    int at = (int)(notch * width);
    if (at >= width) at = width - 1;
    canvas_put(c, x + at, y, c->has_utf8 ? 0x2503 : '|', (uint32_t)STYLE_WARN | STYLE_ON_TRACK);
}

static int eighths_of(const struct chart *chart, double value, int height) {
    double share = chart->hi > chart->lo ? (value - chart->lo) / (chart->hi - chart->lo) : 0;
    if (share < 0) share = 0;
    if (share > 1) share = 1;
    int n = (int)(share * height * 8 + 0.5);
    return n < 1 ? 1 : n; /* the least there is says: this was read */
}

void canvas_chart(struct canvas *c, int x, int y, int width, int height, const struct chart *chart) {
    static const char levels[] = " _.-:=+*#";
    int shown = chart->count < width ? chart->count : width, first = chart->count - shown;
    for (int i = 0; i < shown; i++) {
        float value = chart->values[first + i];
        int col = x + width - shown + i, top = isnan(value) ? 0 : eighths_of(chart, value, height);
        for (int row = 0; row < height; row++) {
            int n = top - row * 8, at = y + height - 1 - row;
            if (n <= 0) break;
            if (n > 8) n = 8;
            canvas_put(c, col, at, c->has_utf8 ? 0x2580u + (uint32_t)n : (uint32_t)levels[n], chart->style);
        }
        if (!chart->line || isnan(chart->line[first + i]) || height < 2) continue;
        int level = eighths_of(chart, chart->line[first + i], height), row = (level - 1) / 8;
        if (row * 8 >= top) canvas_put(c, col, y + height - 1 - row, c->has_utf8 ? 0x254c : '-', STYLE_DIM);
    }
}

/* ---- out ---- */

static void put_utf8(struct buf *out, uint32_t g) {
    if (g < 0x80) {
        buf_putc(out, (char)g);
    } else if (g < 0x800) {
        buf_putc(out, (char)(0xc0 | g >> 6));
        buf_putc(out, (char)(0x80 | (g & 0x3f)));
    } else if (g < 0x10000) {
        buf_putc(out, (char)(0xe0 | g >> 12));
        buf_putc(out, (char)(0x80 | (g >> 6 & 0x3f)));
        buf_putc(out, (char)(0x80 | (g & 0x3f)));
    } else {
        buf_putc(out, (char)(0xf0 | g >> 18));
        buf_putc(out, (char)(0x80 | (g >> 12 & 0x3f)));
        buf_putc(out, (char)(0x80 | (g >> 6 & 0x3f)));
        buf_putc(out, (char)(0x80 | (g & 0x3f)));
    }
}

void canvas_print(const struct canvas *c, struct buf *out) {
    for (int y = 0; y < c->height; y++) {
        const struct top_cell *row = &c->cells[y * c->width];
        int end = c->width;
        while (end > 0 && row[end - 1].glyph == ' ') end--;
        for (int x = 0; x < end; x++) put_utf8(out, row[x].glyph);
        buf_putc(out, '\n');
    }
}
