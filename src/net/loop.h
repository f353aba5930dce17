/* The loop of a process: libevent's, with the three things that everyone needs said once: timers, signals, and a call from
 * another thread. All functions but loop_post belong to the thread that runs the loop. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct loop;
struct event_base;

typedef void (*loop_fn)(void *ctx);

int loop_new(struct loop **ret, struct error *e) MUST_CHECK;
void loop_free(struct loop *l); /* accepts NULL; calls that were posted and not yet made are forgotten */
struct event_base *loop_base(struct loop *l);

/* Until loop_stop; callbacks that are due are made first. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* Calls fn(ctx) soon in the loop's thread; from any thread, in the order of the calls. */
void loop_post(struct loop *l, loop_fn fn, void *ctx);

/* Timers and signals live as long as the loop. */
void loop_every(struct loop *l, int64_t ms, loop_fn fn, void *ctx);
void loop_signal(struct loop *l, int number, loop_fn fn, void *ctx);
