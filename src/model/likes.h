/* How long the like of a job took: the last few times of each kind, and what they say of one that has run for a while already.
 * Pure. A table of fixed size: another kind may take a place over, and then nothing is known of the first. */
#pragma once

#include <stdint.h>

enum { LIKES_KEPT = 11 };

struct like {
    uint64_t key;
    uint32_t count; /* ever; the last LIKES_KEPT of them are kept */
    int64_t took_ns[LIKES_KEPT];
};

struct likes {
    struct like *of; /* NULL before the first */
};

void likes_done(struct likes *l);

/* detail: the name of a job; NULL: whatever the user runs. */
uint64_t likes_key(const char *user, const char *detail);
void likes_add(struct likes *l, uint64_t key, int64_t took_ns);

/* The mean of those that took longer than so far, without the extremes: waits are sums, and a median would be too little for
 * those. 0: none did. */
int64_t likes_ns(const struct likes *l, uint64_t key, int64_t so_far_ns);

/* By its own kind; else its limit (0: it has none), which is somebody's word; else by what its user runs. 0: nobody knows. */
int64_t likes_expect(const struct likes *l, uint64_t own, uint64_t user, int64_t limit_ns, int64_t so_far_ns);

/* When a run ends that began at start_ns: as expected of one that has run so long already, and never beyond its limit. Where all
 * of its like were over by now, a quarter more than it took is a guess as good as any. 0: nobody knows. */
int64_t likes_end(const struct likes *l, uint64_t own, uint64_t user, int64_t start_ns, int64_t limit_ns,
                  int64_t now_ns);
