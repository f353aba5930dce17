/* Reservations as they are kept: in memory for every pass, in the state file before anybody hears that one was taken. Belongs to
 * the loop's thread. When they are is model/reserve; what the queue makes of them queue_reserve.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/reserve.h"
#include "server/state.h"

enum { RESERVES_MAX = 1000, RESERVES_NOTE_MAX = 200, RESERVES_NAME_MAX = 64 };

struct reservation {
    int64_t id, made_s;
    struct reserve when;
    const char *user, *group; /* for whom: one of them, the other is "" */
    const char *node, *gpus;  /* UUIDs with commas */
    const char *every, *zone; /* as they were given, or "" */
    const char *note, *made_by;
    const char *ask;          /* his key, by which it is known if the answer got lost; "": none */
    const char *edits;        /* keys by which it was changed, a line each, the newest first */
    bool is_stored;           /* a window counts when it is */
    bool is_leaving;          /* it is being taken back */
    struct reservation *next; /* what it is to become, while that is stored: in the way of others, too; or NULL */
    int64_t last_use_s;       /* somebody of them used or wanted it; 0: not since the server began */
    char *instead;            /* UUIDs of those that stand in for lost ones now, as in gpus; NULL: none */
    int64_t given_back_s;     /* the beginning of the window that was last given back */
};

struct reserves {
    struct reservation **of; /* by number */
    size_t count;
    int64_t next_id;
    int64_t began_s; /* before, nothing is known of who used what */
};

/* While state_run is still allowed. What was over a month ago is dropped. */
int reserves_load(struct reserves *r, struct state *s, int64_t now_s, struct error *e) MUST_CHECK;
void reserves_done(struct reserves *r);

/* The times of one, from what was given: every is a cron expression or an ISO 8601 repeating interval, or ""; zone a name of the
 * machine's time zones, or "". */
int reserves_parse(const char *every, const char *zone, struct reserve *ret, struct error *e) MUST_CHECK;

struct reservation *reserves_find(const struct reserves *r, int64_t id);
/* What this one asked for by that key before; NULL: nothing, or no key. */
struct reservation *reserves_asked(const struct reserves *r, const char *who, const char *ask);
/* A copy of what is given, with a number. */
struct reservation *reserves_add(struct reserves *r, const struct reservation *from);
void reserves_drop(struct reserves *r, int64_t id);

/* Begins to become what is given, of which it keeps a copy (v->next); in the end it is that, or what it was. ask: the key of who
 * wants it, or "". */
void reserves_change(struct reservation *v, const struct reservation *to, const char *ask);
void reserves_changed(struct reserves *r, int64_t id, bool is_good);
/* Whether it was changed by that key before. */
bool reserves_knows(const struct reservation *v, const char *ask);

bool reserves_has_gpu(const struct reservation *v, const char *uuid);
/* The same, but for those that stand in for lost ones. */
bool reserves_has_instead(const struct reservation *v, const char *uuid);
/* "ada", "group lab" */
void reserves_holder(const struct reservation *v, char *ret, size_t room);
/* Whether a user of the machine is of them. A group's members are remembered for a minute. */
bool reserves_is_for(const struct reservation *v, const char *user, int64_t now_s);
/* "2026-11-16 09:00 UTC" */
void reserves_time(int64_t at_s, char *ret, size_t room);

/* On the store thread. */
struct sql;
int reserves_store(struct sql *db, const struct reservation *v, struct error *e) MUST_CHECK;
/* The row of one that is there, and its newest key. -ENOENT: it is not. */
int reserves_store_change(struct sql *db, const struct reservation *v, const char *ask, struct error *e) MUST_CHECK;
int reserves_store_drop(struct sql *db, int64_t id, struct error *e) MUST_CHECK;
