/* Where our other executables lie: beside this one (a build directory), else in ../libexec/gpumgr (installed). */
#pragma once

#include <stddef.h>

#include "base/error.h"

#define PROGRAM_CORE "gpumgr-core"
#define PROGRAM_NODE "gpumgr-node"
#define PROGRAM_SERVER "gpumgr-server"
#define PROGRAM_GPUSIM "sim/gpusim"
#define PROGRAM_GPUSIM_TASK "sim/gpusim-task"
#define PROGRAM_SIM_LIBRARY "sim/libnvidia-ml.so.1"

/* `name` is a PROGRAM_ of the above. -ENOENT says where it was looked for. */
int program_find(const char *name, char *ret, size_t room, struct error *e) MUST_CHECK;
int program_self(char *ret, size_t room, struct error *e) MUST_CHECK;

/* execv with the signals as a new program expects them. Returns only when it failed. */
int program_exec(const char *path, char *const argv[], struct error *e);
