#include "client/version.h"

const char *gpumgr_version(void) { return GPUMGR_VERSION; }
