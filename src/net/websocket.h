/* WebSocket frames (RFC 6455), the server's side: pure, strict, bounded. What a browser sends is masked, whole UTF-8 where it is text,
 * and no longer than the caller says; everything else is refused with the code that the closing frame carries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/http_parse.h"

enum websocket_opcode {
    WEBSOCKET_REST, /* goes on with a message that was begun */
    WEBSOCKET_TEXT,
    WEBSOCKET_BINARY,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING,
    WEBSOCKET_PONG,
};

/* Why one side closes. */
enum websocket_code {
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_AWAY = 1001,
    WEBSOCKET_PROTOCOL = 1002,
    WEBSOCKET_NO_CODE = 1005, /* never on the wire: the other side gave none */
    WEBSOCKET_BAD_TEXT = 1007,
    WEBSOCKET_POLICY = 1008,
    WEBSOCKET_TOO_BIG = 1009,
    WEBSOCKET_FAILED = 1011,
};

#define WEBSOCKET_CONTROL_MAX 125

/* Frames as they come in. Zero it, and set max. */
struct websocket {
    size_t max; /* of a message, in bytes */
    /* private */
    uint8_t head[14];
    unsigned have;                                  /* bytes of the head */
    uint64_t left;                                  /* of the payload */
    uint64_t at;                                    /* in the payload, for the mask */
    bool is_in_payload, is_begun, is_text, is_told; /* is_told: what was returned last is done with */
    struct buf message, control;
};
void websocket_done(struct websocket *w);

/* One message, or a control frame; good until the next call. */
struct websocket_message {
    enum websocket_opcode opcode; /* never REST */
    const char *bytes;            /* of a closing frame: the reason */
    size_t len;
    int code; /* of a closing frame */
};

/* Takes bytes; *ret_taken says how many. 1: *ret is there, and there may be more in the rest; 0: all are taken. Negative: the
 * sentence says what is wrong, and *ret_code what the other side is told. */
int websocket_take(struct websocket *w, const void *bytes, size_t n, size_t *ret_taken, struct websocket_message *ret,
                   int *ret_code, struct error *e) MUST_CHECK;

/* Appends a whole frame. A control frame holds WEBSOCKET_CONTROL_MAX bytes; more are cut off. */
void websocket_put(struct buf *b, enum websocket_opcode opcode, const void *bytes, size_t n);
void websocket_put_close(struct buf *b, int code, const char *reason);

/* Whether a request asks for a WebSocket; if so but not in a way that we can answer, negative with a sentence. */
int websocket_asked(const struct http_head *h, struct error *e) MUST_CHECK;

/* What Sec-WebSocket-Accept says to a key. */
#define WEBSOCKET_ACCEPT 29
void websocket_accept(const char *key, char ret[WEBSOCKET_ACCEPT]);
