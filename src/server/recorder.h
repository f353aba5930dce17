/* What is kept: readings and events go into history, every few seconds with the marks that say how far they were taken.
 * Adding is memory only and belongs to the loop's thread; one worker writes, another reads. */
#pragma once

#include "model/settings.h"
#include "server/history.h"
#include "server/live.h"
#include "server/worker.h"

struct recorder;

/* Storing has begun to fail, or goes well again (trouble NULL). Nothing is lost meanwhile, as long as memory lasts. */
typedef void (*recorder_health_fn)(void *ctx, const char *trouble);

/* Opens the file and reads its marks into *marks. */
int recorder_new(struct loop *l, const char *path, const struct settings *s, struct marks_list *marks,
                 recorder_health_fn health, void *ctx, struct recorder **ret, struct error *e) MUST_CHECK;

/* Writes what is there, ends the threads, closes the file. Accepts NULL. */
void recorder_free(struct recorder *r);

void recorder_sample(struct recorder *r, struct live_device *d, const struct sample *s);
void recorder_host(struct recorder *r, struct live_node *n, const struct host_sample *s);
/* gpu NULL: the machine itself. Its id in the history; 0: it cannot be kept. */
int64_t recorder_event(struct recorder *r, const char *node, const struct inventory *gpu, const struct event *ev);
/* Stores what is there without waiting for its time: for what nobody would send again. */
void recorder_soon(struct recorder *r);

/* A task's record that was not taken before, what is said of a container, and a machine that was started anew. */
void recorder_task(struct recorder *r, const struct live_node *n, const struct wire_task *t);
void recorder_container(struct recorder *r, const struct live_node *n, const struct wire_container *c);
void recorder_boot(struct recorder *r, const struct live_node *n);

/* Runs `run` on the reading thread, then `done` on the loop's. In `run` recorder_reader is the thread's own. */
int recorder_ask(struct recorder *r, worker_fn run, worker_fn done, void *ctx, struct error *e) MUST_CHECK;
struct history_reader *recorder_reader(struct recorder *r);

void recorder_stats(struct recorder *r, struct history_stats *ret);
