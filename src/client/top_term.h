/* The terminal: the only place that knows curses. Whatever ends the program, the terminal is given back as it was. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"
#include "client/top_canvas.h"

int top_term_open(struct error *e) MUST_CHECK;
void top_term_close(void);

void top_term_size(int *width, int *height);
bool top_term_has_track(void); /* enough colours for STYLE_TRACK as a background */

/* Shows what differs from the frame before. */
void top_term_show(const struct canvas *c);

/* Everything anew: the terminal was resized or another program wrote on it. */
void top_term_again(void);

/* The next key that was pressed (a character, or TOP_KEY_*), or -1. Never waits. */
int top_term_key(void);

/* Gives the terminal back, stops as Ctrl-Z means it, and takes it again afterwards. */
void top_term_suspend(void);
