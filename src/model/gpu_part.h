/* Cards that are cut into instances (MIG): who may have one of these. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether a part of a card does for a job. Who asks for cards gets cards: a part is for who names it, or says how much memory is
 * enough; or where there are no whole ones. Several parts are only for who names them: a CUDA process sees no more than one. */
static inline bool plan_part_does(int gpus, uint64_t memory_bytes, bool is_scoped, bool has_cards) {
    return is_scoped || (gpus == 1 && (memory_bytes > 0 || !has_cards));
}
