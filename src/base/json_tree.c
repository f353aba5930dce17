#include "base/json_tree.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

/* A node is jansson's own; only this file knows. */
static json_t *node(const struct json_tree *j) { return (json_t *)(uintptr_t)j; }
static const struct json_tree *tree(const json_t *j) { return (const struct json_tree *)(uintptr_t)j; }

int json_tree_parse(const char *text, size_t len, struct json_tree **ret, struct error *e) {
    json_error_t at;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
    if (!root && json_error_code(&at) == json_error_null_character)
        return fail(e, -EINVAL, "line %d: a text cannot have \\u0000 in it", at.line);
    if (!root) return fail(e, -EINVAL, "line %d: %s", at.line, at.text);
    *ret = (struct json_tree *)(uintptr_t)root;
    return 0;
}

void json_tree_free(struct json_tree *root) { json_decref(node(root)); }

const struct json_tree *json_tree_get(const struct json_tree *j, const char *key) {
    return tree(json_object_get(node(j), key));
}

size_t json_tree_count(const struct json_tree *j) { return json_array_size(node(j)); }

const struct json_tree *json_tree_at(const struct json_tree *j, size_t at) { return tree(json_array_get(node(j), at)); }

void json_tree_each(const struct json_tree *j, json_tree_fn each, void *ctx) {
    const char *key;
    json_t *value;
    json_object_foreach(node(j), key, value) each(ctx, key, tree(value));
}

bool json_tree_is_null(const struct json_tree *j) { return j && json_is_null(node(j)); }

double json_tree_number(const struct json_tree *j, double otherwise) {
    return j && json_is_number(node(j)) ? json_number_value(node(j)) : otherwise;
}

const char *json_tree_text(const struct json_tree *j, const char *otherwise) {
    return j && json_is_string(node(j)) ? json_string_value(node(j)) : otherwise;
}

enum json_tree_type json_tree_type(const struct json_tree *j) {
    if (!j) return JSON_TREE_NONE;
    switch (json_typeof(node(j))) {
    case JSON_OBJECT: return JSON_TREE_OBJECT;
    case JSON_ARRAY: return JSON_TREE_LIST;
    case JSON_STRING: return JSON_TREE_TEXT;
    case JSON_INTEGER: return JSON_TREE_INTEGER;
    case JSON_REAL: return JSON_TREE_REAL;
    case JSON_TRUE:
    case JSON_FALSE: return JSON_TREE_BOOL;
    case JSON_NULL: return JSON_TREE_NULL;
    }
    return JSON_TREE_NONE;
}

bool json_tree_is_true(const struct json_tree *j) { return j && json_is_true(node(j)); }

int64_t json_tree_integer(const struct json_tree *j, int64_t otherwise) {
    return j && json_is_integer(node(j)) ? (int64_t)json_integer_value(node(j)) : otherwise;
}

void json_tree_lay_over(struct json_tree *under, const struct json_tree *over) {
    const char *key;
    json_t *value;
    json_object_foreach(node(over), key, value) {
        json_t *there = json_object_get(node(under), key);
        if (json_is_object(there) && json_is_object(value))
            json_tree_lay_over((struct json_tree *)(uintptr_t)there, tree(value));
        else if (json_object_set_new(node(under), key, json_deep_copy(value)) < 0)
            abort();
    }
}

void json_tree_patch(struct json_tree *under, const struct json_tree *patch) {
    const char *key;
    json_t *value;
    json_object_foreach(node(patch), key, value) {
        if (json_is_null(value)) {
            (void)json_object_del(node(under), key);
            continue;
        }
        json_t *there = json_object_get(node(under), key);
        if (json_is_object(value) && !json_is_object(there)) {
            there = json_object();
            if (!there || json_object_set_new(node(under), key, there) < 0) abort();
        }
        if (json_is_object(value))
            json_tree_patch((struct json_tree *)(uintptr_t)there, tree(value));
        else if (json_object_set_new(node(under), key, json_deep_copy(value)) < 0)
            abort();
    }
}

void json_tree_drop(struct json_tree *j, const char *key) { (void)json_object_del(node(j), key); }

void json_tree_write(const struct json_tree *j, struct buf *b) {
    char *text = json_dumps(node(j), JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text) abort();
    buf_puts(b, text);
    free(text);
}
