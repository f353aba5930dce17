#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { WORD_MAX = 63 };

static char fold(char c) { return c == '-' || c == '.' ? '_' : (char)tolower((unsigned char)c); }

static size_t min2(size_t a, size_t b) { return a < b ? a : b; }

/* Optimal string alignment; three rows are enough. */
size_t nearest_distance(const char *a, const char *b) {
    size_t rows[3][WORD_MAX + 1], m = min2(strlen(a), WORD_MAX), n = min2(strlen(b), WORD_MAX);
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n; j++) before[j] = last[j] = j;
    for (size_t i = 1; i <= m; i++) {
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            bool same = fold(a[i - 1]) == fold(b[j - 1]);
            row[j] = min2(last[j - 1] + !same, min2(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]))
                row[j] = min2(row[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last, last = row, row = free_row;
    }
    return last[n];
}

void nearest_offer(struct nearest *n, const char *known) {
    size_t distance = nearest_distance(n->typed, known), longest = strlen(known);
    if (distance > 1 + longest / 4) return; /* too far to be a slip */
    if (n->best && distance >= n->distance) return;
    n->best = known;
    n->distance = distance;
}
