/* A job that comes again: when, in which zone, how late a time may still be made good, and what happens when the job of the
 * time before has not ended. In a job's record it is a list of words, so that the owner's seal covers it:
 *
 *   cron=0 3 * * * | interval=R/.../P1D, zone=Europe/Berlin (or nothing: the server's own), late=10m, overlap=skip
 *
 * All four, in this order, and behind them edits=12 where it is not a new one but stands for repeat 12 from now on: one meaning,
 * one list of words. And what becomes of each of its times, as a pure step. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/job.h"
#include "model/recur.h"

#define REPEAT_LATE_USUAL_NS (600 * 1000000000LL)

/* What happens to a time whose predecessor's job is not over. */
enum repeat_overlap {
    REPEAT_SKIP,   /* it is left out */
    REPEAT_QUEUE,  /* its job waits until the other is over */
    REPEAT_CANCEL, /* the other is ended */
    REPEAT_OVERLAPS
};
const char *repeat_overlap_name(enum repeat_overlap o);

/* Texts are never NULL and point into the words; "": not given. */
struct repeat_spec {
    const char *cron, *interval, *zone;
    int64_t late_ns;
    enum repeat_overlap overlap;
    int64_t edits; /* the repeat that it changes; 0: it is a new one */
};

/* Appends the words; what they say must have passed repeat_spec_check. Blanks of an expression become one each. */
void repeat_spec_write(const struct repeat_spec *s, struct buf *b);
/* What repeat_spec_write wrote, and nothing else. */
int repeat_spec_read(const struct job_words *w, struct repeat_spec *ret, struct error *e) MUST_CHECK;
/* The sentence begins with the key: "repeat.cron: ...". recur may be NULL. */
int repeat_spec_check(const struct repeat_spec *s, struct recur *ret_recur, struct error *e) MUST_CHECK;
/* The job that carries it: what makes no sense for one that comes again. */
int repeat_spec_check_job(const struct job_spec *j, struct error *e) MUST_CHECK;
/* As an object, the one that a job file has under "repeat"; without `edits`, which is said once. */
void repeat_spec_json(struct buf *b, const struct repeat_spec *s);

/* ---- what becomes of its times ---- */

enum repeat_fate {
    REPEAT_RUN,     /* its job is made */
    REPEAT_MISSED,  /* nobody was there in time */
    REPEAT_SKIPPED, /* the job before is not over, or a later time is due as well */
    REPEAT_PAUSED,
    REPEAT_BY_HAND, /* no time of its own: somebody asked for it */
    REPEAT_FATES
};
const char *repeat_fate_name(enum repeat_fate f);

enum { REPEAT_STEP_MAX = 100, REPEAT_WAITING_MAX = 16 };

struct repeat_slot {
    int64_t at_s;
    enum repeat_fate fate;
    int64_t count; /* times that this stands for, at_s the last of them; more than 1 only for those missed long ago */
};

struct repeat_step {
    struct repeat_slot slot[REPEAT_STEP_MAX + 1]; /* in order; at most one runs, and it is the last */
    size_t count;
    int64_t mark_s; /* up to which all is decided now */
    bool runs;
};

struct repeat_now {
    int64_t mark_s; /* all times up to it are decided, for good */
    int64_t now_s;
    unsigned open; /* jobs of it that are not over */
    bool is_paused;
};

/* What is to be done with the times after the mark up to now: each comes out once, and with the mark that it returns none
 * comes out again, whatever the clock does. Times within the bound are made good: where jobs may wait for each other all
 * of them, one a step, else the last of them. count 0: nothing is due. */
void repeat_step(const struct repeat_spec *s, const struct recur *r, const struct zone *z, const struct repeat_now *at,
                 struct repeat_step *ret);

/* A clock that was set back by a little makes nothing happen again. One that was a day or more ahead was wrong: what it
 * made of times to come is forgotten, but for jobs that ran. */
bool repeat_clock_was_wrong(int64_t mark_s, int64_t now_s);
