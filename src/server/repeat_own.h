/* What the files repeat*.c share, and nobody else. */
#pragma once

#include "server/queue_spawn.h"
#include "server/repeat.h"

enum { REPEATS_MAX = 1000, REPEATS_OF_USER = 100 };

struct repeat {
    int64_t id, made_ns, mark_s;
    int64_t next_s; /* the first time after the mark; RECUR_NEVER: there is none any more */
    uint32_t uid;
    uint8_t origin;
    bool is_paused, is_busy; /* busy: a decision is on its way to the file */
    char *user, *account, *node;
    char zone_name[ZONE_NAME_MAX];
    struct buf record, seal;
    struct buf times;    /* words that count instead of the record's, once they were changed */
    struct job_spec job; /* points into the record or the times, as spec does */
    struct repeat_spec spec;
    struct recur recur;
    struct zone zone;
    char problem[160]; /* why nothing is made of it; "": all is well */
    int64_t *open;     /* jobs of it that are not over, in order */
    size_t open_count, open_cap;
};

struct repeats {
    struct loop *loop;
    struct state *state;
    struct queue *queue;
    struct queue_spawner spawner;
    queue_event_fn on_event;
    void *event_ctx;
    struct repeat **of;   /* by number */
    size_t count, coming; /* coming: on their way to the file */
    bool is_stopping;
};

/* Reads a zone's file; an empty name is the machine's own, whose name then lies in ret_name. On the store thread. */
int repeat_zone(const char *name, char ret_name[ZONE_NAME_MAX], struct zone *ret, struct error *e) MUST_CHECK;

struct repeat *repeat_find(const struct repeats *all, int64_t id);
/* From a row and a zone, which it takes. */
struct repeat *repeat_new(const struct repeat_row *row, struct zone *zone, struct error *e);
void repeat_free(struct repeat *r);
void repeat_put(struct repeats *all, struct repeat *r);
/* Stands for the old one of its number from now on, which is freed: with its jobs, and paused as that was. */
void repeat_replace(struct repeats *all, struct repeat *fresh);
void repeat_drop(struct repeats *all, int64_t id);
void repeat_open_add(struct repeat *r, int64_t job);
void repeat_mark(struct repeat *r, int64_t mark_s); /* and the next time after it */

/* Something to decide may have come up: looks, and looks again when that is stored. */
void repeat_look(struct repeats *all, struct repeat *r);
/* A job of it for the queue, behind the one before where the policy says so. */
struct queue_spawn repeat_job(const struct repeat *r);
/* With overlap=cancel all of its jobs but the last are told to end. */
void repeat_end_others(struct repeats *all, const struct repeat *r);
void repeat_tell(struct repeats *all, const struct repeat *r, enum event_severity severity, const char *kind,
                 const char *text);

/* repeat_json.c: its rule and its next five times, as an object. */
void repeat_times_json(struct buf *b, const struct repeat *r);

/* repeat_take.c */
bool repeat_is_own(const struct job_spec *s);
int repeat_take(void *ctx, const struct queue_submit *from, queue_submitted_fn done, void *done_ctx, struct error *e)
    MUST_CHECK;
