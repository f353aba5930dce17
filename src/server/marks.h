/* How far each stream of each node was taken: what is stored beside the readings, and told to a node that comes back, so
 * that nothing is lost or taken twice. Marks count within one boot of the node's machine. Memory and text only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/wire.h"

struct mark {
    char uuid[96];
    int64_t mark;
};

struct marks {
    char node[64], boot_id[40];
    int64_t host, task, event[WIRE_SOURCES_MAX];
    struct mark *of;
    size_t count;
};

struct marks_list {
    struct marks **of;
    size_t count;
};

#define MARKS_NODES_MAX 4096

void marks_list_done(struct marks_list *l);

/* The marks of a node; made when there are none. Another boot id: they start anew. */
struct marks *marks_of(struct marks_list *l, const char *node, const char *boot_id);

/* The mark of a device, made with 0 when there is none; NULL: there are too many. */
struct mark *marks_device(struct marks *m, const char *uuid);

/* As text, and back. Decoding refuses what it would not write. */
void marks_encode(const struct marks_list *l, struct buf *b);
int marks_decode(struct marks_list *ret, const char *text, size_t len, struct error *e) MUST_CHECK;
