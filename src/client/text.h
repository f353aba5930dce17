/* Text in columns: widths as a terminal shows them, not as bytes. */
#pragma once

#include "base/buf.h"

/* Columns that UTF-8 text takes; every character of ours takes one. */
int text_width(const char *s);

/* The text, then spaces up to `width`. Longer text is left whole. */
void text_pad(struct buf *b, const char *s, int width);

/* At most `width` columns of it; where something was cut, the last column says so with '~'. */
void text_cut(struct buf *b, const char *s, int width);
