/* What the server says to a node, and the answers to it (model/wire.h says how all of it lies on the wire). */
#pragma once

#include "model/wire.h"

struct wire_mark {
    char uuid[96];
    int64_t mark;
};

struct wire_welcome {
    char boot_id[40]; /* that the marks belong to */
    int64_t host_mark;
    uint16_t sources;
    int64_t event_mark[WIRE_SOURCES_MAX]; /* by source; 0: none taken */
    uint16_t devices;
    struct wire_mark device[WIRE_DEVICES_MAX]; /* devices that are not here: nothing was taken of them */
    int64_t task_mark;                         /* of the newest TASK taken; 0: none, or a server that knows no tasks */
};

void wire_put_welcome(struct buf *b, const struct wire_welcome *w);
int wire_get_welcome(const struct wire_frame *f, struct wire_welcome *ret, struct error *e) MUST_CHECK;

/* Something for the sampler (model/control.h) or, later, for the node itself. */
struct wire_order {
    uint64_t id;      /* comes back with the result */
    uint32_t verb;    /* enum control_verb: look, guard set, confirm, restore */
    char uuid[96];    /* the GPU, or empty for all */
    int64_t value[4]; /* what follows the GPU in the control message's arguments */
};
struct wire_order_result {
    uint64_t id;
    int32_t result; /* 0 or a negative errno */
    int64_t value;
    char text[160]; /* one sentence when result is negative */
};
void wire_put_order(struct buf *b, const struct wire_order *o);
int wire_get_order(const struct wire_frame *f, struct wire_order *ret, struct error *e) MUST_CHECK;
void wire_put_order_result(struct buf *b, const struct wire_order_result *r);
int wire_get_order_result(const struct wire_frame *f, struct wire_order_result *ret, struct error *e) MUST_CHECK;

struct wire_bye {
    char text[200];
};
void wire_put_bye(struct buf *b, const char *text);
int wire_get_bye(const struct wire_frame *f, struct wire_bye *ret, struct error *e) MUST_CHECK;
