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
 *   RUN       node: where a run stands. The end is sent at every beginning of a session until STORED says that it is kept.
 *   STORED    server: this end is kept.
 *   RUNS      server, after WELCOME: all runs that it thinks are going on. The node answers RUN for each; one that it never
 *             heard of is RUN_ABSENT, and then granted again.
 *   LOG_ASK   server: a part of a run's log. Answer LOG.
 *   FREE      node: which GPUs are measured free, and who has the others; at once when that changes. */
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

struct wire_run_key {
    int64_t job;
    uint32_t element, attempt; /* attempts count from 1 */
};

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

/* wire_begin_submit, one wire_add_submit for each job, wire_end. */
struct wire_submit {
    uint64_t request;
    uint16_t count;
    const uint8_t *at;
    size_t len;
};
size_t wire_begin_submit(struct buf *b, const struct wire_submit *s);
void wire_add_submit(struct buf *b, const struct wire_sealed *s);
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

struct wire_grant {
    struct wire_run_key key;
    uint16_t gpus;
    char uuid[JOB_GPUS_MAX][96];
    struct wire_sealed sealed;
};
void wire_put_grant(struct buf *b, const struct wire_grant *g);
int wire_get_grant(const struct wire_frame *f, struct wire_grant *ret, struct error *e) MUST_CHECK;

struct wire_stop {
    struct wire_run_key key;
    uint8_t reason;   /* enum job_reason */
    int64_t grace_ns; /* between TERM and KILL */
};
void wire_put_stop(struct buf *b, const struct wire_stop *s);
int wire_get_stop(const struct wire_frame *f, struct wire_stop *ret, struct error *e) MUST_CHECK;

enum wire_run_state { RUN_ABSENT, RUN_STARTING, RUN_RUNNING, RUN_ENDING, RUN_ENDED };
struct wire_run {
    struct wire_run_key key;
    uint8_t state, reason; /* enum job_reason, when it ended */
    int32_t pid;
    int64_t start_ns, end_ns; /* wall clock; 0: not known */
    bool has_exit;            /* else code and signal mean nothing: the exit is not known */
    int32_t code, signal;     /* signal 0: it exited with code */
    double gpu_seconds, energy_joules, cpu_seconds;
    double gpu_ratio, cpu_ratio; /* mean utilisation of its GPUs, its own CPUs' worth; NaN: not measured */
    uint64_t memory_peak_bytes, memory_total_bytes, host_peak_bytes;
    uint64_t log_bytes;
    char text[248]; /* what people should know: why it could not be started */
};
void wire_put_run(struct buf *b, const struct wire_run *r);
int wire_get_run(const struct wire_frame *f, struct wire_run *ret, struct error *e) MUST_CHECK;

void wire_put_stored(struct buf *b, const struct wire_run_key *k);
int wire_get_stored(const struct wire_frame *f, struct wire_run_key *ret, struct error *e) MUST_CHECK;

struct wire_runs {
    uint32_t count;
    const uint8_t *at;
    size_t len;
};
size_t wire_begin_runs(struct buf *b, uint32_t count);
void wire_add_run_key(struct buf *b, const struct wire_run_key *k);
int wire_get_runs(const struct wire_frame *f, struct wire_runs *ret, struct error *e) MUST_CHECK;
bool wire_next_run_key(struct wire_runs *list, struct wire_run_key *ret);

struct wire_log_ask {
    uint64_t request;
    struct wire_run_key key;
    uint64_t offset;
    uint32_t len; /* at most WIRE_LOG_MAX */
};
#define WIRE_LOG_MAX (256u << 10)
struct wire_log {
    uint64_t request;
    int32_t result; /* 0, or a negative errno with text */
    uint64_t offset,
        total;    /* total: bytes there are now; offset may be larger than asked for where the start was cut off */
    bool is_over; /* the run has ended: no more will come */
    const uint8_t *bytes;
    uint32_t len;
    char text[160];
};
void wire_put_log_ask(struct buf *b, const struct wire_log_ask *a);
int wire_get_log_ask(const struct wire_frame *f, struct wire_log_ask *ret, struct error *e) MUST_CHECK;
void wire_put_log(struct buf *b, const struct wire_log *l);
int wire_get_log(const struct wire_frame *f, struct wire_log *ret, struct error *e) MUST_CHECK;

/* Whether a GPU can be given away, as it was measured (model/occupancy.h decides). */
struct wire_free {
    char uuid[96];
    uint8_t verdict; /* enum occupancy */
    uint32_t uid;    /* of who has it, outside the queue; UINT32_MAX: nobody or not known */
    char user[64];
    int32_t pid;
    uint64_t memory_bytes; /* used, without reserved */
    int64_t since_ns;      /* wall clock */
    int64_t idle_ns;       /* since when nobody works on it, wall clock; 0: somebody does */
};
struct wire_frees {
    uint16_t count;
    const uint8_t *at;
    size_t len;
};
size_t wire_begin_frees(struct buf *b, uint16_t count);
void wire_add_free(struct buf *b, const struct wire_free *f);
int wire_get_frees(const struct wire_frame *f, struct wire_frees *ret, struct error *e) MUST_CHECK;
bool wire_next_free(struct wire_frees *list, struct wire_free *ret);
