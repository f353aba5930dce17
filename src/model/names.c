#include "model/names.h"

#include <stdlib.h>
#include <string.h>

#define EMPTY UINT32_MAX

void names_done(struct names *n) {
    for (uint32_t i = 0; i < n->count; i++) free(n->of[i]);
    free(n->of);
    free(n->table);
    *n = (struct names){0};
}

static uint32_t *place_of(const struct names *n, const char *name, size_t len) {
    uint64_t h = 1469598103934665603ull;
    for (size_t i = 0; i < len; i++) h = (h ^ (uint8_t)name[i]) * 1099511628211ull;
    for (size_t at = h % n->table_cap;; at = (at + 1) % n->table_cap) {
        uint32_t i = n->table[at];
        if (i == EMPTY || (strlen(n->of[i]) == len && memcmp(n->of[i], name, len) == 0)) return &n->table[at];
    }
}

static void table_make(struct names *n, size_t cap) {
    free(n->table);
    n->table_cap = cap;
    n->table = malloc(cap * sizeof *n->table);
    if (!n->table) abort();
    for (size_t i = 0; i < cap; i++) n->table[i] = EMPTY;
    for (uint32_t i = 0; i < n->count; i++) *place_of(n, n->of[i], strlen(n->of[i])) = i;
}

uint32_t names_put(struct names *n, const char *name, size_t len, uint32_t most) {
    if (!n->table_cap) table_make(n, 64);
    uint32_t *at = place_of(n, name, len);
    if (*at != EMPTY) return *at;
    if (n->count >= most) return NAMES_FULL;
    if (n->count == n->cap) {
        n->cap = n->cap ? 2 * n->cap : 64;
        n->of = realloc(n->of, n->cap * sizeof *n->of);
        if (!n->of) abort();
    }
    char *copy = malloc(len + 1);
    if (!copy) abort();
    memcpy(copy, name, len);
    copy[len] = 0;
    n->of[n->count] = copy;
    *at = n->count++;
    if (n->count * 2u > n->table_cap) table_make(n, n->table_cap * 2);
    return n->count - 1;
}
