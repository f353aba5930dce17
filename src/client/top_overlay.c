/* What lies over the frame for a moment: help, a process in full, the question before a signal. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "client/text.h"
#include "client/top_draw.h"
#include "client/top_keys.h"

static void open_box(struct canvas *c, int width, int height, const char *title, int *x, int *y, uint32_t style) {
    if (width > c->width) width = c->width;
    if (height > c->height) height = c->height;
    *x = (c->width - width) / 2;
    *y = (c->height - height) / 2;
    canvas_box(c, *x, *y, width, height, style);
    canvas_printf(c, *x + 2, *y, width - 4, STYLE_TITLE, " %s ", title);
    *x += 2;
    *y += 1;
}

static void draw_help(struct canvas *c) {
    enum { KEYS = 14 };
    int rows = 0, x, y, width = c->width < 100 ? c->width : 100;
    while (top_key_help[rows * 2]) rows++;
    open_box(c, width, rows + 4, "gpumgr top", &x, &y, STYLE_KEY);
    for (int i = 0; i < rows && i < c->height - 2; i++) {
        canvas_text(c, x, y + i, KEYS, top_key_help[i * 2], STYLE_KEY);
        canvas_text(c, x + KEYS, y + i, width - 4 - KEYS, top_key_help[i * 2 + 1], STYLE_PLAIN);
    }
    canvas_text(c, x, y + rows + 1, width - 4, "any key closes this", STYLE_DIM);
}

/* Text in lines of `width`; returns how many. */
static int draw_wrapped(struct canvas *c, int x, int y, int width, int most, const char *text, uint32_t style) {
    int lines = 0;
    for (size_t n = strlen(text), at = 0; at < n && lines < most; lines++) {
        char line[256];
        size_t take = n - at < (size_t)width ? n - at : (size_t)width;
        if (take > sizeof line - 1) take = sizeof line - 1;
        snprintf(line, sizeof line, "%.*s", (int)take, text + at);
        canvas_text(c, x, y + lines, width, line, style);
        at += take;
    }
    return lines;
}

static void draw_process(struct canvas *c, const struct top_state *s) {
    if (s->process >= s->shown.count) return;
    const struct top_process *p = &s->shown.of[s->process];
    char title[64], time[32], memory[32] = "?", host[32] = "?";
    int x, y, width = c->width < 100 ? c->width : 100;
    snprintf(title, sizeof title, "process %u", p->pid);
    open_box(c, width, 12, title, &x, &y, STYLE_KEY);
    top_time_text(p->running_s, time, sizeof time);
    if (p->memory_bytes >= 0) number_bytes(p->memory_bytes, memory, sizeof memory);
    if (p->host_bytes >= 0) number_bytes(p->host_bytes, host, sizeof host);
    canvas_printf(c, x, y, width - 4, STYLE_PLAIN, "user %s, GPU %d, %s on the GPU, %s of host memory",
                  *p->user ? p->user : "?", p->gpu, memory, host);
    canvas_printf(c, x, y + 1, width - 4, STYLE_PLAIN, "running for %s%s%s", time, *p->container ? ", container " : "",
                  p->container);
    draw_wrapped(c, x, y + 3, width - 4, 6, p->command, STYLE_BOLD);
    canvas_text(c, x, y + 9, width - 4, "any key closes this", STYLE_DIM);
}

static void draw_signal(struct canvas *c, const struct top_state *s) {
    const struct top_process *p = &s->target;
    int x, y, width = c->width < 76 ? c->width : 76;
    open_box(c, width, 9, "send a signal", &x, &y, STYLE_BAD);
    canvas_printf(c, x, y + 1, width - 4, STYLE_BOLD, "%s to process %u of %s on GPU %d?", top_signals[s->signal].name,
                  p->pid, p->user, p->gpu);
    draw_wrapped(c, x, y + 2, width - 4, 2, p->command, STYLE_PLAIN);
    int at = x;
    for (int i = 0; i < top_signal_count; i++)
        at += canvas_text(c, at, y + 5, 10, top_signals[i].name + 3,
                          i == s->signal ? STYLE_KEY | STYLE_SELECTED : STYLE_DIM) +
              2;
    canvas_text(c, x, y + 6, width - 4, "y sends it   Tab another signal   any other key: no", STYLE_DIM);
}

void top_draw_overlay(struct canvas *c, const struct top_data *d, const struct top_state *s) {
    switch (s->overlay) {
    case OVERLAY_HELP: draw_help(c); break;
    case OVERLAY_PROCESS: draw_process(c, s); break;
    case OVERLAY_SIGNAL: draw_signal(c, s); break;
    case OVERLAY_FILTER:
    case OVERLAY_NONE: break;
    }
}
