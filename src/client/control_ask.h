/* Says one thing to a sampler worker over its control socket (model/control.h). */
#pragma once

#include "base/error.h"
#include "base/instance.h"
#include "model/control.h"

int control_ask(const struct instance *i, unsigned worker, enum control_verb verb, struct control_reply *ret,
                struct error *e) MUST_CHECK;
