/* What the files plan*.c share, and nobody else. */
#pragma once

#include "model/plan.h"
#include "model/plan_line.h"
#include "model/plan_order.h"
#include "model/plan_time.h"

/* So long a verdict that may pass is taken to pass: memory that is given back, heat; and what is left of a run. */
#define PLAN_SOON_NS 60000000000LL
#define PLAN_REST_NS 3000000000LL

/* ---- shapes: what jobs ask for, each once ---- */

struct shape { /* the same in a pass */
    uint64_t memory, share;
    const uint32_t *scope;
    uint32_t scope_len, node, user;
    int gpus;
    bool is_scoped, is_listed;
    uint64_t pass;               /* that it was made in */
    bool is_possible;            /* enough GPUs of one node that do are within reach */
    bool is_kept;                /* GPUs are kept for the first job of it */
    int64_t now_most;            /* none that may take longer can start now; PLAN_NEVER before one was tried */
    size_t mask;                 /* where its GPUs lie in plan.masks */
    uint32_t node_from, node_to; /* and among which nodes */
};

struct choice { /* a GPU that would do, and what speaks against it */
    uint32_t gpu;
    bool is_own; /* kept for him by people: the others are left to the others */
    bool is_wanted;
    int64_t gap;
    uint64_t memory, used;
    double warmth;
};

struct line_left { /* of a job: elements that still wait, and how many of them may start */
    uint64_t pass;
    uint32_t left, room;
};

struct plan {
    const struct plan_world *w;
    uint32_t *node_first; /* the first GPU of each node, and one beyond the last */
    uint32_t nodes;
    bool has_parts;    /* some card is cut into instances */
    uint32_t *node_at; /* by GPU: the node it is of, as counted here */
    bool *is_out;      /* by GPU: within nobody's reach */
    uint64_t *wanted;  /* bits: GPUs that some waiting job must have */
    int64_t *
        release; /* each node's GPUs by when their runs are over, the first first: no job of k starts before the k-th */
    bool has_release;
    bool has_wanted;        /* they were looked up in this pass */
    double *held;           /* GPUs by user */
    uint32_t *ask;          /* by job: where its reason goes; PLAN_NONE: nobody asks */
    uint64_t pass;          /* its number */
    struct line_left *left; /* by job: as of the pass that it names */
    struct plan_line own;   /* of a world that brings none */
    struct plan_line *line;
    uint32_t *open; /* kinds of which one may still start now */
    uint32_t opens;
    uint64_t changes, open_at; /* grants and keeps; and how many there had been as the last of `open` was found to be */
    struct timeline now;       /* runs, windows, and what this pass gave and keeps */
    struct timeline later;     /* for estimates: the same with everybody in it */
    int64_t *node_edge;        /* by node: the least of those of its GPUs */
    int64_t *edge;             /* by GPU: when its last slot ends */
    struct shape *shape;       /* by kind */
    uint64_t *reach;           /* bits: GPUs that are not out */
    uint64_t memory_least;     /* each has so much */
    uint32_t reach_most;       /* of one node */
    uint64_t *masks;
    size_t mask_words, masks_len;
    struct order order;
    struct foresight *foresight;
    int64_t *starts;   /* by job: as foreseen; PLAN_NEVER: not */
    uint32_t *visited; /* jobs in the order of their turn */
    struct choice *choice;
    struct plan_grant *grant;
    double *grant_worth;
    struct plan_bar *bar;
    size_t grants, bars;
    uint32_t kept;        /* shapes that GPUs are kept for */
    bool is_past;         /* somebody started after GPUs were kept for others */
    bool *is_whole;       /* by GPU: nobody has any of it now */
    uint32_t *node_whole; /* by node: how many of those it has */
    uint32_t whole;       /* and all nodes together */
    uint64_t roomiest;    /* no GPU that is shared has more left */
    uint64_t least_share; /* that anybody who waits asks for; UINT64_MAX: nobody asks for one */
    uint32_t placed;      /* in later */
    size_t node_cap, out_cap, wanted_cap, held_cap, left_cap, open_cap, reach_cap, edge_cap, shape_cap, masks_cap,
        grant_cap, bar_cap, choice_cap, ask_cap, whole_cap, node_whole_cap, starts_cap, visited_cap, node_edge_cap,
        node_at_cap, worth_cap, release_cap;
};

/* plan_fit.c */
struct fit { /* GPUs of one node from a time on */
    int64_t at;
    uint32_t node;
    int gpus;
    uint32_t gpu[JOB_GPUS_MAX];
};
bool plan_is_in(const struct plan *p, const struct shape *s, uint32_t gpu);
bool plan_is_own(const struct plan *p, const struct timeline *t, uint32_t gpu, uint32_t user, int64_t at);
bool plan_is_his(const struct plan *p, const struct slot *s, uint32_t user);
int64_t plan_gap(const struct plan *p, const struct timeline *t, const struct shape *s, uint32_t gpu, int64_t at);
int64_t plan_free_from(const struct plan *p, const struct timeline *t, const struct shape *s, uint32_t gpu, int64_t at,
                       int64_t ns);
/* Now, for so long. *ret_most: the longest time that would do, 0 where none would. */
bool plan_fit_now(struct plan *p, const struct shape *s, int64_t ns, struct fit *ret, int64_t *ret_most);
/* As early as it can be, but not before `from`. */
bool plan_fit_later(struct plan *p, const struct timeline *t, const struct shape *s, int64_t from, int64_t ns,
                    struct fit *ret);
/* Where no time is known: those of a node that will do some day, the free ones first. at: PLAN_NEVER. */
bool plan_fit_some_day(struct plan *p, const struct timeline *t, const struct shape *s, int64_t ns, struct fit *ret);
/* After the last slot of each: cheap, for those far behind. */
bool plan_fit_behind(struct plan *p, const struct shape *s, struct fit *ret);

/* plan_shape.c */
/* Whether somebody who asks for this may have a part of a card; everybody may have a card. */
bool plan_is_for(const struct plan *p, uint32_t gpu, int gpus, uint64_t memory, bool is_scoped);
struct shape *plan_shape(struct plan *p, uint32_t kind);
/* One that is not in the table, for a question: its mask is the table's last and is gone with the next shape. */
struct shape plan_shape_try(struct plan *p, const struct plan_job *j);

/* plan_foresee.c */
/* When each of these will have its next element started; jobs: in the order of the world. */
void plan_foresee(struct plan *p, const uint32_t *jobs, uint32_t count, int64_t *starts);
void foresight_free(struct foresight *f);

/* plan.c */
struct line_left *plan_left(struct plan *p, uint32_t job);
int64_t plan_end(const struct plan_run *r, int64_t now_ns); /* as expected; PLAN_NEVER: nobody knows */
void plan_bar_add(struct plan *p, const struct plan_grant *g, uint32_t job, int64_t from_ns, int64_t ns);
void plan_begin(struct plan *p, const struct plan_world *w);
enum plan_bar_to_start { START_NOW, START_GPUS, START_WEEK, START_ROOM, START_OUT, START_BUSY };
/* Whether an element of the job starts now. GPUs that are kept: by plan_keep. */
enum plan_bar_to_start plan_try(struct plan *p, uint32_t job, struct shape **ret_shape, struct fit *ret);
double plan_grant(struct plan *p, uint32_t job, const struct shape *s, const struct fit *f); /* GPUs' worth */
void plan_keep(struct plan *p, uint32_t job, struct shape *s);
/* GPUs' worth: a share is a part of one. */
double plan_need(const struct plan *p, const struct plan_job *j);
double plan_held(const struct plan *p, const struct plan_run *r);

/* plan_words.c: before GPUs are kept for the job itself */
void plan_why(struct plan *p, uint32_t job, const struct shape *s, enum plan_bar_to_start bar, struct plan_reason *ret);
void plan_sooner(struct plan *p, uint32_t job, enum plan_bar_to_start bar, struct plan_reason *ret);
