#include "model/occupancy.h"

#include <stddef.h>

static const struct {
    const char *name, *text;
} words[] = {
#define X(id, name, text) [OCCUPANCY_##id] = {name, text},
    OCCUPANCIES(X)
#undef X
};

const char *occupancy_name(enum occupancy o) { return (unsigned)o < OCCUPANCY_COUNT ? words[o].name : "unknown"; }
const char *occupancy_text(enum occupancy o) {
    return words[(unsigned)o < OCCUPANCY_COUNT ? o : OCCUPANCY_UNKNOWN].text;
}

/* The figure is a mean over the time before it was read: right after an end it is still that of the process that ended. */
static bool is_lagging(const struct occupancy_facts *f) {
    return f->end_ns && f->now_ns - f->end_ns < OCCUPANCY_LAG_NS;
}

static bool is_empty(const struct occupancy_facts *f, uint64_t limit_bytes) {
    uint64_t share = (uint64_t)((double)f->total_bytes * OCCUPANCY_MEMORY_SHARE);
    uint64_t most = limit_bytes > share ? limit_bytes : share;
    return f->used_bytes <= f->idle_bytes || f->used_bytes - f->idle_bytes <= most;
}

static bool is_busy(const struct occupancy_facts *f) {
    return f->has_utilisation && f->utilisation > OCCUPANCY_BUSY_RATIO;
}

enum occupancy occupancy_judge(const struct occupancy_facts *f, uint64_t limit_bytes) {
    if (f->is_lost) return OCCUPANCY_LOST;
    if (f->is_cordoned) return OCCUPANCY_CORDONED;
    if (f->is_unhealthy) return OCCUPANCY_UNHEALTHY;
    if (f->foreign) return OCCUPANCY_FOREIGN;
    if (f->stray) return OCCUPANCY_STRAY;
    if (f->is_hot) return OCCUPANCY_HOT;
    if (!f->has_processes || !f->has_memory) return OCCUPANCY_UNKNOWN;
    if (f->is_granted) return OCCUPANCY_FREE;
    if (!is_empty(f, limit_bytes)) return OCCUPANCY_MEMORY;
    if (is_busy(f) && !is_lagging(f)) return OCCUPANCY_BUSY;
    return OCCUPANCY_FREE;
}

int64_t occupancy_again_ns(const struct occupancy_facts *f) {
    return is_busy(f) && is_lagging(f) ? f->end_ns + OCCUPANCY_LAG_NS : 0;
}
