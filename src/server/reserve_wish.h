/* What somebody wants to reserve: for whom, when, which GPUs, whether he may, and whether somebody else has them then. The same for a
 * new one and for one that is to become another. */
#pragma once

#include "server/call.h"
#include "server/reserves.h"

struct reserve_wish {
    struct call *call;
    const struct reservation *was; /* that is to become this; NULL: it is a new one */
    struct reservation v;          /* texts are the call's or was's, or lie in gpus */
    struct buf gpus;
    /* private */
    const struct reservation *other; /* that has one of those that were asked for */
    struct reserve_window when;
    int other_gpu;
    int wanted, found, all;
    const char *ids;
    size_t ids_found;
    enum { RESERVE_PICK_ALL, RESERVE_PICK_OWN, RESERVE_PICK_OTHERS } pick;
};

/* From the fields of the call; what they do not say is as in `was`. Where it fails nothing is left; else v.when and gpus are the
 * caller's to free or to hand on. */
int reserve_wish_read(struct reserve_wish *w, struct error *e) MUST_CHECK;
void reserve_wish_done(struct reserve_wish *w);

bool reserve_is_self(const struct caller *who, const char *name);
/* What an ordinary user may still reserve in the next seven days; but: a reservation that is not counted, or NULL. */
double reserve_hours_left(const struct call *c, const char *user, const struct reservation *but);
