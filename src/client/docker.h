/* `gpumgr docker run|create` and its kin: the words for Docker with our flags made into labels. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct docker_plan {
    char **argv; /* for the program, ends with NULL; owned as a list, words are of whoever gave them or of `labels` */
    char *labels[4]; /* owned */
    bool wants_help;
};

void docker_plan_done(struct docker_plan *p);

/* argv[0] is the program to call; then come its global flags, run or create, flags, the image and what is for the container, which
 * nobody looks at. Refuses nonsense with one sentence. */
int docker_plan(int argc, char **argv, struct docker_plan *ret, struct error *e) MUST_CHECK;

/* Whether we were called as Docker's plugin, by the name docker-gpu. */
bool docker_plugin_is(const char *argv0);

struct command;
/* `docker gpu ...`: run and create as above, everything else is a command of ours that find knows. */
int docker_plugin(int argc, char **argv, const struct command *(*find)(const char *name));
