#include "model/hunt.h"

#define MS 1000000ll
#define S (1000 * MS)

#define OFTEN_NS (4 * MS)
#define OFTEN_SHARE 50    /* while a process begins, the driver takes ten times as long to answer: no more than this */
#define CALM_NS (20 * MS) /* what was announced has been found, or is late */
#define PROMPT_NS (700 * MS) /* CUDA needs some 0.3 s from its first open until it is listed */
#define POOR_SHARE 1000      /* an empty purse: looks may take a thousandth of the time */
#define PURSE_MOST_NS (200 * MS)
#define FILL_SHARE 10000    /* what the purse gets of the time that passes ... */
#define REWARD_NS (60 * MS) /* ... and for each one that was found: about what finding one costs on an H200 */
#define ECHO_NS (3 * S)     /* one that is listed goes on opening files: that announces nobody, or one more at most */
#define COST_GUESS_NS 25000 /* before the first look */

void hunt_begin(struct hunt *h, int64_t now_ns) {
    *h = (struct hunt){.purse_ns = PURSE_MOST_NS, .filled_ns = now_ns, .cost_ns = COST_GUESS_NS, .base_ns = h->base_ns};
}

static bool is_echo(const struct hunt *h, int64_t now_ns) { return h->found_ns && now_ns - h->found_ns < ECHO_NS; }

void hunt_arm(struct hunt *h, int64_t now_ns, int64_t for_ns) {
    h->armed_ns = now_ns;
    if (is_echo(h, now_ns) && for_ns > PROMPT_NS) for_ns = PROMPT_NS;
    if (now_ns + for_ns > h->until_ns) h->until_ns = now_ns + for_ns;
}

static int64_t pace_ns(const struct hunt *h, int64_t now_ns) {
    bool is_calm = is_echo(h, now_ns) || now_ns - h->armed_ns > PROMPT_NS;
    int64_t often = h->cost_ns * OFTEN_SHARE, poor = h->cost_ns * POOR_SHARE;
    if (often < OFTEN_NS) often = OFTEN_NS;
    int64_t pace = is_calm || often > CALM_NS ? CALM_NS : often;
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
        h->found_ns = now_ns;
        /* Another one may have been announced a moment before this one showed. */
        if (h->until_ns > h->armed_ns + PROMPT_NS) h->until_ns = h->armed_ns + PROMPT_NS;
    }
    if (h->purse_ns > PURSE_MOST_NS) h->purse_ns = PURSE_MOST_NS;
    if (h->purse_ns < -PURSE_MOST_NS) h->purse_ns = -PURSE_MOST_NS;
}
