#include "model/hunt.h"

#define MS 1000000ll
#define S (1000 * MS)

#define OFTEN_NS (4 * MS)
#define POOR_SHARE 1000 /* an empty purse: looks may take a thousandth of the time */
#define PURSE_MOST_NS (100 * MS)
#define FILL_SHARE 2000     /* what the purse gets of the time that passes */
#define MORE_NS (500 * MS)  /* one that was found often has company */
#define COST_GUESS_NS 25000 /* before the first look */

void hunt_begin(struct hunt *h, int64_t now_ns) {
    *h = (struct hunt){.purse_ns = PURSE_MOST_NS, .filled_ns = now_ns, .cost_ns = COST_GUESS_NS, .base_ns = h->base_ns};
}

void hunt_arm(struct hunt *h, int64_t now_ns, int64_t for_ns) {
    if (now_ns + for_ns > h->until_ns) h->until_ns = now_ns + for_ns;
}

static int64_t pace_ns(const struct hunt *h) {
    int64_t poor = h->cost_ns * POOR_SHARE;
    return h->purse_ns > 0 || poor < OFTEN_NS ? OFTEN_NS : poor;
}

int64_t hunt_next_ns(const struct hunt *h, int64_t now_ns) {
    int64_t next = INT64_MAX;
    if (now_ns < h->until_ns) next = h->looked_ns + pace_ns(h);
    if (h->base_ns && h->looked_ns + h->base_ns < next) next = h->looked_ns + h->base_ns;
    return next;
}

void hunt_looked(struct hunt *h, int64_t now_ns, int64_t took_ns, bool has_found) {
    h->cost_ns += (took_ns - h->cost_ns) / 8;
    h->purse_ns += (now_ns - h->filled_ns) / FILL_SHARE - took_ns;
    h->filled_ns = now_ns;
    h->looked_ns = now_ns;
    if (has_found) {
        h->purse_ns = PURSE_MOST_NS;
        if (h->until_ns > now_ns + MORE_NS) h->until_ns = now_ns + MORE_NS;
    }
    if (h->purse_ns > PURSE_MOST_NS) h->purse_ns = PURSE_MOST_NS;
    if (h->purse_ns < -PURSE_MOST_NS) h->purse_ns = -PURSE_MOST_NS;
}
