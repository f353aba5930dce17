/* The setting `gpus`: all, or a list of indices and UUIDs. */
#pragma once

#include "base/error.h"
#include "client/settings_load.h"
#include "client/view.h"

/* Refuses an unknown GPU and names those there are. */
int gpu_list_check(const struct loaded *l, const struct view *v, struct error *e) MUST_CHECK;

/* The same for simulated ones: their UUIDs are known once the simulator runs, their indices are known now. */
int gpu_list_check_indices(const struct loaded *l, struct error *e) MUST_CHECK;

/* Whether the GPU at view.of[at] is on it. */
bool gpu_list_has(const char *list, const struct view *v, size_t at);

/* "0,GPU-1f": the next item of a list into ret, or NULL at its end. Returns where to go on. */
const char *gpu_list_next(const char *list, char *ret, size_t room);
