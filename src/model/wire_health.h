/* What node and server say to each other about services (model/wire_job.h has the whole talk).
 *
 *   HEALTH  node: what one check of a run found. Each is told once and kept nowhere: what counts is the next one.
 *   TRY     server: could a service of this record run on your machine? Its image is there, its port is not another's.
 *   TRIED   node: the answer. */
#pragma once

#include "model/wire_run.h"

struct wire_health {
    struct wire_run_key key;
    bool is_good;
    int32_t took_ms;
    char text[160]; /* what was wrong */
};
void wire_put_health(struct buf *b, const struct wire_health *h);
int wire_get_health(const struct wire_frame *f, struct wire_health *ret, struct error *e) MUST_CHECK;

struct wire_try {
    uint64_t request;
    uint32_t uid; /* whose it is */
    const uint8_t *record;
    size_t record_len;
};
void wire_put_try(struct buf *b, const struct wire_try *t);
int wire_get_try(const struct wire_frame *f, struct wire_try *ret, struct error *e) MUST_CHECK;

struct wire_tried {
    uint64_t request;
    int32_t result; /* 0 or a negative errno with text */
    char text[248];
};
void wire_put_tried(struct buf *b, const struct wire_tried *t);
int wire_get_tried(const struct wire_frame *f, struct wire_tried *ret, struct error *e) MUST_CHECK;
