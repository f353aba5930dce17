/* A process becomes the user of an order: groups, group, user, in this order and for good. */
#pragma once

#include "run/order.h"

/* NULL: it is he (or need not be). Else what could not be done, with errno. Not for a process with threads. */
const char *run_become(const struct order *o);
