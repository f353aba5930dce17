/* What `gpumgr simulate` is made of: where the jobs come from, and what is shown of the result. For simulate*.c. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/json_tree.h"
#include "client/output.h"
#include "model/simulate.h"

enum { SIMULATE_POLICIES_MAX = 16, SIMULATE_POINTS = 96 };

/* What of this machine's history is not played, or not as it was.
 *   id       key of the JSON   "lead: 3 nouns tail" */
#define SIMULATE_NOTES(X)                                                                                              \
    X(NEVER_RAN, "never_ran", "left out", "job", " that never ran")                                                    \
    X(WAITING, "waiting", "left out", "job", " that still wait")                                                       \
    X(UNTOLD, "untold", "left out", "run", " of large arrays: the server tells 1000 of each")                          \
    X(RUNNING, "running", "not over yet", "job", ", played as if they ended now")                                      \
    X(ELSEWHERE, "elsewhere", "played anywhere", "job", " that named their GPUs")                                      \
    X(ALONE, "alone", "played at once", "job", " after others that are forgotten")                                     \
    X(RESERVED, "reservations_not_played", "not played", "reservation", ", of GPUs that are not here")

enum simulate_note_id {
#define X(id, key, lead, noun, tail) SIMULATE_NOTE_##id,
    SIMULATE_NOTES(X)
#undef X
        SIMULATE_NOTE_COUNT
};

struct simulate_reserves {
    struct simulate_window *window;
    uint32_t windows, count;             /* count: reservations */
    uint32_t **list;                     /* what windows point to */
    size_t window_cap, lists, lists_cap; /* caps: of what is allocated */
};
void simulate_reserves_done(struct simulate_reserves *r);

struct simulate_machines { /* this machine's own GPUs, as its queue has them */
    struct plan_gpu *gpu;
    char (*uuid)[96], (*name)[24], (*node)[64];
    uint32_t gpus, nodes;
    bool is_alike; /* as many on each */
};
void simulate_machines_done(struct simulate_machines *m);
/* PLAN_NONE: it is not there. */
uint32_t simulate_machines_find(const struct simulate_machines *m, const char *node, const char *word);
uint32_t simulate_machines_node(const struct simulate_machines *m, const char *node);

struct simulate_view {
    const char *source; /* "philly-slo.csv"; "this machine's history" */
    const struct trace *trace;
    struct simulate_setup setup; /* policy: of each result */
    const struct plan_policy *policy[SIMULATE_POLICIES_MAX];
    struct simulate_result result[SIMULATE_POLICIES_MAX];
    size_t results;
    bool has_truth; /* it is this machine's history */
    struct simulate_result truth;
    const struct plan_policy *is_set; /* by jobs.policy */
    struct simulate_machines machines;
    struct simulate_reserves reserves;
    uint32_t note[SIMULATE_NOTE_COUNT];
};

void simulate_json(const struct simulate_view *v, struct buf *b);
void simulate_table(const struct simulate_view *v, const struct screen *s, struct buf *b);
void simulate_chart(const struct simulate_view *v, const struct screen *s, struct buf *b);
/* Columns, and curves, from the left: what was, where that is known, then each policy. */
size_t simulate_columns(const struct simulate_view *v);
const struct simulate_result *simulate_column(const struct simulate_view *v, size_t at);
const char *simulate_column_name(const struct simulate_view *v, size_t at);
/* 0, 45s, 12.5m, 3h05m, 4d07h */
void simulate_span(double s, char *ret, size_t room);
int64_t simulate_until_ns(const struct simulate_view *v); /* the last end of all */

/* The jobs that this machine's server remembers, its machines where others are not given (0 in the setup), and its reservations. */
int simulate_history(const char *dir, struct simulate_view *v, struct trace *ret, struct error *e) MUST_CHECK;
int simulate_get(const char *dir, const char *path, struct json_tree **ret, struct error *e) MUST_CHECK;
int simulate_machines(const char *dir, struct simulate_view *v, struct error *e) MUST_CHECK;

/* Those that the server has, on its own GPUs. After trace_order. */
int simulate_reserved(const char *dir, struct simulate_view *v, struct error *e) MUST_CHECK;
/* "USER GPUS FROM FOR [EVERY]": one more. zero_s: where FROM is counted from. */
int simulate_reserve(struct simulate_view *v, const char *text, int64_t zero_s, struct error *e) MUST_CHECK;
/* After the last: by time, as the setup wants them. */
void simulate_reserves_order(struct simulate_view *v);
