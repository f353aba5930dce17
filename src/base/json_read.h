/* JSON in. The parser is jansson, known in json_read.c only; it refuses duplicate keys, trailing text, bad UTF-8 and
 * deep nesting, and a key that is given twice in different spellings ({"a":{"b":1},"a.b":2}). What comes out is the document's leaves, each with its dotted path, which is all that a table of
 * options needs. Not linked into gpumgr-core. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum json_type {
    JSON_LEAF_STRING,
    JSON_LEAF_INT,
    JSON_LEAF_REAL,
    JSON_LEAF_BOOL,
    JSON_LEAF_NULL,
    JSON_LEAF_LIST,
    JSON_LEAF_EMPTY /* {}: a leaf too, else a misspelt group without members would go unseen */
};

struct json_leaf {
    const char *path; /* "guard.hot_c" */
    enum json_type type;
    const char *text; /* the value as text: a list of scalars is joined by commas */
};

/* Called for each leaf in document order; a negative result stops the walk and is returned. */
typedef int (*json_leaf_fn)(void *ctx, const struct json_leaf *leaf, struct error *e);

#define JSON_DEPTH_MAX 8
#define JSON_LEAVES_MAX 4096

int json_walk(const char *text, size_t len, json_leaf_fn each, void *ctx, struct error *e) MUST_CHECK;

/* The same for each object of the list that the document's object has under `key`: row is called before its leaves. How
 * many rows there were; -EINVAL when there is no such list. */
int json_walk_list(const char *text, size_t len, const char *key, void (*row)(void *ctx), json_leaf_fn each, void *ctx,
                   struct error *e) MUST_CHECK;
