/* Text for a terminal, in columns: widths as it shows them, not as bytes; and nothing that it would obey. */
#pragma once

#include "base/buf.h"

/* Columns that UTF-8 text takes; every character of ours takes one. */
int text_width(const char *s);

/* The first `len` bytes of it, as a terminal may have them: what it would obey instead of showing it is a question mark. Much of what
 * commands print was written by others. All of the below do the same. */
void text_put(struct buf *b, const char *s, size_t len);

/* The text, then spaces up to `width`. Longer text is left whole. */
void text_pad(struct buf *b, const char *s, int width);

/* All of it in lines of at most `width` columns, broken between words; a word that is longer than that is broken, too. Every
 * line but the first, which goes on where the text so far ends, begins with `indent` spaces. Ends with a newline. */
void text_wrap(struct buf *b, const char *s, int width, int indent);

/* At most `width` columns of it; where something was cut, the last column says so with '~'. */
void text_cut(struct buf *b, const char *s, int width);
