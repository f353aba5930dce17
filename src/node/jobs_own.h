/* What the files of the jobs' thread share (jobs.c: frames, runs and time; jobs_calls.c: callers). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/settings.h"
#include "node/jobs_start.h"
#include "node/runs.h"

#define CALLS_BACKLOG (8u << 20) /* bytes for the server: callers wait beyond this */

struct jobs_own {
    struct settings settings;
    struct runs runs;
    struct starting starting;
    int epoll, inotify; /* inotify: the states of runs */
    bool is_linked;     /* the server is there and knows us */
};
extern struct jobs_own jobs_own;

/* What epoll says: a kind in the upper half, a number in the lower. */
enum jobs_source { JOBS_WAKE, JOBS_STATE, JOBS_SHIM, JOBS_LISTENER, JOBS_CALLER };
bool jobs_watch(int fd, uint32_t events, enum jobs_source source, uint32_t number);

/* A frame for the server, appended between the two; only while is_linked. */
struct buf *jobs_say_begin(void);
void jobs_say_end(void);
size_t jobs_said_bytes(void);

/* ---- runs ---- */

/* What the server says. */
void jobs_grant(const struct wire_frame *f);
void jobs_grant_again(void); /* those that found no room on the disk */
bool jobs_has_postponed(void);
void jobs_grants_drop(void); /* the session is over: the next one grants them again */
void jobs_stop(const struct wire_frame *f);
/* Says where a run stands, to the server and to whoever follows it. */
void jobs_tell(const struct run *run);
void jobs_say_run(const struct wire_run *said);
void jobs_say_absent(const struct wire_run_key *k);

void jobs_shim_ended(int pidfd, int64_t now_ns);
void jobs_states(void); /* some were written */

/* Of each run: processes whose shim was killed; every second, what it does with its GPUs. */
void jobs_look_after(struct run *run, int64_t now_ns);
bool jobs_has_orphan(void);
void jobs_judge(struct run *run, int64_t now_ns);

/* Every few seconds: what all of them have used, in one frame. */
void jobs_figures(int64_t now_ns);
/* At once: a session begins, and what is said in it first must not be less than what was said in another. */
void jobs_figures_now(int64_t now_ns);
void jobs_add_figures(const struct run *run, struct wire_run *said);
/* What one has used in the end: never less than was told. */
void jobs_last_figures(struct run *run);

/* One that was found at the start; and what becomes of those that no shim has. */
void jobs_adopt(void *ctx, const struct wire_run_key *k);
void jobs_mind_found(struct run *run, int64_t now_ns);

/* ---- callers ---- */

int calls_open(struct error *e) MUST_CHECK;
void calls_accept(void);
void calls_ready(uint32_t number, uint32_t events);
/* A run changed: whoever follows it is told. */
void calls_tell(const struct run *run);
/* What server answers to a caller's request; false: nobody asked for that. */
bool calls_answer(uint8_t type, const struct wire_job_result *r);
void calls_link_down(void);
/* Log bytes for followers; returns when to look again, boot clock, INT64_MAX: nobody follows. */
int64_t calls_tick(int64_t now_ns);

/* A part of a run's log into b as a LOG frame. */
void jobs_put_log(struct buf *b, const struct wire_run_key *k, uint64_t request, uint64_t offset, uint32_t len);
