/* A view shown again and again until a signal comes: in place on a terminal, one after another elsewhere. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "client/source.h"

typedef void (*frame_fn)(const struct view *v, const void *ctx, struct buf *out);

struct frames {
    double every_s; /* 0: when there is news */
    bool in_place;  /* where it is a terminal */
    frame_fn print;
    const void *ctx;
};

/* Both return an exit code; what cannot be shown is said. */
int frames_show(struct source *s, const struct frames *f) MUST_CHECK;
int frames_show_once(struct source *s, const struct frames *f, struct error *e) MUST_CHECK;
