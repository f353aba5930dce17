/* Names, each once, by the order in which they came: a number for a name. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NAMES_FULL UINT32_MAX

struct names {
    char **of;
    uint32_t count;
    uint32_t *table; /* hash table of numbers */
    size_t cap, table_cap;
};

void names_done(struct names *n);
/* The number of a name, which is added if need be. NAMES_FULL: it is new, and there are `most` already. */
uint32_t names_put(struct names *n, const char *name, size_t len, uint32_t most);
