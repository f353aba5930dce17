/* JSON out: an append-only writer into a buf; commas come by themselves. Strings are escaped, bytes that are not
 * UTF-8 become U+FFFD, and a number that is not finite becomes null. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* How many bytes the UTF-8 character at s has; 0: it is none. s ends with a NUL. */
size_t json_utf8_len(const char *s);

/* The same of a character that a terminal shows and obeys in no way: no control character, of eight bits either, and none that turns
 * others round. 0: it is none of these, or no UTF-8. */
size_t json_shown_len(const char *s);
/* Takes away the character at its end of which only a part is there: the text was cut. */
void json_utf8_end(char *s);

void json_open(struct buf *b, char bracket);  /* '{' or '[' */
void json_close(struct buf *b, char bracket); /* '}' or ']' */
void json_key(struct buf *b, const char *key);
void json_str(struct buf *b, const char *s);
void json_num(struct buf *b, double v); /* the shortest form that reads back to the same double */
void json_int(struct buf *b, int64_t v);
void json_uint(struct buf *b, uint64_t v);
void json_bool(struct buf *b, bool v);
void json_nil(struct buf *b);

/* key and value at once */
void json_pair_str(struct buf *b, const char *key, const char *s);
void json_pair_num(struct buf *b, const char *key, double v);
void json_pair_int(struct buf *b, const char *key, int64_t v);
void json_pair_bool(struct buf *b, const char *key, bool v);
void json_pair_text(struct buf *b, const char *key, const char *text); /* null where it is NULL or empty */
void json_pair_time(struct buf *b, const char *key, int64_t real_ns);  /* unix seconds to the millisecond; else null */
