/* The rule of a time zone for the years after its table, as POSIX writes TZ: CET-1CEST,M3.5.0,M10.5.0/3. Only for zone.c. */
#pragma once

#include "model/zone.h"

/* "\nRULE\n", as it lies behind the table; no rule at all is good, too. False: it makes no sense. */
bool zone_rule_parse(const void *footer, size_t len, struct zone *z);
int32_t zone_rule_offset_s(const struct zone *z, int64_t unix_s);
bool zone_rule_next(const struct zone *z, int64_t after_s, int64_t *ret);
