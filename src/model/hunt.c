#include "model/hunt.h"

#define MS 1000000ll
#define S (1000 * MS)

#define OFTEN_NS (4 * MS)
#define CALM_NS (20 * MS)    /* what was announced has been found, or is late */
#define PROMPT_NS (700 * MS) /* CUDA needs some 0.3 s from its first open until it is listed */
#define POOR_SHARE 1000      /* an empty purse: looks may take a thousandth of the time */
#define PURSE_MOST_NS (20 * MS)
#define FILL_SHARE 10000    /* what the purse gets of the time that passes ... */
#define REWARD_NS (3 * MS)  /* ... and for each one that was found: about what finding one costs */
#define COST_GUESS_NS 25000 /* before the first look */

void hunt_begin(struct hunt *h, int64_t now_ns) {
    *h = (struct hunt){.purse_ns = PURSE_MOST_NS, .filled_ns = now_ns, .cost_ns = COST_GUESS_NS, .base_ns = h->base_ns};
}

void hunt_arm(struct hunt *h, int64_t now_ns, int64_t for_ns) {
    h->armed_ns = now_ns;
    h->has_found = false;
    if (now_ns + for_ns > h->until_ns) h->until_ns = now_ns + for_ns;
}

static int64_t pace_ns(const struct hunt *h, int64_t now_ns) {
    bool is_calm = h->has_found || now_ns - h->armed_ns > PROMPT_NS;
    int64_t pace = is_calm ? CALM_NS : OFTEN_NS, poor = h->cost_ns * POOR_SHARE;
    return h->purse_ns > 0 || poor < pace ? pace : poor;
}

int64_t hunt_next_ns(const struct hunt *h, int64_t now_ns) {
    int64_t next = INT64_MAX;
    if (now_ns < h->until_ns) next = h->looked_ns + pace_ns(h, now_ns);
    if (h->base_ns && h->looked_ns + h->base_ns < next) next = h->looked_ns + h->base_ns;
    return next;
}

void hunt_looked(struct hunt *h, int64_t now_ns, int64_t took_ns, bool has_found) {
    h->cost_ns += (took_ns - h->cost_ns) / 8;
    h->purse_ns += (now_ns - h->filled_ns) / FILL_SHARE - took_ns + (has_found ? REWARD_NS : 0);
    h->filled_ns = now_ns;
    h->looked_ns = now_ns;
    if (has_found) {
        h->has_found = true;
        /* Another one may have been announced a moment before this one showed. */
        if (h->until_ns > h->armed_ns + PROMPT_NS) h->until_ns = h->armed_ns + PROMPT_NS;
    }
    if (h->purse_ns > PURSE_MOST_NS) h->purse_ns = PURSE_MOST_NS;
    if (h->purse_ns < -PURSE_MOST_NS) h->purse_ns = -PURSE_MOST_NS;
}
