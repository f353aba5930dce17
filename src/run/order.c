#include "run/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x6a6f7231u

struct in {
    const uint8_t *at, *end;
    bool is_bad;
};

static uint64_t number(struct in *in, unsigned bytes) {
    uint64_t v = 0;
    if (in->is_bad || (size_t)(in->end - in->at) < bytes) {
        in->is_bad = true;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++) v |= (uint64_t)in->at[i] << (8 * i);
    in->at += bytes;
    return v;
}

static void put(struct buf *b, uint64_t v, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) buf_putc(b, (char)(uint8_t)(v >> (8 * i)));
}

static struct order_words words(struct in *in) {
    struct order_words w = {.count = (unsigned)number(in, 4)};
    w.len = (size_t)number(in, 4);
    if (in->is_bad || (size_t)(in->end - in->at) < w.len) {
        in->is_bad = true;
        return (struct order_words){.s = ""};
    }
    w.s = (const char *)in->at;
    in->at += w.len;
    unsigned ends = 0;
    for (size_t i = 0; i < w.len; i++) ends += !w.s[i];
    if (ends != w.count || (w.len && w.s[w.len - 1])) in->is_bad = true;
    return w;
}

static void put_words(struct buf *b, const struct order_words *w) {
    put(b, w->count, 4);
    put(b, w->len, 4);
    buf_add(b, w->s, w->len);
}

static const char *word(struct in *in) {
    struct order_words w = words(in);
    if (w.count != 1) in->is_bad = true;
    return in->is_bad ? "" : w.s;
}

static void put_word(struct buf *b, const char *s) {
    put_words(b, &(struct order_words){.s = s, .len = strlen(s) + 1, .count = 1});
}

void order_encode(const struct order *o, struct buf *b) {
    put(b, MAGIC, 4);
    put(b, o->uid, 4);
    put(b, o->gid, 4);
    put(b, o->umask, 4);
    put(b, o->becomes, 1);
    put(b, o->is_pty, 1);
    put(b, (uint64_t)o->limit_ns, 8);
    put(b, (uint64_t)o->grace_ns, 8);
    put(b, o->log_max, 8);
    put(b, o->groups, 4);
    buf_add(b, o->group, 4ul * o->groups);
    put_word(b, o->cwd);
    put_word(b, o->cgroup);
    put_words(b, &o->argv);
    put_words(b, &o->env);
}

int order_decode(const void *bytes, size_t n, struct order *ret, struct error *e) {
    struct in in = {.at = bytes, .end = (const uint8_t *)bytes + n};
    struct order o = {0};
    if (number(&in, 4) != MAGIC) return fail(e, -EPROTO, "this is no order for a shim");
    o.uid = (uint32_t)number(&in, 4);
    o.gid = (uint32_t)number(&in, 4);
    o.umask = (uint32_t)number(&in, 4);
    o.becomes = number(&in, 1);
    o.is_pty = number(&in, 1);
    o.limit_ns = (int64_t)number(&in, 8);
    o.grace_ns = (int64_t)number(&in, 8);
    o.log_max = number(&in, 8);
    o.groups = (unsigned)number(&in, 4);
    o.group = in.at;
    if (o.groups > ORDER_GROUPS || (size_t)(in.end - in.at) < 4ul * o.groups) in.is_bad = true;
    if (!in.is_bad) in.at += 4ul * o.groups;
    o.cwd = word(&in);
    o.cgroup = word(&in);
    o.argv = words(&in);
    o.env = words(&in);
    if (in.is_bad || in.at != in.end || !o.argv.count || o.limit_ns < 0 || o.grace_ns < 0)
        return fail(e, -EPROTO, "an order for a shim that makes no sense");
    if (o.log_max < ORDER_LOG_LEAST) o.log_max = ORDER_LOG_LEAST;
    *ret = o;
    return 0;
}

uint32_t order_group(const struct order *o, unsigned i) {
    struct in in = {.at = o->group + 4ul * i, .end = o->group + 4ul * i + 4};
    return (uint32_t)number(&in, 4);
}

char **order_vector(const struct order_words *w) {
    char **v = malloc((w->count + 1ul) * sizeof *v + w->len);
    if (!v) return NULL;
    char *at = (char *)(v + w->count + 1);
    if (w->len) memcpy(at, w->s, w->len);
    for (unsigned i = 0; i < w->count; i++) {
        v[i] = at;
        at += strlen(at) + 1;
    }
    v[w->count] = NULL;
    return v;
}
