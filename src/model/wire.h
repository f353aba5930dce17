/* What node and server say to each other: frames over a byte stream, a Unix socket here, TLS to another machine.
 *
 *   frame    u32 length of what follows (at most 4 MiB), u8 type, u8 version, u16 zero, body; little endian
 *   session  node: HELLO, then one INVENTORY a device; server: WELCOME with the marks it has; node: what is newer than
 *            they are, then rounds about once a second, each ending in ROUND. Another HELLO on the same connection
 *            begins anew (the machine's GPUs changed): device numbers before it mean nothing after it.
 *   marks    Every SAMPLE, EVENT and HOST carries a mark that grows within its stream: a device's UUID, an event source,
 *            the host. The server keeps the mark of the newest one it took, stores it with what it stores, and tells it in
 *            WELCOME; the node's ring is the spool. So nothing is lost or taken twice, whoever dies. A server takes
 *            nothing whose mark is not larger than the one it has. Marks count within one boot id: another one, and
 *            they start anew. boot_ns is no mark: of two threads that read one card the later may publish first.
 *   versions A body may grow at its end, and so may each record in it: a reader skips what it does not know. Unknown types
 *            are skipped too. What changes its meaning gets another version, and readers of the old one skip it.
 *            Metrics are told by name in HELLO; values carry the node's ids, which a wire_map turns into the reader's.
 *
 * Encoding appends to a buf. Decoding looks at nothing outside the frame, and writes *ret only when all of it is sound.
 * Pure: no I/O, no clock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/inventory.h"
#include "model/wire_type.h"

#define WIRE_VERSION 1
#define WIRE_FRAME_MAX (4u << 20)
#define WIRE_HEAD_BYTES 8
#define WIRE_DEVICES_MAX 512
#define WIRE_SOURCES_MAX 64 /* event streams of a node: its rings, and later its own */
#define WIRE_METRICS_MAX 1024
#define WIRE_NO_DEVICE UINT16_MAX

struct wire_frame {
    uint8_t type, version;
    const uint8_t *body; /* within the bytes that were given */
    size_t len;
};

/* Looks for a frame at the start of bytes. Returns how many bytes it takes with its head, 0 when more must come first,
 * or a negative errno when this is no frame of ours: then the stream is lost, for nobody knows where the next begins. */
int wire_frame(const void *bytes, size_t n, struct wire_frame *ret, struct error *e) MUST_CHECK;

/* The same over bytes that come in pieces. Holds at most one frame and a piece. */
struct wire_stream {
    struct buf bytes;
    size_t taken;
};

void wire_stream_done(struct wire_stream *s);
void wire_stream_add(struct wire_stream *s, const void *bytes, size_t n);

/* 1: a frame, good until the stream is touched again; 0: none yet; negative: the stream is lost. */
int wire_stream_next(struct wire_stream *s, struct wire_frame *ret, struct error *e) MUST_CHECK;

/* For encoders: a frame around what is appended between the two. */
size_t wire_begin(struct buf *b, enum wire_type type);
void wire_end(struct buf *b, size_t from);

/* ---- the beginning ---- */

/* Names in the order of the node's ids. Decoded they point into the frame. */
struct wire_names {
    uint16_t count;
    const uint8_t *at;
    size_t len;
};

struct wire_hello {
    char node[64], boot_id[40], version[32];
    int64_t boot_ns, real_ns; /* the node's clocks as it said this */
    uint64_t catalogue;       /* metric_catalogue_hash of the node */
    uint16_t devices;         /* INVENTORY frames to come */
    uint16_t sources;         /* event streams: EVENT and DRIVER carry their number */
    struct wire_names gpu, host;
};

/* Adds this program's own two catalogues; the names in h are not looked at. */
void wire_put_hello(struct buf *b, const struct wire_hello *h);
int wire_get_hello(const struct wire_frame *f, struct wire_hello *ret, struct error *e) MUST_CHECK;

/* The node's metric ids as ours: of[theirs] is ours, or -1 where we have no such metric. */
struct wire_map {
    uint16_t count;
    int16_t of[WIRE_METRICS_MAX];
};
void wire_map_make(struct wire_map *m, const struct wire_names *names, int (*find)(const char *name));

/* source: whose ring it is in. i->parent is a device number of this session. */
void wire_put_inventory(struct buf *b, uint16_t device, uint16_t source, const struct inventory *i);
int wire_get_inventory(const struct wire_frame *f, uint16_t *device, uint16_t *source, struct inventory *ret,
                       struct error *e) MUST_CHECK;
