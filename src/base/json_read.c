#include "base/json_read.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

static void decref(json_t **j) { json_decref(*j); }

static int scalar_text(const json_t *j, struct buf *out) {
    if (json_is_string(j)) {
        if (strlen(json_string_value(j)) != json_string_length(j)) return -EINVAL;
        buf_add(out, json_string_value(j), json_string_length(j));
    } else if (json_is_integer(j)) {
        buf_printf(out, "%lld", (long long)json_integer_value(j));
    } else if (json_is_real(j)) {
        buf_printf(out, "%.15g", json_real_value(j));
    } else if (json_is_boolean(j)) {
        buf_puts(out, json_is_true(j) ? "true" : "false");
    } else if (json_is_null(j)) {
        buf_puts(out, "null");
    } else {
        return -EINVAL;
    }
    return 0;
}

static int list_text(const char *path, const json_t *j, struct buf *out, struct error *e) {
    size_t i;
    json_t *item;
    json_array_foreach(j, i, item) {
        if (i) buf_putc(out, ',');
        if (json_is_string(item) && strchr(json_string_value(item), ','))
            return fail(e, -EINVAL, "%s: an item of this list has a comma in it", path);
        if (scalar_text(item, out) < 0) return fail(e, -EINVAL, "%s: a list here holds plain values only", path);
    }
    return 0;
}

static int walk(const json_t *j, struct buf *path, int depth, json_leaf_fn each, void *ctx, struct error *e);

static int walk_members(const json_t *j, struct buf *path, int depth, json_leaf_fn each, void *ctx, struct error *e) {
    if (depth >= JSON_DEPTH_MAX) return fail(e, -EINVAL, "%s: nested too deeply", path->s);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)j, key, value) {
        size_t mark = path->len;
        buf_printf(path, "%s%s", mark ? "." : "", key);
        int r = walk(value, path, depth + 1, each, ctx, e);
        if (r < 0) return r;
        path->len = mark;
        path->s[mark] = 0;
    }
    return 0;
}

static int walk(const json_t *j, struct buf *path, int depth, json_leaf_fn each, void *ctx, struct error *e) {
    if (json_is_object(j)) return walk_members(j, path, depth, each, ctx, e);
    AUTO(buf_done) struct buf text = {0};
    buf_puts(&text, "");
    struct json_leaf leaf = {.path = path->s};
    if (json_is_array(j)) {
        int r = list_text(path->s, j, &text, e);
        if (r < 0) return r;
        leaf.type = JSON_LEAF_LIST;
    } else {
        if (scalar_text(j, &text) < 0) return fail(e, -EINVAL, "%s: a NUL byte inside a text", path->s);
        leaf.type = json_is_string(j)    ? JSON_LEAF_STRING
                    : json_is_integer(j) ? JSON_LEAF_INT
                    : json_is_real(j)    ? JSON_LEAF_REAL
                    : json_is_boolean(j) ? JSON_LEAF_BOOL
                                         : JSON_LEAF_NULL;
    }
    leaf.text = text.s;
    return each(ctx, &leaf, e);
}

int json_walk(const char *text, size_t len, json_leaf_fn each, void *ctx, struct error *e) {
    json_error_t at;
    AUTO(decref) json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
    if (!root) return fail(e, -EINVAL, "line %d: %s", at.line, at.text);
    if (!json_is_object(root)) return fail(e, -EINVAL, "the file must hold one JSON object");
    AUTO(buf_done) struct buf path = {0};
    buf_puts(&path, "");
    return walk_members(root, &path, 0, each, ctx, e);
}
