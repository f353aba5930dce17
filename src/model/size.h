/* Amounts of memory as people write them: 40GiB, 512MiB, 1.5GB, 40G. G, M, K and T alone are binary, as the driver's own
 * tools count; a bare number is refused, because nobody knows what its writer meant. Pure. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* From 1 byte to 1 PiB. The sentence begins with the text in quotes. */
int size_parse(const char *text, uint64_t *ret_bytes, struct error *e) MUST_CHECK;

#define SIZE_TEXT 32
/* As size_parse takes it back, exactly: in the largest unit of which it is a whole number. */
void size_text(uint64_t bytes, char ret[SIZE_TEXT]);
