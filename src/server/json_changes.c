#include "server/json_changes.h"

#include <string.h>

#include "base/json.h"

struct walk {
    struct buf *b;
    const char *before;
    const struct json_tree *from, *to;
    size_t count;
};

static void put_value(struct buf *b, const char *key, const struct json_tree *v) {
    json_key(b, key);
    if (v)
        json_tree_write(v, b);
    else
        json_nil(b);
}

static bool is_same(const struct json_tree *from, const struct json_tree *to) {
    AUTO(buf_done) struct buf a = {0}, b = {0};
    bool has_from = from && !json_tree_is_null(from), has_to = to && !json_tree_is_null(to);
    if (!has_from || !has_to) return has_from == has_to;
    json_tree_write(from, &a);
    json_tree_write(to, &b);
    return strcmp(a.s, b.s) == 0;
}

static void look(struct walk *w, const char *key) {
    AUTO(buf_done) struct buf name = {0};
    const struct json_tree *from = json_tree_get(w->from, key), *to = json_tree_get(w->to, key);
    buf_printf(&name, "%s%s", w->before, key);
    if (json_tree_type(from) == JSON_TREE_OBJECT || json_tree_type(to) == JSON_TREE_OBJECT) {
        buf_putc(&name, '.');
        w->count += json_changes(w->b, name.s, from, to);
        return;
    }
    if (is_same(from, to)) return;
    w->count++;
    json_open(w->b, '{');
    json_pair_str(w->b, "key", name.s);
    put_value(w->b, "from", from);
    put_value(w->b, "to", to);
    json_close(w->b, '}');
}

static void old_member(void *ctx, const char *key, const struct json_tree *v) { look(ctx, key); }

static void new_member(void *ctx, const char *key, const struct json_tree *v) {
    const struct walk *w = ctx;
    if (!json_tree_get(w->from, key)) look(ctx, key);
}

size_t json_changes(struct buf *b, const char *before, const struct json_tree *from, const struct json_tree *to) {
    struct walk w = {.b = b, .before = before, .from = from, .to = to};
    json_tree_each(from, old_member, &w);
    json_tree_each(to, new_member, &w);
    return w.count;
}
