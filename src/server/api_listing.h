/* Jobs that the file has, as they are asked for by the API: read on the store thread, shown on the loop's. */
#pragma once

#include "model/job_match.h"
#include "server/api.h"
#include "server/queue_store.h"
#include "server/server.h"

struct item {
    struct queue_job_row row;
    struct buf texts; /* user, account, node, text, record: one behind the other */
    size_t at[5];
    size_t first_run, runs;
};

struct run_item {
    struct queue_run_row row;
    char *gpus;
};

struct listing {
    struct call *call;
    struct queue_ask ask;
    char user[64];
    struct item *item;
    struct run_item *run;
    size_t items, runs;
    struct job_match match; /* its texts are the two below */
    struct buf name, labels;
    int64_t seen; /* the last that was looked at, where more may follow; 0: that was all */
};

/* The query's `name` and `label`, in two bufs that were empty. */
int api_match(const struct call *c, struct buf *name, struct buf *labels, struct job_match *ret, struct error *e)
    MUST_CHECK;
#define API_NAME_HELP "Only jobs of this name; `*` is anything, `?` one character"
#define API_LABEL_HELP                                                                                                 \
    "Only jobs with this label, `KEY=VALUE`, or `KEY` for any value; several with commas between, all of them (`\\,` " \
    "is a "                                                                                                            \
    "comma)"

struct listing *listing_new(struct call *c); /* never NULL */
void listing_free(struct listing *l);
/* r: what was wrong before, which is passed on. Else `done` gets the listing, which it frees, and ends the call. */
int listing_submit(struct call *c, struct listing *l, state_done_fn done, int r, struct error *e) MUST_CHECK;
