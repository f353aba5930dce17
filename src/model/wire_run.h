/* What node and server say to each other about runs: grants, where one stands, its log, which GPUs are free. The whole talk is
 * described in model/wire_job.h. */
#pragma once

#include "model/occupancy.h"
#include "model/outside.h"
#include "model/wire_job.h"

struct wire_run_key {
    int64_t job;
    uint32_t element, attempt; /* attempts count from 1 */
};

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
    double gpu_ratio, cpu_ratio; /* mean utilisation of its GPUs, 0 to 1; CPUs' worth it used; NaN: not measured */
    uint64_t memory_peak_bytes, memory_total_bytes, host_peak_bytes;
    uint64_t log_bytes;
    char text[248]; /* what people should know: why it could not be started */
};
void wire_put_run(struct buf *b, const struct wire_run *r);
int wire_get_run(const struct wire_frame *f, struct wire_run *ret, struct error *e) MUST_CHECK;

/* What a run that goes on has used from its start until now, and what it holds now. */
struct wire_figures {
    struct wire_run_key key;
    double gpu_seconds, energy_joules; /* of all its GPUs together */
    double gpu_ratio;                  /* mean utilisation of its GPUs since its start, 0 to 1; NaN: not measured */
    double cpu_seconds;                /* of all its processes; NaN: not known, as for what is below */
    uint64_t memory_bytes, memory_peak_bytes, memory_total_bytes; /* of its GPUs; now, at most, and what they have */
    uint64_t host_bytes;                                          /* its processes hold in the machine's memory; 0 */
    uint64_t read_bytes, written_bytes;                           /* from and to disks; UINT64_MAX */
    uint64_t log_bytes;
};
struct wire_figures_list {
    uint32_t count;
    const uint8_t *at;
    size_t len;
};
size_t wire_begin_figures(struct buf *b, uint32_t count);
void wire_add_figures(struct buf *b, const struct wire_figures *v);
int wire_get_figures(const struct wire_frame *f, struct wire_figures_list *ret, struct error *e) MUST_CHECK;
bool wire_next_figures(struct wire_figures_list *list, struct wire_figures *ret);

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

#define WIRE_LOG_MAX (256u << 10)
struct wire_log_ask {
    uint64_t request;
    struct wire_run_key key;
    uint64_t offset;
    uint32_t len; /* 1 to WIRE_LOG_MAX */
};
struct wire_log {
    uint64_t request;
    int32_t result;  /* 0, or a negative errno with text */
    uint64_t offset; /* of bytes; larger than asked for where something was cut off */
    uint64_t total;  /* bytes there are now */
    bool is_over;    /* the run has ended: no more will come */
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
    uint8_t outside;       /* enum outside_step: what was done about that process ... */
    int64_t ends_ns;       /* ... and when it will be ended, wall clock; 0: it will not */
    char note[160];        /* what people read after "GPU 3"; "": the verdict's own words */
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
