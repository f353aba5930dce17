/* The guard of one GPU, inside the thread that reads it: nothing but the driver lies on its path, and it allocates nothing
 * after its start. The decisions are model/guard's; here is what surrounds them: the baseline's record, stale throttles,
 * read-back and drift, limits set by hand, the way back. In observe mode nothing is set: limit_put is the only way to a
 * lever, and it asks. A card has one guard on this machine: who comes second observes, and takes over when the first is
 * gone. A lock of clocks cannot be read, so that nobody notices when someone else changes it, and whose it was before is not known. */
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

#define ORDERS_MAX 8 /* that may wait for a card that is slow to answer */

/* What someone set by hand: one limit and one target, each with its own end. */
enum guarding_manual_kind { MANUAL_LIMIT, MANUAL_TARGET, MANUAL_KINDS };

struct guarding_manual {
    double value; /* NaN: nothing */
    int64_t until_ns, confirm_by_ns;
};

struct guarding {
    struct board *board;
    unsigned device;
    struct gpu *gpu;
    struct gpu_lever lever;
    struct guard_policy policy;
    struct guard_state state;
    enum ring_guard_mode mode;
    _Atomic bool acts;       /* the same, for other threads */
    _Atomic bool is_settled; /* has taken the card, or will not: what is then left to do is to give it back */
    char record_path[400], why[96];
    char dir[200], lock_path[400];
    char left_path[400]; /* the record that another guard may have left, which had the card before; "": none */
    int lock_fd;
    bool is_kept_out; /* another guard has the lock */
    int64_t lock_look_ns, lock_free_ns;
    bool is_taken, is_record_failed, had_record;
    int drift;                  /* enum guard_drift */
    int clear_stale;            /* enum guard_stale */
    double baseline;            /* the way back */
    double limit;               /* what we last set, or found; in observe mode: would have set */
    double read[GUARD_SENSORS]; /* the last readings, for people: the margin is not read in every round */
    int64_t read_ns[GUARD_SENSORS];
    double found; /* what is asked of the card, as last read; NaN: cannot be read */
    enum ring_guard_hold held_by;
    enum guard_reason reason;
    int64_t begun_ns, set_ns, failed_ns, since_real_ns, last_ns, drift_ns, asserted_ns;
    unsigned asserted;         /* times since it was last said */
    double throttled_s, hot_c; /* hot_c: the target as configured, for after a manual one */
    int set_failures;
    _Atomic double cap;             /* from the power budget; infinity: none */
    _Atomic double wish, in_force;  /* for the budget: what the guard itself would allow; the limit as read back */
    _Atomic double draw_w;          /* NaN: not known */
    _Atomic bool is_held;           /* the card would draw more if it might */
    _Atomic unsigned settings_seen; /* which settings it has */

    pthread_mutex_t lock; /* guards the orders */
    struct guarding_order orders[ORDERS_MAX];
    unsigned order_count;
    struct guarding_manual manual[MANUAL_KINDS];
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

/* False when too many orders wait already: the card does not answer. */
bool guarding_tell(struct guarding *g, const struct guarding_order *order) MUST_CHECK;

/* Puts the card back and gives it up. Called by the thread that reads the GPU. */
void guarding_close(struct guarding *g);
