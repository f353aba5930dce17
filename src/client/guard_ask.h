/* Asking a running guard; the rest of it is in guard.h. */
#pragma once

#include "client/guard.h"
#include "client/source.h"

/* `gpumgr guard restore` where a gpumgr runs. */
int guard_ask_restore(const struct command *self, const struct loaded *l, const char *gpu);
