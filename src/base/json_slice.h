/* Parts of a JSON text as they stand there, for whoever must pass most of a foreign document on unchanged and replace a little
 * of it: a container's configuration goes from an engine back to it with one member changed, and what we know nothing of stays.
 * The text must have passed json_scan: nothing is checked again here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct json_slice {
    const char *s; /* within the text; len 0: there is no such value */
    size_t len;
};

/* The members of an object or the items of a list, one a call; *at is 0 at first. Keys come in their quotes, {0} in a list. */
bool json_slice_next(struct json_slice of, size_t *at, struct json_slice *ret_key, struct json_slice *ret_value);

/* A member of an object. */
struct json_slice json_slice_get(struct json_slice object, const char *key);

bool json_slice_is(struct json_slice v, const char *text); /* as it is written: "true", "\"nvidia\"" */

/* Appends what a string says; a NUL in it becomes '?'. Anything but a string says nothing. */
void json_slice_text(struct json_slice v, struct buf *b);

/* Appends it to what json_open and json_key wrote. */
void json_slice_put(struct json_slice v, struct buf *b);
