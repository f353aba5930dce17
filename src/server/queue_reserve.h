/* Reservations and the queue: for the API, and for queue*.c. */
#pragma once

#include "server/queue.h"
#include "server/reserves.h"

struct queue_world;

struct reserves *queue_reserves(struct queue *q);
/* After one was stored or dropped. */
void queue_reserves_changed(struct queue *q);

/* Whether a window counts: one that stands unused for too long does not, until one of its users comes. */
bool queue_reserve_stands(const struct queue *q, const struct reservation *v, const struct reserve_window *w,
                          int64_t now_s);

/* ---- GPUs that could be reserved ---- */
bool queue_has_node(struct queue *q, const char *name);
const char *queue_only_node(struct queue *q); /* NULL: there are several, or none */
typedef void (*queue_gpu_fn)(void *ctx, const char *uuid, int index);
void queue_each_gpu(struct queue *q, const char *node, queue_gpu_fn each, void *ctx); /* node NULL: of all */

/* ---- for queue_world.c ---- */
struct queue_window_text { /* of a reservation, as long as the world is */
    char who[80];
    uint32_t *user;
};
void queue_windows_make(struct queue *q, struct queue_world *w);
void queue_windows_done(struct queue_world *w);
