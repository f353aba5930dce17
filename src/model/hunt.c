#include "model/hunt.h"

#include <stddef.h>

#define MS 1000000ll
#define S (1000 * MS)

#define OFTEN_NS (4 * MS)
#define OFTEN_SHARE 50    /* while a process begins, the driver takes ten times as long to answer: no more than this */
#define CALM_NS (20 * MS) /* what was announced has been found, or is late */
#define PROMPT_NS (700 * MS)     /* CUDA needs some 0.3 s from its first open until it is listed */
#define QUIET_NS (100 * MS)      /* looks while it cannot be there yet, in case that it can ... */
#define QUIET_LOOKS 4            /* ... and no more of them than these */
#define QUIET_LEAST_NS (40 * MS) /* who is listed sooner than this holds no lock for long */
#define MARGIN_NS (10 * MS)
#define POOR_SHARE 1000 /* an empty purse: looks may take a thousandth of the time */
#define PURSE_MOST_NS (200 * MS)
#define FILL_SHARE 10000    /* what the purse gets of the time that passes ... */
#define REWARD_NS (60 * MS) /* ... and for each one that was found: about what finding one costs on an H200 */
#define ECHO_NS (3 * S)     /* one that is listed goes on opening files: that announces nobody, or one more at most */
#define COST_GUESS_NS 25000 /* before the first look */

void hunt_begin(struct hunt *h, int64_t now_ns) {
    *h = (struct hunt){
        .purse_ns = {PURSE_MOST_NS, PURSE_MOST_NS},
        .filled_ns = now_ns,
        .cost_ns = COST_GUESS_NS,
        .base_ns = h->base_ns
    };
}

static bool is_echo(const struct hunt *h, int64_t now_ns) {
    return h->is_opening && h->found_ns && now_ns - h->found_ns < ECHO_NS;
}

void hunt_arm(struct hunt *h, bool is_opening, int64_t now_ns, int64_t for_ns) {
    h->is_opening = is_opening && (h->is_opening || now_ns >= h->until_ns);
    h->armed_ns = now_ns;
    if (is_echo(h, now_ns) && for_ns > PROMPT_NS) for_ns = PROMPT_NS;
    if (now_ns + for_ns > h->until_ns) h->until_ns = now_ns + for_ns;
}

/* ---- those who are known to come ---- */

static struct hunt_comer *comer_of(struct hunt *h, uint32_t pid) {
    for (unsigned i = 0; i < HUNT_COMERS; i++)
        if (h->comer[i].pid == pid) return &h->comer[i];
    return NULL;
}

void hunt_expect(struct hunt *h, uint32_t pid, int64_t now_ns, int64_t for_ns) {
    struct hunt_comer *c = comer_of(h, pid), *at = &h->comer[0];
    if (!pid || (c && c->until_ns > now_ns)) {
        if (c) c->until_ns = now_ns + for_ns; /* it opens one file after the other: the first one counts */
        return;
    }
    for (unsigned i = 0; i < HUNT_COMERS; i++)
        if (h->comer[i].until_ns < at->until_ns) at = &h->comer[i];
    *(c ? c : at) = (struct hunt_comer){.pid = pid, .opened_ns = now_ns, .until_ns = now_ns + for_ns};
}

void hunt_found(struct hunt *h, uint32_t pid, int64_t now_ns) {
    struct hunt_comer *c = pid ? comer_of(h, pid) : NULL;
    if (!c) return;
    if (c->until_ns > now_ns) h->took_ns[h->learnt++ % HUNT_PAST] = now_ns - c->opened_ns;
    *c = (struct hunt_comer){0};
}

void hunt_gone(struct hunt *h, uint32_t pid) {
    struct hunt_comer *c = pid ? comer_of(h, pid) : NULL;
    if (c) *c = (struct hunt_comer){0};
}

/* When after its opening one is likely to be listed, from and to. */
struct span {
    int64_t from_ns, to_ns;
};

static struct span likely(const struct hunt *h) {
    unsigned n = h->learnt < HUNT_PAST ? h->learnt : HUNT_PAST;
    if (!n) return (struct span){0, 0};
    int64_t least = h->took_ns[0], most = least;
    for (unsigned i = 1; i < n; i++) {
        if (h->took_ns[i] < least) least = h->took_ns[i];
        if (h->took_ns[i] > most) most = h->took_ns[i];
    }
    int64_t margin = n == 1 ? least / 4 : least / 16;
    if (margin < (most - least) / 2) margin = (most - least) / 2;
    if (margin < MARGIN_NS) margin = MARGIN_NS;
    bool is_slow = least - margin >= QUIET_LEAST_NS;
    return (struct span){is_slow ? least - margin : 0, most + margin};
}

/* ---- how often ---- */

static int64_t often_ns(const struct hunt *h) {
    int64_t often = h->cost_ns * OFTEN_SHARE;
    return often < OFTEN_NS ? OFTEN_NS : often > CALM_NS ? CALM_NS : often;
}

/* Containers that start and use no GPU must not make those poor who are known to come. */
enum purse { FOR_ANYBODY, FOR_COMERS };

static int64_t afforded_ns(const struct hunt *h, enum purse p, int64_t pace) {
    int64_t poor = h->cost_ns * POOR_SHARE;
    return h->purse_ns[p] > 0 || poor < pace ? pace : poor;
}

static bool is_quiet(const struct hunt_comer *c, const struct span *when, int64_t now_ns) {
    return c->pid && now_ns < c->until_ns && now_ns - c->opened_ns < when->from_ns;
}

/* The next look for the sake of one comer. */
static int64_t look_for_ns(const struct hunt *h, const struct hunt_comer *c, const struct span *when, int64_t now_ns) {
    int64_t age = now_ns - c->opened_ns, seen_ns = h->looked_ns;
    if (is_quiet(c, when, now_ns)) {
        int64_t since_ns = seen_ns > c->opened_ns ? seen_ns : c->opened_ns;
        int64_t pace = when->from_ns / QUIET_LOOKS > QUIET_NS ? when->from_ns / QUIET_LOOKS : QUIET_NS;
        int64_t look = since_ns + afforded_ns(h, FOR_COMERS, pace), in_time = c->opened_ns + when->from_ns;
        return look < in_time ? look : in_time;
    }
    if (when->from_ns && age <= when->to_ns)
        return seen_ns + (h->purse_ns[FOR_COMERS] > 0 ? OFTEN_NS : CALM_NS); /* any moment now */
    int64_t soon = h->learnt && 2 * when->to_ns > PROMPT_NS ? 2 * when->to_ns : PROMPT_NS;
    return seen_ns + afforded_ns(h, FOR_COMERS, age <= soon ? often_ns(h) : CALM_NS);
}

int64_t hunt_next_ns(const struct hunt *h, int64_t now_ns) {
    int64_t next = INT64_MAX;
    const struct span when = likely(h);
    bool has_quiet = false;
    for (unsigned i = 0; i < HUNT_COMERS; i++) {
        const struct hunt_comer *c = &h->comer[i];
        if (!c->pid || now_ns >= c->until_ns) continue;
        int64_t look = look_for_ns(h, c, &when, now_ns);
        has_quiet |= is_quiet(c, &when, now_ns);
        if (look < next) next = look;
    }
    if (now_ns < h->until_ns) {
        bool is_calm = is_echo(h, now_ns) || now_ns - h->armed_ns > PROMPT_NS;
        int64_t pace = has_quiet ? QUIET_NS : is_calm ? CALM_NS : often_ns(h);
        int64_t look = h->looked_ns + afforded_ns(h, FOR_ANYBODY, pace);
        if (look < next) next = look;
    }
    if (h->base_ns && h->looked_ns + h->base_ns < next) next = h->looked_ns + h->base_ns;
    return next;
}

static bool has_comer(const struct hunt *h, int64_t now_ns) {
    bool has_one = false;
    for (unsigned i = 0; i < HUNT_COMERS; i++) has_one |= h->comer[i].pid && now_ns < h->comer[i].until_ns;
    return has_one;
}

void hunt_looked(struct hunt *h, int64_t now_ns, int64_t took_ns, bool has_found) {
    h->cost_ns += (took_ns - h->cost_ns) / 8;
    h->purse_ns[has_comer(h, now_ns) ? FOR_COMERS : FOR_ANYBODY] -= took_ns;
    for (int p = FOR_ANYBODY; p <= FOR_COMERS; p++) {
        int64_t *purse = &h->purse_ns[p];
        *purse += (now_ns - h->filled_ns) / FILL_SHARE + (has_found ? REWARD_NS : 0);
        if (*purse > PURSE_MOST_NS) *purse = PURSE_MOST_NS;
        if (*purse < -PURSE_MOST_NS) *purse = -PURSE_MOST_NS;
    }
    h->filled_ns = now_ns;
    h->looked_ns = now_ns;
    if (!has_found) return;
    h->found_ns = now_ns;
    /* Another one may have been announced a moment before this one showed. */
    if (h->until_ns > h->armed_ns + PROMPT_NS) h->until_ns = h->armed_ns + PROMPT_NS;
}
