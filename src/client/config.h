/* The effective configuration as JSON, for `gpumgr config` and for the support archive. */
#pragma once

#include "base/buf.h"
#include "client/settings_load.h"

enum config_secrets { CONFIG_SHOW_ALL, CONFIG_HIDE_SECRETS };

void config_json(const struct loaded *l, enum config_secrets secrets, struct buf *b);
