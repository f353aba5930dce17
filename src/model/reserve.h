/* Reservations: GPUs of one machine kept for a user or a group of users, once or again and again. What is said here is when, and
 * which of two are in each other's way; who may and who uses them is asked elsewhere. Pure. Times are Unix seconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/recur.h"

#define RESERVE_LENGTH_MIN_S 60
#define RESERVE_LENGTH_MAX_S (31 * 86400)
#define RESERVE_AHEAD_MAX_S (366 * 86400) /* nobody looks further */
#define RESERVE_NEVER INT64_MAX

struct reserve {
    int64_t from_s, length_s; /* the first window; one that comes again has none before from_s */
    int64_t until_s;          /* no window begins at or after it; 0: without end */
    bool is_recurring;
    struct recur recur;
    struct zone zone; /* of a cron expression, and of an interval without an offset */
};

struct reserve_window {
    int64_t from_s, to_s;
};

void reserve_done(struct reserve *r);

/* The window that goes on then, or the next one. False: there is none any more. */
bool reserve_next(const struct reserve *r, int64_t at_s, struct reserve_window *ret);

/* What cannot be: too short, over, windows of its own that overlap, none within a year. The sentence begins with the key. was: what it
 * is to be instead of, NULL: nothing; one that has begun may become longer or shorter, but begins no earlier than it did. */
int reserve_check(const struct reserve *r, const struct reserve *was, int64_t now_s, struct error *e) MUST_CHECK;

/* Whether windows of two overlap from now on, within a year: *ret is the first of b that does. */
bool reserve_clash(const struct reserve *a, const struct reserve *b, int64_t now_s, struct reserve_window *ret);

/* Seconds of its windows that lie between the two. */
int64_t reserve_seconds(const struct reserve *r, int64_t from_s, int64_t to_s);

/* Whether a window still counts. Unused for so long since it began, and since it was last wanted or used (0: never), the rest of
 * it is given to everybody; who comes late has it again. unused_s 0: it always counts. */
bool reserve_stands(const struct reserve_window *w, int64_t last_use_s, int64_t unused_s, int64_t now_s);
