/* Who opened what, lately: the newest openings, to be matched with the tasks that they lead to. Pure. */
#pragma once

#include <stdint.h>

#define OPENERS_KEPT 1024

struct openers {
    uint32_t head;
    struct {
        int64_t at_ns, tag;
        int32_t pid;    /* 0: not told */
    } of[OPENERS_KEPT]; /* the newest overwrite the oldest */
};

void openers_keep(struct openers *o, int64_t tag, int32_t pid, int64_t now_ns);

/* A task that was listed at start_ns. Its process began at born_ns: what somebody of the same number did before was another. */
struct opener {
    int32_t pid;
    int64_t tag, born_ns, start_ns;
};

/* When it opened a file: the first opening of its pid; of those without a pid the first of that tag that nobody was matched
 * with yet. Never after its start; 0: not seen. */
int64_t openers_find(struct openers *o, const struct opener *who);
