/* A time zone: how far its clocks are ahead of UTC at every moment. Made of the bytes of a TZif file (RFC 8536: versions 1 to
 * 4, with the rule in its footer for all years after the table), which somebody else has read. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ZONE_FILE_MAX (64u << 10) /* the largest of all known ones has 4 KiB */
#define ZONE_NAME_MAX 64          /* bytes, with its end */

/* When a rule changes the clocks: the day of a year, and the time of that day by the clocks before the change. */
struct zone_day {
    uint8_t kind; /* 'M': month, week (5: the last), weekday; 'J': 1 to 365, never 29 February; 'n': 0 to 365 */
    uint8_t month, week;
    uint16_t day;
    int32_t at_s;
};

/* The zero value is UTC. */
struct zone {
    int64_t *at;       /* moments at which the offset changes, rising ... */
    int32_t *offset_s; /* ... and what it is from then on */
    size_t count;
    int32_t first_s; /* before the first of them, or always */
    bool has_rule;   /* after the last of them: */
    int32_t standard_s, summer_s;
    struct zone_day begin, end; /* of summer time; the same offsets: there is none */
};
int zone_parse(const void *bytes, size_t len, struct zone *ret, struct error *e) MUST_CHECK;
void zone_done(struct zone *z);

/* Seconds ahead of UTC. */
int32_t zone_offset_s(const struct zone *z, int64_t unix_s);
/* The next moment after this one at which the offset changes; false: there is none. */
bool zone_next_change(const struct zone *z, int64_t after_s, int64_t *ret);

/* The moments at which clocks show a local time (seconds since 1970, as if it were UTC), in order: one; two where clocks are
 * set back over it; none where they are set forward over it, and then ret[0] is the moment at which they are. */
int zone_moments(const struct zone *z, int64_t local_s, int64_t ret[2]);

#define ZONE_TEXT 40
/* 2026-11-16T03:00:00+01:00: a moment by the clocks of a zone. */
void zone_text(const struct zone *z, int64_t unix_s, char ret[ZONE_TEXT]);

/* Europe/Berlin, UTC, America/Argentina/Ushuaia: something that can be looked for in a directory of zones and leads nowhere
 * else. */
bool zone_name_is_good(const char *name);
