/* A moment as people type it: 18:30, tomorrow 08:00, 2026-11-16 08:00, 2026-11-16T08:00:00Z, or Unix seconds. Without a zone
 * it is the caller's own time. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* 18:30 alone is the next time that the clock shows it. `flag` names it in the error. Nothing is said about moments that are
 * over: a deadline must not be, a beginning may. */
int when_parse(const char *flag, const char *text, int64_t now_ns, int64_t *ret_ns, struct error *e) MUST_CHECK;

enum { WHEN_TEXT = 40 };
/* "18:30" of today, "tomorrow 08:00", "Mon 16 Nov 08:00", with its year when that is another: in the caller's own time. */
void when_text(int64_t at_ns, int64_t now_ns, char ret[WHEN_TEXT]);
