/* The dashboard's files, embedded at build time by web/bundle.mjs. All are constant memory and may be used from any
 * thread. Paths are relative to the server's base path and have no leading slash. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct page_asset {
    const char *path;
    const char *type;          /* Content-Type */
    const char *etag;          /* with its quotes */
    const unsigned char *body; /* as it is */
    size_t size;
    const unsigned char *gzip; /* the same for Accept-Encoding: gzip; NULL: none */
    size_t gzip_size;
    bool is_forever; /* its name changes with its content: cache it for good */
};

extern const struct page_asset page_assets[];
extern const size_t page_asset_count;

/* The asset with this path; NULL where there is none. "index.html" itself is not found: see pages_index. */
const struct page_asset *pages_find(const char *path);

/* Appends the one page, for a server at this base path ("/", or "/gpus/" and the like: it begins and ends with a slash).
 * Everything the page asks for is relative to it. */
void pages_index(const char *base_path, struct buf *b);
