/* Keys: what each does to what a person has chosen. Knows no terminal. */
#pragma once

#include "client/top_state.h"

enum { /* beyond all characters */
       TOP_KEY_UP = 0x110000,
       TOP_KEY_DOWN,
       TOP_KEY_LEFT,
       TOP_KEY_RIGHT,
       TOP_KEY_PAGE_UP,
       TOP_KEY_PAGE_DOWN,
       TOP_KEY_HOME,
       TOP_KEY_END,
       TOP_KEY_BACKSPACE,
       TOP_KEY_SORT,   /* F6 */
       TOP_KEY_FILTER, /* F4 */
       TOP_KEY_SIGNAL, /* F9 */
       TOP_KEY_HELP,   /* F1 */
       TOP_KEY_QUIT,   /* F10 */
       TOP_KEY_REDRAW  /* the picture on the terminal may be spoilt */
};

enum top_action { ACT_NONE, ACT_QUIT, ACT_SIGNAL, ACT_REDRAW };

/* ACT_SIGNAL: a person has confirmed top_signals[s->signal] for s->target. */
enum top_action top_key(struct top_state *s, const struct top_data *d, int key);

/* The help, a key and its meaning by turns; ended by NULL. */
extern const char *const top_key_help[];
