/* What `run` and `submit` begin with: their flags, and the jobs that they say, as records and as the API's JSON. */
#pragma once

#include "client/command.h"
#include "client/job_flags.h"
#include "client/jobs_talk.h"
#include "client/settings_load.h"

struct job_wish {
    struct job_flags job;
    bool is_dry, json, is_detached, is_quiet;
    struct flags flags;
    struct loaded loaded;
    struct buf document; /* one job, or {"jobs": [...]} */
    struct jobs_batch batch;
    int (*amend)(void *ctx, struct buf *document, struct error *e); /* what more it says; or NULL */
    void *amend_ctx;
};

void job_wish_done(struct job_wish *w);

/* COMMAND_GOES_ON (client/begin.h), or the exit code to end with. more: flags of this command alone. */
int job_wish_begin(const struct command *self, int argc, char **argv, const struct flag *more, size_t more_count,
                   struct job_wish *w);

/* --dry-run: what the queue would do with it now. An exit code. */
int job_wish_plan(const struct command *self, const struct job_wish *w);

/* Whether what is handed in comes again: then its number is that of a repeat. */
bool job_wish_repeats(const struct job_wish *w);

/* Hands all of it in: an exit code; on EXIT_DONE *ret_first is the number of the first job. */
int job_wish_submit(const struct command *self, const struct job_wish *w, int64_t *ret_first);
