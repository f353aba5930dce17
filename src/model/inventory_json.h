/* A card's inventory for programs, and the tables that the views for people share with it. What the driver would not say
 * is left out. Pure. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "model/inventory.h"

enum { INVENTORY_TEXTS = 7, INVENTORY_LIMITS = 4, INVENTORY_WAYS = 3 };

/* Texts of the inventory: the name for programs, the one for people. */
extern const struct inventory_text {
    const char *key, *label;
    size_t offset;
} inventory_texts[INVENTORY_TEXTS];

/* Temperature limits by where they lie: absolute in degrees, and as the distance to the limit. */
extern const struct inventory_limit {
    const char *key, *margin_key, *word;
    size_t offset, margin_offset;
} inventory_limits[INVENTORY_LIMITS];

/* What can be set, by the bits of enum gpu_control. */
extern const struct inventory_way {
    uint32_t bit;
    const char *word;
} inventory_ways[INVENTORY_WAYS];

/* The pairs of one device, into an object that is open. */
void inventory_json(struct buf *b, const struct inventory *i);

/* One entry of "mig_instances", which a GPU with MIG has besides. */
void inventory_json_instance(struct buf *b, const struct inventory *i);
