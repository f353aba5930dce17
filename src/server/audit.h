/* The audit log: one row for every mutating call, refused ones too: who, by what means, from where, what, and how it
 * ended. The row of somebody who is signed in is written before what he changes (audit_begin): no crash leaves a change
 * without its row, only a row whose status is 0. The newest 100,000 are kept, and 10,000 of those who were not signed in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/state.h"

struct audit_line {
    int64_t time;
    const char *user, *means, *address, *method, *path;
    int status;
};

/* How many calls of nobody are written: whoever is not signed in must not push the lines of others out, nor fill the disk. A
 * few a second; the rest is counted. Pure. */
struct audit_gate {
    int64_t at_s;
    int room;
    int64_t left_out;
};
/* Whether this one is written. *ret_left_out: then, how many before it were not. */
bool audit_gate(struct audit_gate *g, int64_t now_s, int64_t *ret_left_out);

/* Copies the line and writes it soon. */
void audit_add(struct state *s, const struct audit_line *line);

/* The same in two steps: with status 0 before whatever is submitted to the state after this, and how it ended. begin: NULL
 * when too much waits. end takes what begin gave. */
struct audit_open;
struct audit_open *audit_begin(struct state *s, const struct audit_line *line);
void audit_end(struct state *s, struct audit_open *open, int status);

/* On the store thread, now and then: reads the whole table. */
int audit_trim(struct sql *db, int keep, int keep_nobody, struct error *e) MUST_CHECK;
enum { AUDIT_KEEP = 100000, AUDIT_KEEP_NOBODY = 10000 };

enum { AUDIT_PAGE_MAX = 1000 };

/* On the store thread: the newest `limit` rows with ids below `before` (0: all), as a JSON array, and the id to go on
 * with (0: that was all). */
int audit_read(struct sql *db, int64_t before, int limit, struct buf *ret, int64_t *ret_next, struct error *e)
    MUST_CHECK;
