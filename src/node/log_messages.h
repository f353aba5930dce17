/* A container's log as its engine sends it with times: messages, each with the time when it was written. What comes out is what the
 * container wrote. An engine that ended its answer is asked again from the newest time on, and what was passed on before is left out
 * then. Pure: bytes in, bytes out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct log_messages {
    bool is_tty;       /* no frames: a line is a message, and so is each piece of a very long one */
    int64_t newest_ns; /* of what was passed on; 0: nothing yet */
    bool has_news;     /* something was passed on since log_messages_again */
    /* private */
    unsigned same, skip; /* messages of newest_ns: passed on, and to be left out */
    size_t skip_bytes;   /* of the one after those: it was cut off */
    uint8_t frame[8];    /* kind, three zeros, length in big endian */
    unsigned have;       /* of frame */
    uint32_t left;       /* of the frame's bytes */
    char stamp[40];      /* its time and a blank */
    unsigned stamp_len;
    bool is_text, is_left_out; /* is_text: its time is over */
    int64_t at_ns;
    size_t length; /* of its text so far */
};

void log_messages_take(struct log_messages *m, const char *bytes, size_t n, struct buf *ret);

/* The next bytes are another answer's, of what came since newest_ns. */
void log_messages_again(struct log_messages *m);
