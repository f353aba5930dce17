/* A link in the browser of whoever calls. */
#pragma once

#include <stdbool.h>

/* False: there is none, there is nowhere to show it, or the caller is root. The link is on no command line. */
bool browser_open(const char *url);
