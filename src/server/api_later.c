#include "server/api_later.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/server.h"

void later_init(struct later *l, struct call *c, void (*run)(struct later *l), void (*drop)(struct later *own)) {
    *l = (struct later){.call = c, .reader = recorder_reader(c->server->recorder), .run = run, .drop = drop};
}

static void drop(struct later *l) {
    buf_done(&l->out);
    l->drop(l);
}

static void run(void *ctx) {
    struct later *l = ctx;
    l->run(l);
    if (l->result >= 0) call_pack(l->call, &l->out);
}

static void done(void *ctx) {
    struct later *l = ctx;
    struct call *c = l->call;
    struct error e = l->error;
    int result = l->result;
    if (result >= 0) c->out = TAKE_STRUCT(l->out);
    drop(l);
    call_end(c, result < 0 ? result : 0, &e);
}

int later_submit(struct later *l, int r, struct error *e) {
    if (r >= 0) r = recorder_ask(l->call->server->recorder, run, done, l, e);
    if (r >= 0) return CALL_LATER;
    drop(l);
    return r;
}

void later_put_next(struct later *l, int64_t next) {
    char cursor[24];
    snprintf(cursor, sizeof cursor, "%lld", (long long)next);
    json_key(&l->out, "next");
    if (next)
        json_str(&l->out, cursor);
    else
        json_nil(&l->out);
    json_close(&l->out, '}');
    buf_putc(&l->out, '\n');
}

int later_page(const struct call *c, size_t *ret_limit, int64_t *ret_before, struct error *e) {
    const char *before = call_query(c, "before");
    double limit;
    int r = call_query_number(c, "limit", 1, LATER_LIMIT_MAX, LATER_LIMIT_USUAL, &limit, e);
    if (r < 0) return r;
    *ret_limit = (size_t)limit;
    if (!before) return 0;
    char *end;
    errno = 0;
    *ret_before = strtoll(before, &end, 10);
    if (errno || *end || strspn(before, "0123456789") != strlen(before) || *ret_before <= 0)
        return fail(e, -EINVAL, "before: %.30s is no `next` of an earlier answer", before);
    return 0;
}

int later_time(const struct call *c, const char *name, int64_t *ret_ms, struct error *e) {
    double s;
    int r = call_query_number(c, name, -8e9, 8e9, 0, &s, e);
    if (r < 0 || !call_query(c, name)) return r;
    if (s < 0) s += (double)(clock_real_ns() / NS_PER_MS) / 1000;
    *ret_ms = s < 0 ? 0 : llround(s * 1000);
    return 0;
}

int later_text(const struct call *c, const char *name, char *room, size_t size, const char **ret, struct error *e) {
    const char *text = call_query(c, name);
    if (!text) return 0;
    if (strlen(text) >= size || !*text) return fail(e, -EINVAL, "%s: empty or too long", name);
    snprintf(room, size, "%s", text);
    *ret = room;
    return 0;
}
