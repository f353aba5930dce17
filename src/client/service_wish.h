/* `gpumgr service add` and `update`: flags become the job that the node is handed, with its key "service". */
#pragma once

#include "client/command.h"

/* argv[0]: "add" or "update", then the name. An exit code. */
int service_wish_run(const struct command *self, int argc, char **argv);
