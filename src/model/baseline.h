/* What a card's limit was before the guard took it: written and synced once, then, so that whoever comes after a guard
 * that died can put it back. The record is there as long as the guard has the card. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct baseline {
    char uuid[96];
    uint32_t lever;    /* enum gpu_lever_kind */
    double value;      /* watts or MHz */
    double memory_mhz; /* with application clocks */
    int64_t real_ns;   /* when it was taken */
};

#define BASELINE_MAX 512 /* bytes of a record */

void baseline_encode(const struct baseline *b, struct buf *out);

/* Strict: a record that is not whole is refused, and the card is left as it is. */
int baseline_decode(struct baseline *b, const char *text, struct error *e) MUST_CHECK;
