/* HTTP/1.1 answers as bytes, as they come in: a head, then a body by length, by chunks, or up to the end of the connection. Pure
 * and strict like http_parse.h, with a limit on everything; an answer that can be read in two ways is refused. For who talks
 * to Unix sockets without libcurl. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/http_parse.h"

enum http_reader_stage {
    HTTP_READER_HEAD,
    HTTP_READER_LENGTH,
    HTTP_READER_CHUNKS,
    HTTP_READER_TO_END,
    HTTP_READER_WHOLE
};

/* All zero is a new one. */
struct http_reader {
    enum http_reader_stage stage;
    struct buf head; /* until it is whole */
    size_t looked;   /* of head */
    int status;      /* 0: the head is not whole */
    bool keeps_alive;
    uint64_t left;
    struct http_chunks chunks;
};

void http_reader_done(struct http_reader *r); /* leaves a new one */

/* Takes what it can of one answer and appends its body to `body`, never beyond max bytes there. Returns how many bytes it took:
 * fewer than len only when the answer is whole (stage). */
long http_reader_take(struct http_reader *r, const char *bytes, size_t len, size_t max, struct buf *body,
                      struct error *e) MUST_CHECK;

/* The connection ended: 0 when that is how the answer ends, -EPIPE when something is missing. */
int http_reader_end(struct http_reader *r, struct error *e) MUST_CHECK;
