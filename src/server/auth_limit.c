#include "server/auth_limit.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* A person mistypes a few times; a guesser gets some hundred tries a day. Whoever knows an account's name, or is on the
 * same machine, can make others wait, so those pauses stay short. A right link is never made to wait (accounts.c). */
const struct limit_policy limit_of_address = {5, 1000, 15 * 60 * 1000, 60 * 60 * 1000};
const struct limit_policy limit_of_machine = {10, 1000, 30 * 1000, 60 * 60 * 1000};
const struct limit_policy limit_of_account = {10, 1000, 60 * 1000, 60 * 60 * 1000};

const struct limit_policy *limit_policy_of(const char *address) {
    bool is_here = strncmp(address, "127.", 4) == 0 || strncmp(address, "::ffff:127.", 11) == 0 ||
                   strcmp(address, "::1") == 0 || strcmp(address, "unix") == 0;
    return is_here ? &limit_of_machine : &limit_of_address;
}

static uint64_t mix(uint64_t h) {
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ull;
    return h ^ (h >> 33);
}

static uint64_t hash(uint64_t seed, const void *bytes, size_t n) {
    const unsigned char *b = bytes;
    uint64_t h = mix(seed ^ n);
    for (size_t i = 0; i < n; i++) h = mix(h ^ b[i]) + seed;
    return h ? h : 1; /* 0 is an empty place */
}

uint64_t limit_key_address(const struct limit *l, const char *address) {
    struct in6_addr v6;
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (inet_pton(AF_INET6, address, &v6) != 1) return hash(l->seed, address, strlen(address));
    if (memcmp(&v6, mapped, sizeof mapped) == 0) return hash(l->seed, &v6, sizeof v6);
    return hash(l->seed, &v6, 8);
}

uint64_t limit_key_account(const struct limit *l, const char *name) {
    return hash(mix(l->seed + 1), name, strlen(name));
}

static struct limit_entry *find(struct limit *l, uint64_t key) {
    struct limit_entry *set = l->entry[key % LIMIT_SETS];
    for (int i = 0; i < LIMIT_WAYS; i++)
        if (set[i].key == key) return &set[i];
    return NULL;
}

/* The place of the one with the smallest pause. */
static struct limit_entry *take(struct limit *l, uint64_t key) {
    struct limit_entry *set = l->entry[key % LIMIT_SETS], *worst = &set[0];
    for (int i = 1; i < LIMIT_WAYS; i++)
        if (!set[i].key || (worst->key && set[i].until_ms < worst->until_ms)) worst = &set[i];
    *worst = (struct limit_entry){.key = key};
    return worst;
}

static int64_t pause_of(const struct limit_policy *p, int tries) {
    int64_t pause_ms = p->first_ms;
    if (tries < p->free) return 0;
    for (int i = p->free; i < tries && pause_ms < p->most_ms; i++) pause_ms *= 2;
    return pause_ms < p->most_ms ? pause_ms : p->most_ms;
}

int64_t limit_try(struct limit *l, const struct limit_policy *p, uint64_t key, int64_t now_ms) {
    struct limit_entry *t = find(l, key);
    if (!t) t = take(l, key);
    if (t->tries && now_ms - t->until_ms > p->forget_ms) t->tries = 0;
    if (t->until_ms > now_ms + p->most_ms) t->until_ms = now_ms + p->most_ms; /* the clock was set back */
    if (t->tries && now_ms < t->until_ms) return t->until_ms - now_ms;
    if (t->tries < 1000) t->tries++;
    t->until_ms = now_ms + pause_of(p, t->tries);
    return 0;
}

void limit_good(struct limit *l, uint64_t key) {
    struct limit_entry *t = find(l, key);
    if (t) *t = (struct limit_entry){0};
}
