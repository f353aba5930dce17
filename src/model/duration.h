/* Lengths of time as people write them into labels and flags: 500ms, 30s, 1.5h, 7d, 1m30s. Units are ms, s, m, h and d, in falling
 * order, each once; a bare number is refused, because nobody knows what its writer meant. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DURATION_LEAST_NS 1000000LL                     /* 1ms */
#define DURATION_MOST_NS (366LL * 24 * 3600000000000LL) /* a leap year */
#define DURATION_TEXT 40

/* The sentence says what is wrong with it and how it would be right; it begins with the text in quotes. */
int duration_parse(const char *text, int64_t *ret_ns, struct error *e) MUST_CHECK;

/* As duration_parse takes it back: "1m30s", "500ms". Below a millisecond: cut. */
void duration_text(int64_t ns, char ret[DURATION_TEXT]);
