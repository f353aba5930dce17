/* Services and their revisions as rows of the state file. On the store thread, or before it starts. Times are wall clock
 * nanoseconds. */
#pragma once

#include <stdint.h>

#include "server/state_sql.h"

struct service_row {
    int64_t id, made_ns;
    uint32_t uid;
    uint8_t origin; /* enum queue_origin */
    const char *name, *user, *account, *node;
    const void *life; /* service_encode */
    size_t life_len;
};

struct service_revision_row {
    int64_t service, made_ns;
    uint32_t number;
    const char *by, *ask; /* who handed it in; by which key (queue_ask_text), "" by none */
    const void *record, *seal;
    size_t record_len, seal_len;
};

/* Makes or replaces it. */
int service_store_put(struct sql *db, const struct service_row *s, struct error *e) MUST_CHECK;
/* Its life alone; -ENOENT: it is not there. */
int service_store_life(struct sql *db, int64_t id, const void *life, size_t len, struct error *e) MUST_CHECK;
int service_store_revision(struct sql *db, const struct service_revision_row *r, struct error *e) MUST_CHECK;
/* Revisions below `before`, but for those two. */
int service_store_trim(struct sql *db, int64_t id, uint32_t before, uint32_t but, uint32_t nor, struct error *e)
    MUST_CHECK;
int service_store_drop(struct sql *db, int64_t id, struct error *e) MUST_CHECK;

struct service_reader {
    void *ctx;
    int (*service)(void *ctx, const struct service_row *s, struct error *e);
    int (*revision)(void *ctx, const struct service_revision_row *r, struct error *e);
};
/* All services, then all revisions; *ret_last: the largest number that was ever used. */
int service_store_read(struct sql *db, const struct service_reader *r, int64_t *ret_last, struct error *e) MUST_CHECK;
