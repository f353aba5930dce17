/* What would keep the server from starting, found before anything runs: an address that is taken or not ours to take,
 * certificate files that cannot be read. What only the server can know it says itself. */
#pragma once

#include "base/error.h"
#include "client/settings_load.h"

int server_check(const struct loaded *l, struct error *e) MUST_CHECK;
