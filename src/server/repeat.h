/* Repeating jobs: each of their times becomes a job of the queue, once, or is noted as missed or left out, once. The decision
 * is model/repeat's; it lies in the state file in the same transaction as the job that it makes, together with the mark up to
 * which all times are decided. So a server may be killed at any instruction and started anew at any time, and a clock may be
 * set, without a time being run twice or forgotten. Belongs to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "server/queue.h"
#include "server/repeat_store.h"
#include "server/state.h"

struct repeats;

struct repeats_setup {
    struct loop *loop;
    struct state *state;
    struct queue *queue;
    queue_event_fn on_event; /* may be NULL */
    void *ctx;
};
/* While state_run is still allowed, and before queue_start: it takes from the queue what is its own. */
int repeats_new(const struct repeats_setup *setup, struct repeats **ret, struct error *e) MUST_CHECK;
void repeats_start(struct repeats *all);
void repeats_free(struct repeats *all); /* accepts NULL */

enum repeat_verb { REPEAT_DO_PAUSE, REPEAT_DO_RESUME, REPEAT_DO_RUN, REPEAT_DO_REMOVE };
/* After the commit, once, unless repeat_control fails: -ENOENT, -EACCES, -EBUSY. job: that REPEAT_DO_RUN made. */
typedef queue_submitted_fn repeat_done_fn;
int repeat_control(struct repeats *all, const struct queue_who *who, int64_t id, enum repeat_verb verb,
                   repeat_done_fn done, void *ctx, struct error *e) MUST_CHECK;

/* ---- changing one ---- */

/* What a document of some of a job's keys makes of one: the rest stays, a null takes a key away. It is its owner's to change. */
struct repeat_patched {
    struct buf document; /* the whole job, for its owner's eyes */
    struct buf record;   /* the same as a record, whose repeat has `edits` */
    struct buf times;    /* words of its repeat, without `edits` */
    struct buf changes;  /* a list of {key, from, to} */
    bool is_same;        /* nothing changes */
    bool is_job_new;     /* not only its times: the record must be sealed again */
    char node[64];       /* where it runs */
};
void repeat_patched_done(struct repeat_patched *p);
int repeat_patch(const struct repeats *all, const struct queue_who *who, int64_t id, const char *json, size_t len,
                 struct repeat_patched *ret, struct error *e) MUST_CHECK;

struct repeat_change {
    int64_t id;
    const struct buf *times;          /* words, as repeat_spec_write writes them; without `edits` */
    const struct wire_sealed *sealed; /* what it runs from now on; NULL: what it ran, under the same seal */
    enum queue_origin origin;         /* of the seal */
    const char *account;              /* the same; "": the node's socket */
    const char *ask;                  /* the key of who wants it; "": none */
    bool is_dry;                      /* nothing is changed: only says what would be */
};
/* Times that are decided stay as they are; those up to now belong to the old rule, those after it to the new one. -EAGAIN: one of
 * its times is due just now, and is decided first. `done` is called once, after the commit, unless this fails: with an object of
 * the rule and its next times. Who may is the caller's to ask (repeat_patch), but for whose seal it is. */
typedef void (*repeat_changed_fn)(void *ctx, int result, const struct buf *times, const struct error *e);
int repeat_change(struct repeats *all, const struct repeat_change *c, repeat_changed_fn done, void *ctx,
                  struct error *e) MUST_CHECK;

/* Whether there is one of this number. */
bool repeat_is_there(const struct repeats *all, int64_t id);

/* As objects of an open list, or one of them (id above 0), with what became of its last times. slots: as repeat_store_list
 * tells them. */
void repeats_json(const struct repeats *all, struct buf *b, int64_t id, const struct repeat_slot_row *slots,
                  size_t count);

/* The next five times of a wish, for somebody who is about to make it; on the store thread, since zones are files. Appends an
 * object. */
int repeat_preview(const struct repeat_spec *s, int64_t now_s, struct buf *b, struct error *e) MUST_CHECK;
