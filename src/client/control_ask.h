/* Says one thing to a sampler worker over its control socket (model/control.h). */
#pragma once

#include "base/error.h"
#include "base/instance.h"
#include "model/control.h"

enum { CONTROL_ARGUMENTS = 5 };

/* argument: CONTROL_ARGUMENTS of them, or NULL for a verb that has none. */
int control_ask(const struct instance *i, unsigned worker, enum control_verb verb, const int64_t *argument,
                struct control_reply *ret, struct error *e) MUST_CHECK;
