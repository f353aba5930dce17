/* Tells the samplers that a process is about to come to a GPU, or how often to look while nobody can tell. Sent and
 * forgotten: a sampler that is busy or away loses it, and is told again at the next occasion. */
#pragma once

#include <stdint.h>

#include "base/instance.h"

/* Expect somebody within for_ms (0: no), on the GPU of that minor number (-1: on any), and who (0: not known). Looks without
 * that at least every base_ms (0: none; -1: as it was). */
struct announcement {
    int64_t for_ms, base_ms;
    int32_t minor, pid;
};
void announce_hunt(const struct instance *where, unsigned workers, const struct announcement *what);

/* Everything is to be read anew, now. */
void announce_look(const struct instance *where, unsigned workers);
