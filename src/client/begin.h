/* What commands that take settings begin with: flags, --help, no words, the settings. */
#pragma once

#include "client/command.h"
#include "client/settings_load.h"

#define COMMAND_GOES_ON (-1)

/* COMMAND_GOES_ON, or the exit code to end with: help was asked for, or the input is wrong and that was said. Showing
 * ret->warning is the caller's. */
int command_begin(const struct command *self, int argc, char **argv, const struct flag *own, size_t own_count,
                  enum load_mode mode, struct loaded *ret) MUST_CHECK;
