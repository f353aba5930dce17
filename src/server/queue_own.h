/* What the files queue*.c share, and nobody else. */
#pragma once

#include "base/clock.h"
#include "model/likes.h"
#include "model/plan.h"
#include "model/usage.h"
#include "net/loop.h"
#include "server/letters_store.h"
#include "server/queue.h"
#include "server/queue_gpu.h"
#include "server/reserves.h"

#define QUEUE_ENDED_NS (600 * NS_PER_S) /* jobs that are over stay in memory for so long */
#define QUEUE_ENDED_MAX 2000
#define QUEUE_JOBS_MAX 1000000

/* One element of an array; a plain job has one. */
struct queue_element {
    uint8_t state;    /* enum job_state; JOB_HELD: it is tried again after a pause */
    uint8_t failures; /* that its retries were used for */
    uint16_t attempt; /* of the last grant; 0: none yet */
};

struct queue_after {
    int64_t job;
    bool is_near;  /* of one that has no number yet: so many places from this one (model/job_after.h) */
    bool any;      /* however it ended */
    bool is_over;  /* it was, when the server began ... */
    uint8_t state; /* ... as this */
};

struct queue_run {
    struct queue_run *next; /* of its job */
    struct queue_job *job;
    struct wire_run of; /* as the node told it last */
    enum job_state state;
    uint8_t stop;    /* enum job_reason it was told to end for; JOB_BY_ITSELF: it was not */
    bool is_stored;  /* its grant is in the file: others may know of it */
    bool is_touched; /* the file says something else */
    uint16_t gpus;
    int64_t granted_ns, wait_ns;
    int64_t away_ns;         /* boot clock: since when its machine is away; 0: it is not */
    bool is_away_said;       /* as an event */
    struct wire_figures now; /* as the node told last; key.attempt 0: not yet. What lasts of it is in `of`, too */
    struct curve *curve;     /* what it used over its time (queue_curves.h), owned; NULL: nothing was told */
    bool is_curve_new;       /* the file has less of it */
    char uuid[][96];
};

struct queue_job {
    int64_t id, submitted_ns, ended_ns, asked_ns; /* asked: a lease's client was last heard of (boot clock) */
    uint32_t uid, elements, at_once, cursor;      /* cursor: no element before it waits */
    uint8_t origin, parent_kind;
    int64_t parent;
    int priority;
    bool yields;                          /* a service's, to a higher priority */
    bool is_held, is_touched, is_changed; /* touched: the file says something else; changed: the streams do */
    char *user, *account, *node, *text;
    void *record;
    size_t record_len;
    struct job_spec spec; /* points into the record */
    struct queue_element *element;
    uint32_t counts[JOB_STATE_COUNT]; /* of its elements */
    struct queue_after *after;        /* that are not over yet */
    unsigned after_count;
    struct queue_run *runs; /* that are not over */
    struct wire_run last;   /* the end that it is shown by (queue_job_take_end); key.attempt 0: none came */
    char *last_gpus;
    int64_t last_granted_ns, last_end_ns; /* last_end: of all of them */
    uint8_t last_weight;
    uint32_t *scope, scope_len, node_at, user_at; /* in the world's numbers (queue_world.c) ... */
    uint64_t scope_shape;                         /* ... as they were then */
};

struct queue_user {
    char *name;
    struct usage usage;
    int64_t turn_ns; /* as in struct plan_user; not stored: a turn that comes too early after a restart harms nobody */
};

struct queue_retry;     /* queue_parts.h */
struct queue_ask_open { /* a SEAL or LOG_ASK that waits for its answer */
    struct queue_ask_open *next;
    uint64_t request;
    int64_t until_ns;
    char node[64];
    queue_sealed_fn sealed;
    queue_log_fn log;
    queue_tried_fn tried;
    void *ctx;
};

struct flush;      /* queue_flush.c */
struct queue_wait; /* queue_wait.c */
struct queue_staged;
struct queue_over;
#define QUEUE_WAITS 64
struct letters; /* queue_letters.c */
struct queue_spawner;

struct queue {
    struct loop *loop;
    struct state *state;
    struct live *live;
    const struct settings *settings;
    char *link; /* where people find this server; NULL: not known */
    struct links *links;
    queue_event_fn on_event;
    void *event_ctx;
    struct queue_job **job; /* by number */
    size_t count, cap;
    struct queue_gpu *gpu;
    size_t gpus;
    uint64_t gpu_shape, live_shape; /* rises when a GPU comes or goes; the live shape it was made of */
    struct queue_user *user;        /* none ever leaves: its place is its number */
    size_t users;
    struct likes likes; /* how long jobs took */
    struct reserves reserves;
    struct plan *plan;
    struct letters *letters; /* for those whom jobs name (queue_letters.c) */
    struct queue_retry *retries;
    struct queue_ask_open *asks, **asks_last;
    size_t asks_open;
    uint64_t request;
    struct flush *flush; /* what the next commit carries; NULL: nothing yet */
    size_t touched;      /* jobs that may have something to write */
    bool is_posted, wants_pass, is_gpus_old, is_writing, is_stopping, is_draining;
    struct queue_staged *staged;           /* queue_submit.c */
    struct queue_wait *waits[QUEUE_WAITS]; /* by the job's number */
    size_t dependents;                     /* jobs that wait for another */
    struct queue_over *over;               /* queue_after.c */
    queue_health_fn on_health;
    void *health_ctx;
    struct plan *preempt;                                    /* memory of its own: model/preempt */
    const struct queue_spawner *spawner[QUEUE_PARENT_COUNT]; /* queue_spawn.h */
    int64_t pass_ns;                                         /* how long the last pass took */
    int64_t begun_ns;                                        /* wall clock */
};

#include "server/queue_letters.h"
#include "server/queue_parts.h"
