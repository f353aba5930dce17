/* Settings anew, from the program that reads configuration files: this one parses no JSON, and a bad file is one
 * sentence from there. */
#pragma once

#include "model/settings.h"

/* Runs argv[0] `config --resolved` with the flags that follow, for at most five seconds. */
int reload_settings(char *const *argv, struct settings *ret, struct error *e) MUST_CHECK;
