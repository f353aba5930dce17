/* Names of the abilities, for the commands that take one away and for people who ask which there are. */
#include "sim/ability.h"

#include <string.h>

static const struct {
    const char *name, *help;
} abilities[] = {
#define X(id, name, help) [ABILITY_##id] = {name, help},
    ABILITIES(X)
#undef X
};

int ability_by_name(const char *name) {
    for (int i = 0; i < ABILITY_COUNT; i++)
        if (strcmp(abilities[i].name, name) == 0) return i;
    return -1;
}

const char *ability_name(enum ability a) { return abilities[a].name; }

const char *ability_help(enum ability a) { return abilities[a].help; }
