/* What node and server say to each other about jobs (model/wire.h says how all of it lies on the wire).
 *
 * A run is named by job, element and attempt. The server decides who runs where; the node, which alone can become another
 * user, runs it. What must not be lost lies in a file first: the server has stored a job before it acknowledges it and a
 * grant before it sends it; the node has a run's directory before it starts it and its end before it tells it. So all of
 * these may be sent again: a run whose directory is there is not started twice, an end that is stored is told once more
 * and changes nothing.
 *
 *   SEAL      server: seal this record for that account. Only for what came by the API: what comes over the node's own socket
 *             is sealed before the server hears of it.
 *   SEALED    node: the answer.
 *   SUBMIT    node: one or several sealed jobs of one caller. Answer SUBMITTED after the commit.
 *   CONTROL   node: a caller wants a job ended, held, let go, moved. Answer CONTROLLED.
 *   GRANT     server: start this run on these GPUs. Answer RUN, more than once.
 *   STOP      server: end this run, or never begin it; what is not there is noted as ended all the same.
 *   RUN       node: where a run stands. All of them are told at every beginning of a session; an end until STORED says that it
 *             is kept. One that the server does not think is going on is ended, where its file says that it is over.
 *   STORED    server: this end is kept.
 *   RUNS      server, after WELCOME: all runs that it thinks are going on. The node answers RUN for each; one that it never
 *             heard of is RUN_ABSENT, and then granted again.
 *   LOG_ASK   server: a part of a run's log. Answer LOG.
 *   FIGURES   node, every few seconds: what each run that goes on has used so far. Nothing is lost with one that is lost:
 *             every figure is a whole, not a difference, and the last word is the RUN that tells the end.
 *   FREE      node: which GPUs are measured free, and who has the others; at once when that changes.
 *
 * Here: how jobs come in. What is said about runs is in model/wire_run.h. */
#pragma once

#include "model/job.h"
#include "model/wire.h"

/* A job with its seal: what the node needs to run it, bound to the record by the node's key and readable only by it. */
struct wire_sealed {
    uint32_t uid;
    char user[64];
    const uint8_t *record;
    size_t record_len;
    const uint8_t *seal;
    size_t seal_len;
};
#define WIRE_SEAL_MAX (512u << 10)
/* What it takes in a SUBMIT frame; a frame holds WIRE_SUBMIT_BYTES of them. */
size_t wire_sealed_bytes(const struct wire_sealed *s);
#define WIRE_SUBMIT_BYTES (WIRE_FRAME_MAX - 64 - WIRE_KEY)
#define WIRE_SUBMIT_MOST (64u << 20) /* of all frames of a request together */

struct wire_seal {
    uint64_t request;
    char account[64]; /* as the server knows him; the node's own file says who that is here */
    bool is_admin;
    const uint8_t *record;
    size_t record_len;
};
void wire_put_seal(struct buf *b, const struct wire_seal *s);
int wire_get_seal(const struct wire_frame *f, struct wire_seal *ret, struct error *e) MUST_CHECK;

struct wire_job_result { /* SUBMITTED, CONTROLLED */
    uint64_t request;
    int32_t result; /* 0 or a negative errno */
    int64_t first;  /* number of the first job */
    uint32_t count; /* jobs taken */
    char text[248]; /* one sentence when result is negative */
};
void wire_put_job_result(struct buf *b, enum wire_type type, const struct wire_job_result *r);
int wire_get_job_result(const struct wire_frame *f, struct wire_job_result *ret, struct error *e) MUST_CHECK;

struct wire_sealed_reply {
    uint64_t request;
    int32_t result;
    char text[248];
    struct wire_sealed sealed; /* when result is 0 */
};
void wire_put_sealed(struct buf *b, const struct wire_sealed_reply *s);
int wire_get_sealed(const struct wire_frame *f, struct wire_sealed_reply *ret, struct error *e) MUST_CHECK;

#define WIRE_KEY 68 /* printable ASCII, at most 64 */
/* "": none; else whether a key may be this. */
bool wire_key_is_good(const char *key);

/* wire_begin_submit, one wire_add_submit for each job, wire_tail_submit where there is a key or more follows, wire_end. At least
 * one job. */
struct wire_submit {
    uint64_t request;
    uint16_t count;
    const uint8_t *at;
    size_t len;
    char key[WIRE_KEY]; /* of his own choice: what came with it before is not taken twice; "": none */
    bool is_part;       /* more frames of this request follow: all of them are taken, or none */
};
size_t wire_begin_submit(struct buf *b, const struct wire_submit *s);
void wire_add_submit(struct buf *b, const struct wire_sealed *s);
void wire_tail_submit(struct buf *b, const struct wire_submit *s);
int wire_get_submit(const struct wire_frame *f, struct wire_submit *ret, struct error *e) MUST_CHECK;
bool wire_next_submit(struct wire_submit *list, struct wire_sealed *ret);

enum wire_control_verb { WIRE_CANCEL, WIRE_HOLD, WIRE_RELEASE, WIRE_PRIORITY };
struct wire_control {
    uint64_t request;
    uint32_t uid; /* who asks, as the kernel said it */
    uint8_t verb;
    int64_t job;
    int64_t element; /* -1: all */
    int64_t value;
};
void wire_put_control(struct buf *b, const struct wire_control *c);
int wire_get_control(const struct wire_frame *f, struct wire_control *ret, struct error *e) MUST_CHECK;
