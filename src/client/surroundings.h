/* What a container takes away from gpumgr: the right to set limits, and the sight of other processes. Known from the
 * kernel, not from who started it, so that every runtime is recognised. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct surroundings {
    bool is_container;
    bool sees_all; /* processes of the host have their own pids here */
    bool may_set;  /* CAP_SYS_ADMIN: the driver asks for it before it takes a limit */
};

struct surroundings surroundings_look(void);

/* What is lacking, a sentence each with what to add; NULL ends. Empty outside of containers. */
#define SURROUNDINGS_LACKS_MAX 3
size_t surroundings_lacks(const struct surroundings *s, const char *ret[SURROUNDINGS_LACKS_MAX]);
