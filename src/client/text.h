/* Text in columns: widths as a terminal shows them, not as bytes. */
#pragma once

#include "base/buf.h"

/* Columns that UTF-8 text takes; every character of ours takes one. */
int text_width(const char *s);

/* The text, then spaces up to `width`. Longer text is left whole. */
void text_pad(struct buf *b, const char *s, int width);

/* All of it in lines of at most `width` columns, broken between words; a word that is longer than that is broken, too. Every
 * line but the first, which goes on where the text so far ends, begins with `indent` spaces. Ends with a newline. */
void text_wrap(struct buf *b, const char *s, int width, int indent);

/* At most `width` columns of it; where something was cut, the last column says so with '~'. */
void text_cut(struct buf *b, const char *s, int width);
