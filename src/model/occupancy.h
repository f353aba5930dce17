/* Whether a GPU can be given away: measured, not believed. Free is a card on which nothing runs that we did not start, whose
 * memory is empty, that works, is not too hot and that nobody has taken out of service. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*   id       name       what people read after "GPU 3" */
#define OCCUPANCIES(X)                                                                                                 \
    X(FREE, "free", "is free")                                                                                         \
    X(FOREIGN, "foreign", "is used by a process outside the queue")                                                    \
    X(MEMORY, "memory", "has memory in use that belongs to no process")                                                \
    X(BUSY, "busy", "is busy though no process is listed on it")                                                       \
    X(HOT, "hot", "is throttled for heat")                                                                             \
    X(LOST, "lost", "does not answer")                                                                                 \
    X(UNHEALTHY, "unhealthy", "has a fault that needs an operator")                                                    \
    X(CORDONED, "cordoned", "was taken out of service")                                                                \
    X(UNKNOWN, "unknown", "has not been read yet")                                                                     \
    X(STRAY, "stray", "is used by a job that was not given it")

enum occupancy {
#define X(id, name, text) OCCUPANCY_##id,
    OCCUPANCIES(X)
#undef X
        OCCUPANCY_COUNT
};
const char *occupancy_name(enum occupancy o);
const char *occupancy_text(enum occupancy o);

#define OCCUPANCY_LAG_NS 1000000000LL       /* how long the driver's utilisation says what was */
#define OCCUPANCY_BUSY_RATIO 0.1            /* above this somebody works on it */
#define OCCUPANCY_MEMORY_SHARE (1.0 / 1000) /* of the card's memory: as much as 64 MiB of a card of 64 GiB */

/* What is known of a card now. Absent is never zero: has_x says whether x was read. */
struct occupancy_facts {
    bool is_lost, is_unhealthy, is_hot, is_cordoned;
    bool has_processes; /* the list came */
    unsigned foreign;   /* processes that are not of granted runs */
    unsigned stray;     /* of runs that were given others */
    unsigned ours;      /* processes that are */
    bool is_granted;    /* to one of our runs now: its memory and its work are that run's */
    bool has_memory;
    uint64_t used_bytes;  /* without reserved; where only the sum is known: with it, and idle_bytes is the card's own */
    uint64_t idle_bytes;  /* what it shows when nothing runs on it; 0 where used has no reserved in it */
    uint64_t total_bytes; /* 0: not known */
    bool has_utilisation;
    double utilisation;     /* 0 to 1 */
    int64_t now_ns, end_ns; /* boot clock; end: when the last process on it ended, 0: none did */
};

/* limit_bytes: jobs.free_memory_mb; the larger of it and OCCUPANCY_MEMORY_SHARE of the card counts. */
enum occupancy occupancy_judge(const struct occupancy_facts *f, uint64_t limit_bytes);

/* When the same facts must be judged again because time alone can change the answer; 0: never. */
int64_t occupancy_again_ns(const struct occupancy_facts *f);
