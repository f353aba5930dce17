/* How often somebody may try to sign in: a few times freely, then after a pause that doubles. Keys are addresses and
 * accounts. The table has a fixed size: who comes from very many addresses pushes out the smallest pauses, and memory
 * does not grow. Pure: time is an argument. */
#pragma once

#include <stdint.h>

enum { LIMIT_SETS = 1024, LIMIT_WAYS = 4 };

struct limit_policy {
    int free;          /* tries without a pause */
    int64_t first_ms;  /* the first pause */
    int64_t most_ms;   /* pauses grow up to this */
    int64_t forget_ms; /* quiet for so long after the pause: everything is forgotten */
};

extern const struct limit_policy limit_of_address, limit_of_machine, limit_of_account;

/* Of this machine's own addresses many people come, through tunnels and proxies: theirs is limit_of_machine. */
const struct limit_policy *limit_policy_of(const char *address);

struct limit {
    uint64_t seed; /* random: nobody can choose addresses that meet in one set */
    struct limit_entry {
        uint64_t key;
        int64_t until_ms; /* no try before this */
        int tries;
    } entry[LIMIT_SETS][LIMIT_WAYS];
};

/* IPv6 addresses of one /64 are one: it is one customer's. Other texts are hashed as they are. */
uint64_t limit_key_address(const struct limit *l, const char *address);
uint64_t limit_key_account(const struct limit *l, const char *name);

/* How long it has to wait; 0: it may try, and this counts as a try (before its outcome is known: many at the same time
 * are many tries). */
int64_t limit_try(struct limit *l, const struct limit_policy *p, uint64_t key, int64_t now_ms);

/* It was the right one: forget the tries. */
void limit_good(struct limit *l, uint64_t key);
