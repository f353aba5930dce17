/* The parts of `gpumgr guard`. */
#pragma once

#include "client/command.h"
#include "client/flags.h"
#include "client/output.h"
#include "client/settings_load.h"
#include "client/view.h"

void guard_table(const struct view *v, const struct screen *s, struct buf *b);
void guard_json(const struct view *v, struct buf *b); /* one object and a line break */

/* What a person wants set: one of a limit, a clock and a target. */
struct guard_wish {
    enum { WISH_LIMIT_W, WISH_CLOCK_MHZ, WISH_TARGET_C } what;
    double value;
    int64_t for_ms, confirm_ms; /* confirm_ms 0: need not be confirmed */
};

struct guard_words { /* of the command line */
    const char *limit, *clock, *target, *for_time, *confirm;
};

int guard_wish_parse(const struct guard_words *w, struct guard_wish *ret, struct error *e) MUST_CHECK;

/* Whether this card can have it: -EINVAL with a sentence that names the range where it cannot, -EAGAIN where that is not
 * known. Nothing is asked of anybody. */
int guard_wish_check(const struct guard_wish *w, const struct view_device *d, struct error *e) MUST_CHECK;

/* The words after `gpumgr guard`. Each returns an exit code. `gpu` as gpu_pick takes it. */
int guard_set(const struct command *self, const struct loaded *l, const char *gpu, const struct guard_wish *w);
int guard_confirm(const struct command *self, const struct loaded *l, const char *gpu);
int guard_restore(const struct command *self, const struct loaded *l, const char *gpu);
