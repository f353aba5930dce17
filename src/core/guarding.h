/* The guard of one GPU, inside the thread that reads it: nothing but the driver lies on its path, and it allocates nothing
 * after its start. The decisions are model/guard's; here is what surrounds them: the baseline's record, stale throttles,
 * read-back and drift, limits set by hand, the way back. In observe mode there is no lever: nothing can be set. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "core/board.h"
#include "gpu/control.h"
#include "model/guard.h"
#include "model/settings.h"

/* What a person asked for (control socket), taken by the thread at its next round. */
struct guarding_order {
    enum { ORDER_NONE, ORDER_LIMIT, ORDER_TARGET, ORDER_CONFIRM, ORDER_RESTORE } what;
    double value;
    int64_t for_ns, confirm_ns; /* how long it holds; by when it must be confirmed (0: need not be) */
};

struct guarding {
    struct board *board;
    unsigned device;
    struct gpu *gpu;
    struct gpu_lever lever;
    struct guard_policy policy;
    struct guard_state state;
    enum ring_guard_mode mode;
    _Atomic bool acts; /* the same, for other threads */
    char record_path[400], why[96];
    int lock_fd;
    bool is_taken, is_record_failed;
    int drift;       /* enum guard_drift */
    int clear_stale; /* enum guard_stale */
    double baseline; /* the way back */
    double limit;    /* what we last set, or found */
    enum guard_reason reason;
    int64_t set_ns, since_real_ns, last_ns, margin_ns;
    double throttled_s, hot_c; /* hot_c: the target as configured, for after a manual one */
    int set_failures;
    _Atomic double cap;             /* from the power budget; infinity: none */
    _Atomic double wish, in_force;  /* for the budget: what the guard itself would allow; the limit as read back */
    _Atomic double draw_w;          /* NaN: not known */
    _Atomic bool is_held;           /* the card would draw more if it might */
    _Atomic unsigned settings_seen; /* which settings it has */

    pthread_mutex_t lock; /* guards the order */
    struct guarding_order order;
    double manual; /* NaN: none */
    int64_t manual_until_ns, confirm_by_ns;
};

/* Finds the lever and the targets; reads only. Records lie in the instance's directory. */
void guarding_open(struct guarding *g, struct gpu *gpu, struct board *b, unsigned device, const struct settings *s);

/* New settings while it runs. */
void guarding_reconfigure(struct guarding *g, const struct settings *s);

/* A round was read: decide, act, and put the guard's own metrics into the sample. */
void guarding_step(struct guarding *g, struct sample *s, int64_t now_ns);

/* Whether the next round should come at 10 Hz. */
bool guarding_is_near(const struct guarding *g);

/* Whether it decides anything: acts, or says what it would do. */
bool guarding_is_on(const struct guarding *g);

void guarding_tell(struct guarding *g, const struct guarding_order *order);

/* Puts the card back and gives it up. Called by the thread that reads the GPU. */
void guarding_close(struct guarding *g);
