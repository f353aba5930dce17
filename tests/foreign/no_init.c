/* A library, but of something else: it cannot be started. */
#include "foreign.h"

HAS_CARDS(1)
HAS_HANDLES(1)
