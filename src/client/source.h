/* Where a view comes from: the rings of a running gpumgr, else the driver itself. Which library that is: the one that
 * was set, else the simulator's where an instance runs one, else the driver's. */
#pragma once

#include "base/instance.h"
#include "client/direct.h"
#include "client/rings.h"
#include "model/settings.h"

struct source {
    bool has_instance, is_direct, is_direct_open;
    struct instance instance;
    pid_t holder; /* of the instance, or 0 */
    struct rings rings;
    struct direct direct;
    char library[256];
};

enum source_choice { SOURCE_ANY, SOURCE_DRIVER, SOURCE_DAEMON };

/* The error is one sentence that says what to do. */
int source_open(struct source *s, const struct settings *settings, enum source_choice choice, struct error *e)
    MUST_CHECK;
void source_close(struct source *s);

/* Finds the instance and the library, opens neither. */
void source_find(struct source *s, const struct settings *settings);

/* The GPUs now. */
int source_view(struct source *s, struct view *v, struct error *e) MUST_CHECK;
