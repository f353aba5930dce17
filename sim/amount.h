/* Numbers as people type them. Each returns false for anything else, and leaves *ret alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool amount_bytes(const char *s, uint64_t *ret); /* 4G, 512M, 1.5GiB, 1048576 (powers of 1024) */
bool amount_share(const char *s, double *ret);   /* 14%, 0.14: of 0 to 1 */
bool amount_seconds(const char *s, double *ret); /* 90, 1.5m, 2h, 300ms */
bool amount_number(const char *s, double lo, double hi, double *ret);
bool amount_count(const char *s, uint32_t lo, uint32_t hi, uint32_t *ret);
