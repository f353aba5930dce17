/* A GPU as JSON, the same from `gpumgr status` and from the server: what is known now, metric by metric of the catalogue;
 * what is not known is left out. Pure: whoever calls it has the values, and says what time it is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/inventory.h"
#include "model/ring.h"
#include "model/sample.h"

struct gpu_json_process {
    const struct ring_process *of;
    const char *user, *command; /* NULL or empty: not known */
    const char *container;      /* its name; the same */
    int64_t start_real_ns;      /* 0: not known */
};

struct gpu_json {
    const struct inventory *is;
    const char *state, *state_reason; /* the reason may be empty */
    int64_t state_since_real_ns;      /* 0: not known */
    const struct latest *latest;
    int64_t now_boot_ns;  /* by the clock of `latest` */
    bool lists_processes; /* a card that cannot list its processes has no list, which is not an empty one */
    uint32_t process_count;
    /* the n-th process */
    struct gpu_json_process (*process)(const void *ctx, uint32_t n);
    const void *ctx;
    const struct ring_xids *xids;
    const struct ring_guard *guard; /* NULL: the guard has said nothing of it */
};

/* The pairs of a GPU up to its guard, into an object that is open. */
void gpu_json_gpu(struct buf *b, const struct gpu_json *g);

/* A MIG instance: an object of its own. */
void gpu_json_instance(struct buf *b, const struct gpu_json *g);

/* Single pairs, for those who send only what changed. */
void gpu_json_state(struct buf *b, const struct gpu_json *g);
void gpu_json_processes(struct buf *b, const struct gpu_json *g);
void gpu_json_xids(struct buf *b, const struct gpu_json *g);
void gpu_json_guard(struct buf *b, const struct gpu_json *g);

/* "name": a value with as many decimals as its steps have. */
void gpu_json_number(struct buf *b, const char *key, double value, double scale);
void gpu_json_time(struct buf *b, const char *key, int64_t real_ns);
