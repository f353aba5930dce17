/* A double as the shortest decimal that reads back to the same double. Readings are whole numbers of some decimal step
 * nearly always, and those need no printf: pages, streams and /metrics are made of little else. */
#pragma once

#include <stddef.h>

#define DECIMAL_MAX 32

/* Writes v, which is finite, with its NUL; returns the length. */
size_t decimal_put(char out[DECIMAL_MAX], double v);
