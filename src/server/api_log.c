/* A job's log: read from the node that ran it, a part at a time, or followed as a stream. Only for whom the log belongs to
 * (and administrators): nothing of it is kept here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/api.h"
#include "server/follow.h"
#include "server/server.h"

enum { PART = 64 << 10 };

const struct route_field api_log_query[] = {
    {"element",                             FIELD_NUMBER, false, "Of an array: this element"},
    {"attempt",                                FIELD_NUMBER, false, "The last one where it is not given"},
    {"offset",                                     FIELD_NUMBER, false, "From this byte on"},
    {"follow",FIELD_BOOL, false, "As a stream of events: `log` with {offset, text}, then `end`"},
    {0}
};

struct reading {
    struct follower is; /* once it is a stream */
    struct server *server;
    struct call *call; /* until it is answered, or became a stream */
    char node[64];
    struct wire_run_key key;
    int64_t id, number; /* number: of its element, as people see it; -1: the only one */
    uint64_t offset;
    bool is_follow, is_found;
    struct queue_who who;
    char account[64];
    struct error error;
};

/* ---- streams ---- */

static void ask_part(struct reading *d);

static void stream_part(struct reading *d, const struct wire_log *l) {
    AUTO(buf_done) struct buf b = {0}, text = {0};
    uint32_t n =
        l->is_over && l->offset + l->len == l->total ? l->len : (uint32_t)follow_whole_characters(l->bytes, l->len);
    if (n) {
        buf_add(&text, l->bytes, n);
        for (size_t i = 0; i < text.len; i++)
            if (!text.s[i]) text.s[i] = '?'; /* a text ends at a zero */
        buf_puts(&b, "event: log\ndata:");
        json_open(&b, '{');
        json_key(&b, "offset");
        json_uint(&b, l->offset);
        json_pair_str(&b, "text", text.s);
        json_close(&b, '}');
        buf_puts(&b, "\n\n");
        d->offset = l->offset + n;
    } else if (l->offset > d->offset) {
        d->offset = l->offset;
    }
    bool is_end = l->is_over && d->offset >= l->total;
    if (is_end) buf_printf(&b, "event: end\ndata:{\"total\":%llu}\n\n", (unsigned long long)l->total);
    if (b.len) follow_say(&d->is, &b);
    d->is.is_over = is_end;
    if (n && !is_end && d->is.request) ask_part(d);
}

static void ask_again(struct follower *f) { ask_part((struct reading *)f); }
static void drop_reading(struct follower *f) { free(f); }

static void follow(struct reading *d) {
    struct call *c = d->call;
    d->call = NULL;
    d->is.ask = ask_again;
    d->is.drop = drop_reading;
    follow_begin(d->server->loop, &d->is, c);
}

/* ---- one part ---- */

static void reply_part(struct reading *d, const struct wire_log *l) {
    struct call *c = d->call;
    struct http_request *r = c->request;
    if (r) {
        http_add_field(r, "X-Log-Offset", "%llu", (unsigned long long)l->offset);
        http_add_field(r, "X-Log-Total", "%llu", (unsigned long long)l->total);
        http_add_field(r, "X-Log-Over", "%d", l->is_over);
        http_add_field(r, "X-Content-Type-Options", "nosniff");
        http_reply(r, 200, "text/plain; charset=utf-8", l->bytes, l->len);
    }
    call_free(c);
    free(d);
}

static void log_came(void *ctx, int result, const struct wire_log *l, const char *sentence) {
    struct reading *d = ctx;
    d->is.is_asking = false;
    if (d->call && result >= 0) {
        reply_part(d, l);
    } else if (d->call) {
        struct call *c = d->call;
        struct error e;
        fail(&e, result, "%s", sentence);
        free(d);
        call_end(c, result, &e);
    } else if (d->is.request && result >= 0) {
        stream_part(d, l);
    } else if (d->is.request && result != -ENOTCONN && result != -ETIMEDOUT) {
        AUTO(buf_done) struct buf b = {0};
        buf_puts(&b, "event: end\ndata:");
        json_open(&b, '{');
        json_pair_str(&b, "error", sentence);
        json_close(&b, '}');
        buf_puts(&b, "\n\n");
        follow_say(&d->is, &b);
        d->is.is_over = true;
    }
}

/* Of a stream: one that cannot be asked now is asked again in a moment. */
static void ask_part(struct reading *d) {
    struct wire_log_ask ask = {.key = d->key, .offset = d->offset, .len = PART};
    struct error e;
    d->is.is_asking = true;
    if (queue_log(d->server->queue, d->node, &ask, log_came, d, &e) < 0) d->is.is_asking = false;
}

/* ---- which run ---- */

static int see_job(void *ctx, const struct queue_job_row *j, struct error *e) {
    struct reading *d = ctx;
    struct job_spec spec;
    d->is_found = true;
    snprintf(d->node, sizeof d->node, "%s", j->node);
    bool is_his = d->who.is_admin || (d->who.has_uid && d->who.uid == j->uid) ||
                  (*d->account && strcmp(d->account, j->account) == 0);
    if (!is_his) return fail(e, -EACCES, "the log of job %lld is %s's", (long long)j->id, j->user);
    if (j->elements == 1) return 0;
    if (d->number < 0)
        return fail(e, -EINVAL, "element: job %lld has %u of them: say which", (long long)j->id, j->elements);
    int r = job_decode(j->record, j->record_len, &spec, e);
    for (uint32_t i = 0; r >= 0 && i < j->elements; i++) {
        if (job_element_number(&spec, i) != d->number) continue;
        d->key.element = i;
        return 0;
    }
    return r < 0 ? r : fail(e, -ENOENT, "job %lld has no element %lld", (long long)j->id, (long long)d->number);
}

static int find_work(struct sql *db, void *ctx, struct error *e) {
    struct reading *d = ctx;
    const struct queue_reader reader = {.ctx = d, .job = see_job};
    struct queue_ask ask = {.only = d->id};
    int r = queue_store_list(db, &ask, &reader, e);
    if (r >= 0 && !d->is_found) return fail(e, -ENOENT, "there is no job %lld", (long long)d->id);
    if (r < 0 || d->key.attempt) return r;
    r = queue_store_last_attempt(db, d->id, d->key.element, e);
    if (r == 0) return fail(e, -ENOENT, "job %lld has not begun: it has no log yet", (long long)d->id);
    if (r > 0) d->key.attempt = (uint32_t)r;
    return r;
}

static void found(void *ctx, int result, const struct error *e) {
    struct reading *d = ctx;
    struct call *c = d->call;
    if (result < 0) {
        free(d);
        call_end(c, result, e);
        return;
    }
    if (d->is_follow) {
        follow(d);
        ask_part(d);
        return;
    }
    struct wire_log_ask ask = {.key = d->key, .offset = d->offset, .len = WIRE_LOG_MAX};
    struct error why;
    int r = queue_log(d->server->queue, d->node, &ask, log_came, d, &why);
    if (r >= 0) return;
    free(d);
    call_end(c, r, &why);
}

int api_job_log(struct call *c, struct error *e) {
    const char *wants = call_query(c, "follow");
    double element, attempt, offset;
    char *end;
    int r = call_query_number(c, "element", 0, 1e9, -1, &element, e);
    if (r >= 0) r = call_query_number(c, "attempt", 1, 65535, 0, &attempt, e);
    if (r >= 0) r = call_query_number(c, "offset", 0, 9e15, 0, &offset, e);
    if (r < 0) return r;
    errno = 0;
    int64_t id = strtoll(c->param[0], &end, 10);
    if (errno || *end || id <= 0) return fail(e, -ENOENT, "%.30s is no job's number", c->param[0]);
    r = follow_check(e);
    if (r < 0) return r;
    struct reading *d = calloc(1, sizeof *d);
    if (!d) abort();
    *d = (struct reading){
        .server = c->server,
        .call = c,
        .id = id,
        .number = (int64_t)element,
        .offset = (uint64_t)offset,
        .key = {.job = id, .attempt = (uint32_t)attempt},
        .is_follow = wants && strcmp(wants, "0") != 0 && strcmp(wants, "false") != 0,
        .who = api_who(c)
    };
    snprintf(d->account, sizeof d->account, "%s", d->who.account);
    r = state_submit(c->server->state, find_work, found, d, e);
    if (r >= 0) return CALL_LATER;
    free(d);
    return r;
}
