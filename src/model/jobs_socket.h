/* What a caller on this machine and the node say to each other about jobs, over DIR/run/jobs.sock (SOCK_STREAM, anyone may
 * connect; the kernel says who it is). Frames as in model/wire.h; those that are on the link already are the same here.
 *
 *   CALL_SUBMIT  caller: jobs, and what surrounds him. Answer JOB_SUBMITTED, after the server has stored them.
 *   JOB_CONTROL  caller: end, hold, let go, move one of his jobs; his uid is taken from the kernel, not from the frame. Answer
 *                JOB_CONTROLLED.
 *   CALL_SIGNAL  caller: a signal for the job's own process (its process group with a terminal). Answer JOB_CONTROLLED.
 *   CALL_FOLLOW  caller: tell me of this element until I go. Answers JOB_RUN, at once when there is a run here and at every
 *                change, and with has_log JOB_LOG: the bytes of the attempt that the last JOB_RUN named, in order, from
 *                `offset` at first and from 0 for a later attempt. An element that has not been granted yet is waited for in
 *                silence. The log is for the job's user and root: others get JOB_CONTROLLED with -EACCES and nothing more.
 *                One follow a connection; the bytes end with is_over, and another attempt may come after that.
 *
 * A terminal (spec.is_pty) is the socket DIR/jobs/JOB.ELEMENT.ATTEMPT/pty, the user's alone: from the job come bytes as
 * they are; to it go records (struct jobs_pty). What it shows goes into the log, too.
 *
 * Pure: no I/O. Decoded frames point into the bytes they were made of. */
#pragma once

#include "model/job.h"
#include "model/wire_run.h"

#define JOBS_SOCKET "jobs.sock"
#define JOBS_SUBMIT_MAX 4096 /* jobs in a frame */
#define JOBS_ENVIRONMENT_MAX (256u << 10)
#define JOBS_CWD_MAX 4096

/* jobs_begin_submit, one jobs_add_submit for each job, jobs_tail_submit where there is a key, wire_end. */
struct jobs_submit {
    uint64_t request;
    uint32_t umask;
    char cwd[JOBS_CWD_MAX];
    struct job_words environment; /* "KEY=VALUE" of the caller */
    uint16_t count;
    const uint8_t *at; /* records, for jobs_next_submit */
    size_t len;
    char key[WIRE_KEY]; /* as in struct wire_submit */
};
size_t jobs_begin_submit(struct buf *b, const struct jobs_submit *s); /* its count is what will be added */
void jobs_add_submit(struct buf *b, const void *record, size_t len);
void jobs_tail_submit(struct buf *b, const struct jobs_submit *s);
/* Refuses a count that is not what follows, and a record beyond JOB_RECORD_MAX. Whether a record makes sense is
 * job_decode's to say. */
int jobs_get_submit(const struct wire_frame *f, struct jobs_submit *ret, struct error *e) MUST_CHECK;
bool jobs_next_submit(struct jobs_submit *list, const uint8_t **record, size_t *len);

struct jobs_follow {
    uint64_t request;
    int64_t job;
    uint32_t element; /* counts from 0 */
    bool has_log;
    uint32_t attempt; /* that offset belongs to; 0: the newest there is */
    uint64_t offset;
};
void jobs_put_follow(struct buf *b, const struct jobs_follow *f);
int jobs_get_follow(const struct wire_frame *f, struct jobs_follow *ret, struct error *e) MUST_CHECK;

struct jobs_signal {
    uint64_t request;
    int64_t job;
    uint32_t element;
    int32_t number;
};
void jobs_put_signal(struct buf *b, const struct jobs_signal *s);
int jobs_get_signal(const struct wire_frame *f, struct jobs_signal *ret, struct error *e) MUST_CHECK;

/* ---- to a terminal: u8 kind, u8 zero, u16 length, bytes ---- */

enum jobs_pty_kind { JOBS_PTY_BYTES, JOBS_PTY_SIZE };
#define JOBS_PTY_HEAD 4
#define JOBS_PTY_MOST 4096 /* bytes in a record */
struct jobs_pty {
    enum jobs_pty_kind kind;
    const uint8_t *bytes; /* BYTES: typed */
    uint16_t len;
    uint16_t rows, columns; /* SIZE */
};
void jobs_put_pty(struct buf *b, const struct jobs_pty *p);
/* How many bytes the record takes, 0: more must come first, negative: this is none of ours. */
int jobs_get_pty(const void *bytes, size_t n, struct jobs_pty *ret, struct error *e) MUST_CHECK;
