/* Those who wait, as a pass looks at them: dealt out by priority and user, by a key, and by what they ask for. Made anew for
 * each pass, or kept by whoever plays a long time through (plan_line_new in model/plan.h). For plan*.c alone. */
#pragma once

#include "model/plan.h"

struct line_list { /* jobs by key, and within a key as they came */
    uint32_t *job;
    uint32_t count;
    bool is_mixed; /* some were added since it was sorted */
    size_t cap;
};

struct line_lane { /* of one user, as they came */
    uint32_t first, last;
};

struct line_class {        /* of one priority */
    struct line_list list; /* with PLAN_FAIR only those that are urgent */
    struct line_lane *lane;
    uint32_t lanes, count; /* lanes: users that ever had one here */
    size_t lane_cap;
};

struct line_turn { /* when a job becomes urgent, or ceases to be */
    int64_t at_ns;
    uint32_t job;
};

struct ask { /* what is the same for all jobs of a shape */
    uint64_t hash;
    uint64_t memory, share;
    const uint32_t *scope;
    uint32_t scope_len, node, user; /* user: PLAN_NONE unless people keep windows */
    int gpus;
    bool is_scoped, is_listed;
};

struct kind { /* in the line of those who wait */
    struct ask ask;
    uint32_t waiting, next;
    int64_t least_ns; /* none of them can take less */
};

struct plan_line {
    const struct plan_policy *policy;
    struct line_class class[2 * JOB_PRIORITY_MAX + 1];
    bool is_kept;                    /* over several passes: then what changes with time is looked up by `turn` */
    bool is_by_user;                 /* kinds are, too: somebody keeps windows */
    int64_t now_ns;                  /* urgent as of then */
    uint32_t waiting;                /* jobs */
    uint32_t exacts;                 /* of them, those that must have just these GPUs */
    uint32_t *next, *prev, *kind_of; /* by job; kind_of PLAN_NONE: it is not in the line */
    int64_t *key;
    bool *is_urgent;
    uint32_t jobs; /* places that were ever used */
    struct kind *kind;
    uint32_t kinds, *kind_at; /* hash table */
    struct line_turn *turn;   /* heap, the first first */
    uint32_t turns;
    size_t next_cap, prev_cap, kind_of_cap, key_cap, urgent_cap, kind_cap, table_cap, turn_cap;
};

/* plan_shape.c */
struct ask ask_of(const struct plan_job *j, bool is_by_user);
bool ask_is_same(const struct ask *a, const struct ask *b);

/* Empty, with memory to be used again. */
void line_clear(struct plan_line *l, const struct plan_policy *policy, bool is_by_user);
void line_add(struct plan_line *l, const struct plan_job *jobs, uint32_t job, int64_t now_ns);
/* To another time, and to whether kinds are by user. */
void line_set(struct plan_line *l, const struct plan_job *jobs, bool is_by_user, int64_t now_ns);
void line_done(struct plan_line *l);
static inline bool line_has(const struct plan_line *l, uint32_t job) {
    return job < l->jobs && l->kind_of[job] != PLAN_NONE;
}
/* Urgent ones first in their order. */
const struct line_list *line_sorted(struct plan_line *l, struct line_class *c);
