#include "base/json_read.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

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

/* One walk: where it stands, the leaves it has met (names with a NUL on either side), and who is told. */
struct walk {
    struct buf path, seen;
    size_t leaves;
    json_leaf_fn each;
    void *ctx;
};

static void walk_done(struct walk *w) {
    buf_done(&w->path);
    buf_done(&w->seen);
}

static int visit(struct walk *w, const json_t *j, int depth, struct error *e);

static int visit_members(struct walk *w, const json_t *j, int depth, struct error *e) {
    if (depth >= JSON_DEPTH_MAX) return fail(e, -EINVAL, "%s: nested too deeply", w->path.s);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)j, key, value) {
        if (!*key) return fail(e, -EINVAL, "%s%san empty key", w->path.s, w->path.len ? ": " : "");
        size_t mark = w->path.len;
        buf_printf(&w->path, "%s%s", mark ? "." : "", key);
        int r = visit(w, value, depth + 1, e);
        if (r < 0) return r;
        w->path.len = mark;
        w->path.s[mark] = 0;
    }
    return 0;
}

static int is_news(struct walk *w, struct error *e) {
    if (++w->leaves > JSON_LEAVES_MAX) return fail(e, -EINVAL, "more than %d keys", JSON_LEAVES_MAX);
    size_t mark = w->seen.len;
    buf_putc(&w->seen, 0);
    buf_add(&w->seen, w->path.s, w->path.len + 1);
    if (memmem(w->seen.s, mark, w->seen.s + mark, w->seen.len - mark))
        return fail(e, -EINVAL, "%s: is given twice", w->path.s);
    return 0;
}

static int visit(struct walk *w, const json_t *j, int depth, struct error *e) {
    if (json_object_size(j) > 0) return visit_members(w, j, depth, e);
    AUTO(buf_done) struct buf text = {0};
    buf_puts(&text, "");
    int r = is_news(w, e);
    if (r < 0) return r;
    struct json_leaf leaf = {.path = w->path.s};
    if (json_is_object(j)) {
        buf_puts(&text, "{}");
        leaf.type = JSON_LEAF_EMPTY;
    } else if (json_is_array(j)) {
        r = list_text(leaf.path, j, &text, e);
        if (r < 0) return r;
        leaf.type = JSON_LEAF_LIST;
    } else {
        if (scalar_text(j, &text) < 0) return fail(e, -EINVAL, "%s: a NUL byte inside a text", leaf.path);
        leaf.type = json_is_string(j)    ? JSON_LEAF_STRING
                    : json_is_integer(j) ? JSON_LEAF_INT
                    : json_is_real(j)    ? JSON_LEAF_REAL
                    : json_is_boolean(j) ? JSON_LEAF_BOOL
                                         : JSON_LEAF_NULL;
    }
    leaf.text = text.s;
    return w->each(w->ctx, &leaf, e);
}

int json_walk(const char *text, size_t len, json_leaf_fn each, void *ctx, struct error *e) {
    json_error_t at;
    AUTO(decref) json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
    if (!root) return fail(e, -EINVAL, "line %d: %s", at.line, at.text);
    if (!json_is_object(root)) return fail(e, -EINVAL, "there must be one JSON object");
    AUTO(walk_done) struct walk w = {.each = each, .ctx = ctx};
    buf_puts(&w.path, "");
    return visit_members(&w, root, 0, e);
}

int json_walk_list(const char *text, size_t len, const char *key, void (*row)(void *ctx), json_leaf_fn each, void *ctx,
                   struct error *e) {
    json_error_t at;
    size_t i;
    json_t *item;
    AUTO(decref) json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
    if (!root) return fail(e, -EINVAL, "line %d: %s", at.line, at.text);
    const json_t *list = json_object_get(root, key);
    if (!json_is_array(list)) return fail(e, -EINVAL, "there is no list %s", key);
    json_array_foreach(list, i, item) {
        AUTO(walk_done) struct walk w = {.each = each, .ctx = ctx};
        buf_puts(&w.path, "");
        if (!json_is_object(item)) return fail(e, -EINVAL, "%s: holds something that is no object", key);
        row(ctx);
        int r = visit_members(&w, item, 0, e);
        if (r < 0) return r;
    }
    return (int)json_array_size(list);
}
