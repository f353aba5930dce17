/* The sampler's one control socket (model/control.h). One message, one answer, one connection; root and our own uid
 * only. Served by the sampler's main thread, which no driver call can block. */
#pragma once

#include "base/error.h"
#include "model/control.h"

/* Handles one verb: fills the reply. */
typedef void (*control_fn)(void *ctx, const struct control_request *q, struct control_reply *a);

struct control_verb_row {
    const char *name;
    control_fn run;
};

int control_listen(const char *path, int *ret_fd, struct error *e) MUST_CHECK;

/* Accepts whoever waits and answers; never blocks for longer than a tenth of a second. */
void control_serve(int fd, const struct control_verb_row verbs[CONTROL_VERBS], void *ctx);
