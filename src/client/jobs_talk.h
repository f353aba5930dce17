/* Talks to this machine's node about jobs, over DIR/run/jobs.sock (model/jobs_socket.h). The node knows who calls by the kernel's
 * word; nothing here says so. */
#pragma once

#include "base/error.h"
#include "base/instance.h"
#include "model/jobs_socket.h"

struct jobs_talk {
    int fd; /* -1: not open */
    struct wire_stream in;
    uint64_t request;
    int patience_ms; /* for an answer; 0: a minute, which a server that is being restarted needs */
};
#define JOBS_TALK_CLOSED                                                                                               \
    { .fd = -1 }

/* -ENOTCONN: no node is there. dir: of the instance, "" for the usual ones. */
int jobs_talk_open(struct jobs_talk *t, const char *dir, struct error *e) MUST_CHECK;
/* The same at another socket of the node's. */
int jobs_talk_open_at(struct jobs_talk *t, const char *dir, const char *name, struct error *e) MUST_CHECK;
void jobs_talk_close(struct jobs_talk *t); /* accepts what is not open */

int jobs_talk_send(struct jobs_talk *t, const struct buf *b, struct error *e) MUST_CHECK;

/* 1: a frame, good until the next call; 0: none within timeout_ms (0: looks only); -ECONNRESET: the node went away. */
int jobs_talk_next(struct jobs_talk *t, int timeout_ms, struct wire_frame *ret, struct error *e) MUST_CHECK;

/* Waits for the answer to a request. A refusal is an error with the node's own sentence. */
int jobs_talk_result(struct jobs_talk *t, uint64_t request, struct wire_job_result *ret, struct error *e) MUST_CHECK;

/* ---- whole conversations ---- */

/* Jobs as records (job_encode), one behind the other in `records`, with their lengths. Taken all or none where they fit into
 * one frame; *ret_first is the number of the first, the others follow it. */
struct jobs_batch {
    struct buf records;
    size_t *len;
    size_t count, capacity;
};
void jobs_batch_add(struct jobs_batch *b, const struct buf *record);
void jobs_batch_done(struct jobs_batch *b);
/* By such a word the server knows what it has taken already, though its answer did not come. room: 33 at least. */
int jobs_talk_key(char *ret, size_t room, struct error *e) MUST_CHECK;
int jobs_talk_submit(const char *dir, const struct jobs_batch *b, int64_t *ret_first, struct error *e) MUST_CHECK;
