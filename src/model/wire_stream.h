/* Streams of bytes between the server and something on a node: the port of a run or a container, a terminal in one. They have a
 * connection of their own beside the link (flow.sock beside link.sock), so that they never stand before a reading:
 *
 *   node:    STREAM_HELLO, as the first frame
 *   server:  STREAM_OPEN    a number that is not in use, what is wanted, and for whom
 *   node:    STREAM_OPENED  0, or a negative errno with a sentence: then the stream is over
 *   both:    STREAM_DATA    at most as many bytes as the other side has room for
 *   both:    STREAM_WINDOW_MORE  so many bytes more: those that were given on. Both begin with WIRE_STREAM_WINDOW
 *   both:    STREAM_END     no more data from this side (a half-close)
 *   both:    STREAM_CLOSE   the stream is over; what is under way to this side is dropped. Answered by nothing
 *   server:  STREAM_SIZE    of a terminal
 *
 * Whoever sends more than there is room for is cut off: so memory is bounded by the number of streams, however slow a browser is, and
 * nobody ever waits before he reads the connection. A stream is over when both have said END, or one CLOSE. */
#pragma once

#include "model/wire_run.h"

#define WIRE_STREAM_WINDOW (512u << 10)
#define WIRE_STREAM_DATA_MAX (64u << 10)
#define WIRE_STREAMS_MAX 512 /* of one node */

enum wire_stream_kind {
    WIRE_STREAM_RUN = 1,   /* a port that a run listens at; port 0: the one that it declared */
    WIRE_STREAM_CONTAINER, /* a port within a container */
    WIRE_STREAM_EXEC,      /* a program within a container, with a terminal: the argument says which */
    WIRE_STREAM_LOG,       /* what a container wrote, and writes: the last `rows` lines first */
    WIRE_STREAM_KINDS
};

struct wire_stream_hello {
    char node[64], version[32];
};
void wire_put_stream_hello(struct buf *b, const struct wire_stream_hello *h);
int wire_get_stream_hello(const struct wire_frame *f, struct wire_stream_hello *ret, struct error *e) MUST_CHECK;

struct wire_stream_open {
    uint32_t id;
    uint8_t kind;
    struct wire_run_key key; /* of a run */
    char container[72];      /* its id */
    uint16_t port;
    char account[64]; /* who asks, as the server knows him; the node decides what he may */
    bool is_admin;
    uint16_t rows, columns; /* of a terminal */
    char argument[1024];
};
void wire_put_stream_open(struct buf *b, const struct wire_stream_open *o);
int wire_get_stream_open(const struct wire_frame *f, struct wire_stream_open *ret, struct error *e) MUST_CHECK;

struct wire_stream_opened {
    uint32_t id;
    int32_t result;
    char text[248];
};
void wire_put_stream_opened(struct buf *b, const struct wire_stream_opened *o);
int wire_get_stream_opened(const struct wire_frame *f, struct wire_stream_opened *ret, struct error *e) MUST_CHECK;

struct wire_stream_data {
    uint32_t id;
    const uint8_t *bytes; /* in the frame */
    size_t len;           /* 1 to WIRE_STREAM_DATA_MAX */
};
void wire_put_stream_data(struct buf *b, const struct wire_stream_data *d);
int wire_get_stream_data(const struct wire_frame *f, struct wire_stream_data *ret, struct error *e) MUST_CHECK;

/* WINDOW: value is bytes; END: 0, or an exit code to whoever asked at the node's own socket; CLOSE: 0; SIZE: rows << 16 | columns. */
struct wire_stream_word {
    uint32_t id, value;
};
void wire_put_stream_word(struct buf *b, enum wire_type type, const struct wire_stream_word *w);
int wire_get_stream_word(const struct wire_frame *f, struct wire_stream_word *ret, struct error *e) MUST_CHECK;
