#include "client/server_ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/instance.h"
#include "base/json_read.h"
#include "client/jobs_talk.h"
#include "net/http_client.h"

enum { CONNECT_MS = 2000, TOTAL_MS = 20000, ANSWER_MAX = 8 << 20, AGAIN_MS = 100, LOST_MS = 30000 };

struct wanted {
    const char *name;
    char *into;
    size_t room;
    bool is_there;
};

static int take(void *ctx, const struct json_leaf *leaf, struct error *e) {
    struct wanted *w = ctx;
    if (strcmp(leaf->path, w->name) != 0 || leaf->type == JSON_LEAF_NULL) return 0;
    int n = snprintf(w->into, w->room, "%s", leaf->text);
    w->is_there = n >= 0 && (size_t)n < w->room;
    return 0;
}

bool server_field(const struct buf *answer, const char *name, char *ret, size_t room) {
    struct wanted w = {name, ret, room, false};
    struct error ignored;
    *ret = 0;
    if (!answer->len || json_walk(answer->s, answer->len, take, &w, &ignored) < 0) return false;
    return w.is_there;
}

static int errno_of(int status) {
    static const struct {
        int status, code;
    } rows[] = {
        {400, EINVAL},
        {401, EACCES},
        {403, EACCES},
        {404, ENOENT},
        {409, EEXIST},
        {413, EINVAL},
        {429, EAGAIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status) return -rows[i].code;
    return -EIO;
}

static int refused(const struct http_answer *a, struct error *e) {
    char sentence[240];
    if (server_field(&a->body, "error.message", sentence, sizeof sentence))
        return fail(e, errno_of(a->status), "%s", sentence);
    return fail(e, errno_of(a->status), "the server answers with status %d", a->status);
}

static int not_running(struct error *e) {
    return fail(e, -ENOTCONN, "no server is running here; `gpumgr up` starts one");
}

struct asking {
    const char *method, *path, *key; /* key: a header line, or NULL */
    const struct buf *body;
    struct http_wanted *wanted;
    size_t count;
    bool is_refused; /* it answered */
};

static int ask_server(const char *dir, struct asking *a, struct buf *ret, struct error *e) {
    struct instance i;
    char socket_path[300], url[600];
    AUTO(http_answer_done) struct http_answer answer = {0};
    struct error why;
    int r = instance_find(dir, &i, e);
    if (r == -ENOENT) return not_running(e);
    if (r < 0) return r;
    instance_path(&i, socket_path, sizeof socket_path, "server/api.sock");
    snprintf(url, sizeof url, "http://gpumgr%s", a->path);
    const struct http_ask ask = {
        .method = a->method,
        .url = url,
        .unix_path = socket_path,
        .headers = {a->body ? "Content-Type: application/json" : a->key, a->body ? a->key : NULL},
        .body = a->body ? a->body->s : NULL,
        .body_len = a->body ? a->body->len : 0,
        .most = ANSWER_MAX,
        .connect_ms = CONNECT_MS,
        .total_ms = TOTAL_MS,
        .wanted = a->wanted,
        .wanted_count = a->count
    };
    r = http_client_start(e);
    if (r < 0) return r;
    r = http_ask(&ask, &answer, &why);
    if (r == -ECONNREFUSED || r == -ENOENT) return not_running(e);
    if (r < 0) return fail(e, r, "the server does not answer: %s", why.text);
    a->is_refused = answer.status >= 300;
    if (a->is_refused) return refused(&answer, e);
    buf_clear(ret);
    buf_add(ret, answer.body.s, answer.body.len);
    return 0;
}

int server_ask(const char *dir, const char *method, const char *path, const struct buf *body, struct buf *ret,
               struct error *e) {
    return server_ask_fields(dir, method, path, body, ret, NULL, 0, e);
}

int server_ask_fields(const char *dir, const char *method, const char *path, const struct buf *body, struct buf *ret,
                      struct http_wanted *wanted, size_t count, struct error *e) {
    struct asking a = {.method = method, .path = path, .body = body, .wanted = wanted, .count = count};
    return ask_server(dir, &a, ret, e);
}

/* Who was never there is not waited for. */
int server_ask_once(const char *dir, const char *method, const char *path, const struct buf *body, struct buf *ret,
                    struct error *e) {
    char word[40], line[80];
    int64_t until_ns = clock_boot_ns() + LOST_MS * NS_PER_MS;
    bool was_there = false;
    int r = jobs_talk_key(word, sizeof word, e);
    if (r < 0) return r;
    snprintf(line, sizeof line, "Idempotency-Key: %s", word);
    struct asking a = {.method = method, .path = path, .body = body, .key = line};
    for (;;) {
        r = ask_server(dir, &a, ret, e);
        was_there |= r != -ENOTCONN;
        if (r >= 0 || a.is_refused || !was_there || clock_boot_ns() >= until_ns) return r;
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * NS_PER_MS}, NULL);
    }
}

void server_path(struct buf *ret, const char *before, const char *word, const char *after) {
    buf_clear(ret);
    buf_puts(ret, before);
    for (const unsigned char *c = (const unsigned char *)word; *c; c++) {
        bool is_plain =
            (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || strchr("-_.~@", *c);
        if (is_plain)
            buf_putc(ret, (char)*c);
        else
            buf_printf(ret, "%%%02X", *c);
    }
    buf_puts(ret, after);
}
