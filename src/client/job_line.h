/* What `run` and `wait` say on standard error while a job waits and runs: one line that is kept up to date on a terminal,
 * elsewhere a new line when something changed. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "client/job_id.h"
#include "client/job_news.h"

/* Why it waits, its place, when it will start and what would start it sooner, in one line; "" when it does not wait. */
void job_line_waiting(const struct job_id *id, const struct job_news *n, int64_t now_ns, struct buf *ret);
/* How it went: "job 17 done after 12 min on GPU 0,1: GPU 23 % busy while ...". */
void job_line_ended(const struct job_id *id, const struct job_news *n, struct buf *ret);

struct job_line {
    bool is_terminal, is_shown; /* shown: a line that the next one takes the place of */
    struct buf key;             /* what the last line was about */
};

void job_line_init(struct job_line *l);
void job_line_done(struct job_line *l);
/* key: where it is the same as before, only a terminal is told. */
void job_line_put(struct job_line *l, const char *text, const char *key);
void job_line_clear(struct job_line *l); /* makes room for what the job itself writes */
/* A line that stays. */
void job_line_note(struct job_line *l, const char *text);
