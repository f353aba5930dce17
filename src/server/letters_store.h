/* Messages to those whom jobs name, as rows of the state file. On the store thread, or before it starts (state_run). */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "server/state_sql.h"

struct letter_row {
    int64_t id, job, made, tries; /* made: unix seconds */
    uint16_t word;                /* which of the job's notify */
    const char *way, *receiver;   /* "webhook" and its URL, "mail" and its address, "terminal", "command" */
    const char *user, *node;      /* the job's */
    const char *kind, *body;      /* kind: of the event; body: as it is sent */
};

int letters_store_add(struct sql *db, const struct letter_row *l, int64_t *ret_id, struct error *e) MUST_CHECK;
int letters_store_drop(struct sql *db, int64_t id, struct error *e) MUST_CHECK;
int letters_store_tried(struct sql *db, int64_t id, int64_t tries, struct error *e) MUST_CHECK;
int letters_store_read(struct sql *db, void (*each)(void *ctx, const struct letter_row *l), void *ctx, struct error *e)
    MUST_CHECK;

/* What the node needs of a job to know whom it speaks for. -ENOENT: the job is forgotten. */
struct letter_seal {
    uint32_t uid;
    char user[64];
    struct buf record, seal;
};
int letters_store_seal(struct sql *db, int64_t job, struct letter_seal *ret, struct error *e) MUST_CHECK;
