/* Numbers as people expect them: 78.1 and not 78.099999999, because a reading is a whole number of steps. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* With as many decimals as the catalogue's scale implies, without trailing zeros. Scale 0 (no steps): six decimals,
 * none from a million up. Readable by JSON. */
void number_text(double value, double scale, char *ret, size_t room);

/* "1.5 TiB", "140.4 GiB", "512 MiB" */
void number_bytes(double bytes, char *ret, size_t room);

/* "850 ms", "12 s", "3 min", "5 h", "2 days" */
void number_age(int64_t ns, char *ret, size_t room);

/* 2026-11-15T04:22:34.123Z; 14:02:11 of today, or with its date when it is another day. */
void number_time_utc(int64_t real_ns, char *ret, size_t room);
void number_time_here(int64_t real_ns, int64_t now_real_ns, char *ret, size_t room);
