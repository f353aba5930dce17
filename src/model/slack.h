/* How a container, and a node, keep their deadlines: hits, misses, float time and its distribution; and the node's state for
 * placement, as a record of sixteen bytes on a wire. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Float time relative to the deadline, in bands: who misses by far, just misses, just hits, has time to spare. */
#define SLACK_BANDS 12
extern const double slack_bounds[SLACK_BANDS - 1]; /* upper bounds, as shares of the deadline; the last band has none */

struct slack {
    uint64_t tasks, hits, misses; /* tasks: all that ended, with a deadline or without */
    uint64_t band[SLACK_BANDS];
    int64_t float_ns;     /* the sum over all that ended */
    int64_t least_ns;     /* the smallest; INT64_MAX before the first */
    int64_t last_miss_ns; /* boot clock; INT64_MIN: none yet */
};

void slack_init(struct slack *s);
/* Its deadline has passed: a miss, whenever it will end. */
void slack_miss(struct slack *s, int64_t now_ns);
/* It ended. is_counted: its miss was taken by slack_miss. */
void slack_end(struct slack *s, int64_t deadline_ns, int64_t float_ns, bool is_counted, int64_t now_ns);
/* Hits of those with a deadline; NaN before the first. */
double slack_hit_rate(const struct slack *s);

/* ---- the node, for whoever places work ---- */

enum node_reason { NODE_MISSED = 1, NODE_CORES_FULL = 2, NODE_MEMORY_FULL = 4, NODE_NO_GPU = 8, NODE_CORDONED = 16 };

struct node_rules {
    int64_t miss_window_ns; /* a miss so recent makes the node unfit for more */
    double busy_ratio;      /* a GPU busier than this has no core to give */
    double full_ratio;      /* a GPU whose memory is used beyond this is full */
};

struct node_gpu {
    double busy_ratio; /* NaN: unknown, which counts as busy */
    uint64_t free_bytes, total_bytes;
    bool is_usable;
};

struct node_state {
    uint8_t reasons;                /* enum node_reason bits; 0: provisionable */
    uint8_t gpus;                   /* usable ones */
    uint16_t tasks;                 /* running */
    uint32_t free_mib, largest_mib; /* GPU memory in all, and of the GPU with most */
    int64_t float_ms;               /* total float time of the last window */
};

struct node_state node_judge(const struct node_rules *r, const struct slack *s, const struct node_gpu *gpus, size_t n,
                             unsigned running, int64_t now_ns);

#define NODE_STATE_BYTES 16
void node_state_put(const struct node_state *s, uint8_t out[NODE_STATE_BYTES]);
void node_state_get(const uint8_t in[NODE_STATE_BYTES], struct node_state *ret);

/* "missed a deadline 12 s ago" and the like, one for each reason, joined; "" when provisionable. */
void node_state_words(const struct node_state *s, char *ret, size_t room);
