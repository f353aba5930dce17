#include "net/gzip.h"

#include <limits.h>
#define ZLIB_CONST
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* the largest, and gzip's head instead of zlib's */
#define GZIP_LEVEL 1
#define GZIP_MEMORY 8

bool gzip_pack(const void *bytes, size_t len, struct buf *ret) {
    z_stream z = {0};
    if (len < GZIP_LEAST || len > UINT_MAX / 2) return false;
    if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) return false;
    buf_reserve(ret, len);
    z.next_in = bytes;
    z.avail_in = (unsigned)len;
    z.next_out = (unsigned char *)ret->s;
    z.avail_out = (unsigned)len; /* no more than it was */
    bool is_good = deflate(&z, Z_FINISH) == Z_STREAM_END;
    if (is_good) ret->len = (size_t)z.total_out;
    deflateEnd(&z);
    return is_good;
}
