/* Whether the GPUs that the setting `gpus` names exist. */
#pragma once

#include "base/error.h"
#include "client/settings_load.h"

/* Refuses an unknown GPU and names those there are. Where no driver answers there is nothing to check against, and
 * the sampler will say so when one comes: that is no error. Asks in a child, so a hung driver costs seconds only. */
int gpu_list_check(const struct loaded *l, struct error *e) MUST_CHECK;

/* "0,GPU-1f": the next item of a list into ret, or NULL at its end. Returns where to go on. */
const char *gpu_list_next(const char *list, char *ret, size_t room);
