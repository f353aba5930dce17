/* Points in time as programs write them: ISO 8601 with its zone, 2026-11-15T18:30Z or 2026-11-15T18:30:05+01:00. Without a
 * zone it is refused: whoever reads it may live in another one. Pure: no clock, no time zone of this machine. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* From 1970 to 2199. The sentence begins with the text in quotes. */
int moment_parse(const char *text, int64_t *ret_ns, struct error *e) MUST_CHECK;

#define MOMENT_MOST_S 7258118400LL /* the beginning of 2200 */
