/* JSON in, as a tree to look things up in: for answers of other programs, whose lists hold objects. The parser is
 * jansson; it refuses duplicate keys, trailing text, bad UTF-8 and deep nesting. Every look-up accepts what is not there
 * (NULL, another type) and says so, so that a foreign answer needs no check at each step. Not linked into gpumgr-core. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct json_tree; /* a node of it; those got from another live as long as that */

int json_tree_parse(const char *text, size_t len, struct json_tree **ret, struct error *e) MUST_CHECK;
void json_tree_free(struct json_tree *root); /* the one that was parsed, or NULL */

/* A member of an object, or NULL. */
const struct json_tree *json_tree_get(const struct json_tree *j, const char *key);

/* The items of a list. */
size_t json_tree_count(const struct json_tree *j);
const struct json_tree *json_tree_at(const struct json_tree *j, size_t at);

/* The members of an object, as they stand in the text. */
typedef void (*json_tree_fn)(void *ctx, const char *key, const struct json_tree *value);
void json_tree_each(const struct json_tree *j, json_tree_fn each, void *ctx);

enum json_tree_type {
    JSON_TREE_NONE, /* it is not there */
    JSON_TREE_NULL,
    JSON_TREE_BOOL,
    JSON_TREE_INTEGER,
    JSON_TREE_REAL,
    JSON_TREE_TEXT,
    JSON_TREE_LIST,
    JSON_TREE_OBJECT
};
enum json_tree_type json_tree_type(const struct json_tree *j);

bool json_tree_is_null(const struct json_tree *j);                    /* a null that is there */
double json_tree_number(const struct json_tree *j, double otherwise); /* true and false are none */
const char *json_tree_text(const struct json_tree *j, const char *otherwise);
bool json_tree_is_true(const struct json_tree *j);
int64_t json_tree_integer(const struct json_tree *j, int64_t otherwise); /* 2.0 is none */

/* Members of `over` stand above those of `under`, both objects: where both have an object, that one is filled the same way. */
void json_tree_lay_over(struct json_tree *under, const struct json_tree *over);
/* The same as a patch (RFC 7396): a null takes the member away. */
void json_tree_patch(struct json_tree *under, const struct json_tree *patch);
void json_tree_drop(struct json_tree *j, const char *key);
/* As text, appended. */
void json_tree_write(const struct json_tree *j, struct buf *b);
