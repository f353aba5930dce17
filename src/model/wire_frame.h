/* What the decoders of model/wire* begin and end with. */
#pragma once

#include <errno.h>

#include "model/wire.h"
#include "model/wire_code.h"

static inline int wire_open(const struct wire_frame *f, enum wire_type type, struct wire_in *in, struct error *e) {
    *in = (struct wire_in){.at = f->body, .end = f->body + f->len};
    if (f->type != type) return fail(e, -EPROTO, "a frame of type %u where %u is meant", f->type, (unsigned)type);
    if (f->version != WIRE_VERSION) return fail(e, -EPROTO, "a frame of version %u; this gpumgr knows 1", f->version);
    return 0;
}

static inline int wire_bad(const struct wire_frame *f, struct error *e) {
    return fail(e, -EPROTO, "a frame of type %u that makes no sense", f->type);
}

/* model/wire_run.c */
struct wire_run_key;
struct wire_run_key wire_in_key(struct wire_in *in);
void wire_out_key(struct buf *b, const struct wire_run_key *k);
