/* "Did you mean": the known word that a mistyped one is closest to. */
#pragma once

#include <stddef.h>

struct nearest {
    const char *typed, *best;
    size_t distance;
};

/* Shows one known word to the search; afterwards n->best is the closest so far, or NULL when none is close enough
 * to be what was meant. '-', '_' and '.' count as equal. Start with {.typed = word}. */
void nearest_offer(struct nearest *n, const char *known);

/* Letters to change, add, drop or swap to make one of the other; long words are compared by their first 63 bytes. */
size_t nearest_distance(const char *a, const char *b);
