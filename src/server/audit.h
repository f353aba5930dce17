/* The audit log: one row for every mutating call, refused ones too: who, by what means, from where, what, and how it
 * ended. Old rows go when there are 100,000. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "server/state.h"

struct audit_line {
    int64_t time;
    const char *user, *means, *address, *method, *path;
    int status;
};

/* Copies the line and writes it soon. */
void audit_add(struct state *s, const struct audit_line *line);

enum { AUDIT_PAGE_MAX = 1000 };

/* On the store thread: the newest `limit` rows with ids below `before` (0: all), as a JSON array, and the id to go on
 * with (0: that was all). */
int audit_read(struct sql *db, int64_t before, int limit, struct buf *ret, int64_t *ret_next, struct error *e)
    MUST_CHECK;
