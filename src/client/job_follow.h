/* One run of a job as the node tells it: where it stands, and its log, from any place on. The node may be restarted: the
 * connection comes back by itself and the log goes on where it was. Nothing here waits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "client/jobs_talk.h"
#include "model/wire_run.h"

struct job_follow {
    const char *dir;
    int64_t job;
    uint32_t element; /* its place from 0 */
    bool has_log;
    uint32_t attempt; /* that offset is of; 0: the newest */
    uint64_t offset;  /* of the log's next byte */
    uint64_t total;   /* bytes that the log had when the node last spoke of it */
    bool has_run, is_log_over;
    struct wire_run run; /* the last one told */

    struct jobs_talk talk;
    int64_t again_ns; /* boot clock: not before */
};

void job_follow_close(struct job_follow *f);

/* Takes what there is, up to a piece of log; connects where there is no connection. log: bytes are appended. Which of these
 * happened, 0 for nothing; negative: the node refuses, and e says why. That no node is there is no error. */
enum { FOLLOW_RUN = 1, FOLLOW_LOG = 2 };
int job_follow_step(struct job_follow *f, struct buf *log, struct error *e) MUST_CHECK;

/* The line that stands where so much of a log is gone. */
void job_follow_put_gap(uint64_t bytes, struct buf *log);

/* For poll: a descriptor, or -1 while there is no connection; then step again after so many ms. */
int job_follow_fd(const struct job_follow *f);
enum { FOLLOW_AGAIN_MS = 250 };
