/* The words that `gpumgr sim` passes on: list, load, fault, heal and what they know. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "sim/children.h"
#include "sim/machine.h"

/* Does what `line` says and appends what to print. Without children (NULL) `load` is refused. Returns NVML's code; when it is not 0 the text is one sentence. */
int commands_run(struct machine *m, struct children *c, bool may_set, const char *line, struct buf *ret);
