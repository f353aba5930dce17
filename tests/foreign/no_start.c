/* Does not start, with the code that FOREIGN_INIT says. */
#include "foreign.h"

EXPORT nvmlReturn_t nvmlInit_v2(void) {
    const char *code = getenv("FOREIGN_INIT");
    return code ? atoi(code) : UNKNOWN;
}
HAS_CARDS(1)
HAS_HANDLES(1)
