/* What the cards are: identity, link, limits, clocks, MIG layout. For people a block per GPU, for programs an object; what
 * the driver would not say is left out of both. */
#pragma once

#include "base/buf.h"
#include "client/output.h"
#include "client/view.h"

/* A block per GPU. */
void inventory_text(const struct view *v, const struct screen *s, struct buf *b);

/* The pairs of one device, into an object that is open. */
void inventory_pairs(const struct view *v, size_t at, struct buf *b);
