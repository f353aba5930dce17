/* The task table: a file on tmpfs (include/gpumgr/tasks.h says how it lies there) that anyone may map, and the spool of what the
 * server has not taken yet. It outlives us: whoever is started next in the same boot goes on with it. Behind the part that
 * is documented lies a FIFO of the node's own events, ours alone. One writing thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/shm.h"
#include "gpumgr/tasks.h"
#include "model/event.h"

#define TABLE_SLOTS 8192
#define TABLE_EVENTS 256

struct table {
    struct shm shm;
    struct gpumgr_tasks *head;
    int64_t mark;     /* the newest given out */
    uint32_t next;    /* where to look for a free slot */
    uint64_t dropped; /* tasks written over */
};

/* Takes up the file at path, or makes a new one where there is none of this boot and layout. */
int table_open(struct table *t, const char *path, const char *boot_id, struct error *e) MUST_CHECK;
void table_close(struct table *t);

/* What stands in a slot, for whoever takes the table up; false: nothing whole. */
bool table_get(const struct table *t, uint32_t slot, struct gpumgr_task *ret);

/* Writes a slot with a new mark (boot clock, strictly growing), which k gets too. Readers are woken by table_tell. */
void table_put(struct table *t, uint32_t slot, struct gpumgr_task *k, int64_t now_ns);
/* The same task with other figures, which is no change to tell. */
void table_refresh(struct table *t, uint32_t slot, struct gpumgr_task *k);
void table_tell(struct table *t);

/* A slot for a new task: an empty one, else the oldest that ended. is_live says which may not be taken. -1: none. */
int32_t table_take(struct table *t, const bool *is_live);

/* The bit of a GPU; -1: there are too many. */
int table_gpu(struct table *t, const char *uuid, uint32_t gi, uint32_t ci);

/* Events, numbered by marks. table_event gives the first whose mark is greater; false: no more. */
void table_put_event(struct table *t, const struct event *ev, int64_t now_ns);
bool table_event(const struct table *t, int64_t after, int64_t *ret_mark, struct event *ret);
