/* A view for people: a line per GPU, its MIG instances under it, what is wrong and what happened lately below. */
#pragma once

#include "base/buf.h"
#include "client/output.h"
#include "client/view.h"

struct status_look {
    struct screen screen;
    double hot_c; /* the threshold set, or NaN: each card's own */
};

void status_table(const struct view *v, const struct status_look *look, struct buf *b);
