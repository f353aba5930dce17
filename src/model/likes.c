#include "model/likes.h"

#include <stdlib.h>

#define SLOTS 4096

void likes_done(struct likes *l) {
    free(l->of);
    *l = (struct likes){0};
}

uint64_t likes_key(const char *user, const char *detail) {
    uint64_t h = 1469598103934665603ull;
    for (; *user; user++) h = (h ^ (uint8_t)*user) * 1099511628211ull;
    h = (h ^ (detail ? 0xff : 0xfe)) * 1099511628211ull; /* bytes that no name has */
    for (; detail && *detail; detail++) h = (h ^ (uint8_t)*detail) * 1099511628211ull;
    return h ? h : 1;
}

void likes_add(struct likes *l, uint64_t key, int64_t took_ns) {
    if (took_ns <= 0) return;
    if (!l->of) l->of = calloc(SLOTS, sizeof *l->of);
    if (!l->of) abort();
    struct like *k = &l->of[key % SLOTS];
    if (k->key != key) *k = (struct like){.key = key};
    k->took_ns[k->count++ % LIKES_KEPT] = took_ns;
}

int64_t likes_ns(const struct likes *l, uint64_t key, int64_t so_far_ns) {
    if (!l->of) return 0;
    const struct like *k = &l->of[key % SLOTS];
    int64_t longer[LIKES_KEPT];
    uint32_t kept = k->count < LIKES_KEPT ? k->count : LIKES_KEPT, n = 0;
    if (k->key != key) return 0;
    for (uint32_t i = 0; i < kept; i++) {
        if (k->took_ns[i] <= so_far_ns) continue;
        uint32_t at = n++;
        for (; at > 0 && longer[at - 1] > k->took_ns[i]; at--) longer[at] = longer[at - 1];
        longer[at] = k->took_ns[i];
    }
    uint32_t cut = n / 5; /* at each end: one that hung for days says nothing about the next */
    int64_t sum = 0;
    for (uint32_t i = cut; i < n - cut; i++) sum += longer[i] / (n - 2 * cut);
    return sum;
}

int64_t likes_expect(const struct likes *l, uint64_t own, uint64_t user, int64_t limit_ns, int64_t so_far_ns) {
    int64_t ns = likes_ns(l, own, so_far_ns);
    if (!ns && !limit_ns) ns = likes_ns(l, user, so_far_ns);
    return limit_ns && (!ns || ns > limit_ns) ? limit_ns : ns;
}

int64_t likes_end(const struct likes *l, uint64_t own, uint64_t user, int64_t start_ns, int64_t limit_ns,
                  int64_t now_ns) {
    int64_t so_far = now_ns > start_ns ? now_ns - start_ns : 0, ns = likes_expect(l, own, user, limit_ns, so_far);
    if (!ns && likes_expect(l, own, user, 0, 0)) ns = so_far + so_far / 4 + 1;
    return ns ? start_ns + ns : 0;
}
