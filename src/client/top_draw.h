/* A frame of `gpumgr top`, drawn on a canvas: one function a part of the screen, each in a file of its own. */
#pragma once

#include "client/top_canvas.h"
#include "client/top_layout.h"
#include "client/top_state.h"

/* The whole. Scroll positions in the state follow the selections. */
void top_draw(struct canvas *c, const struct top_data *d, struct top_state *s);

void top_draw_header(struct canvas *c, const struct top_data *d, const struct top_state *s, int height);
void top_draw_footer(struct canvas *c, const struct top_data *d, const struct top_state *s, int y);
void top_draw_lines(struct canvas *c, const struct top_data *d, struct top_state *s, const struct top_layout *l);
void top_draw_panels(struct canvas *c, const struct top_data *d, struct top_state *s, const struct top_layout *l);
void top_draw_processes(struct canvas *c, const struct top_data *d, struct top_state *s, int y, int height);
void top_draw_events(struct canvas *c, const struct top_data *d, const struct top_state *s, int y, int height);
void top_draw_gpu(struct canvas *c, const struct top_data *d, struct top_state *s);
void top_draw_overlay(struct canvas *c, const struct top_data *d, const struct top_state *s);

/* Whether nothing of what is shown counts as current any more. */
bool top_is_stale(const struct top_data *d, int64_t now_ns);

/* The first of `count` entries to show in `room` lines, so that `selected` is among them. */
int top_scroll(int first, int selected, int count, int room);
