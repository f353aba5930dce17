/* Tells the samplers that a process is about to come to a GPU, or how often to look while nobody can tell. Sent and
 * forgotten: a sampler that is busy or away loses it, and is told again at the next occasion. */
#pragma once

#include <stdint.h>

#include "base/instance.h"

/* Expect somebody on any GPU within for_ms (0: no). Looks without that at least every base_ms (0: none; -1: as it was). */
void announce_hunt(const struct instance *where, unsigned workers, int64_t for_ms, int64_t base_ms);
