/* Amounts as people type them: 500W, 1400MHz, 80C, 30m. The unit may be left out; a wrong one is refused. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* A number of `unit` ("W", "MHz", "C"), in any case of letters; 80°C is 80C. `flag` names it in the error. */
int amount_parse(const char *flag, const char *text, const char *unit, double *ret, struct error *e) MUST_CHECK;

/* A time in ms, s, m, h or d; a bare number is seconds. The error names the range. */
int amount_time(const char *flag, const char *text, int64_t min_ms, int64_t max_ms, int64_t *ret_ms, struct error *e)
    MUST_CHECK;
