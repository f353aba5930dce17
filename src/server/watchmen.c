#include "server/watchmen.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/log.h"
#include "server/auth_rules.h"
#include "server/server.h"
#include "server/watchmen_own.h"

#define BODY_MAX (64 * 1024)
#define COOKIE "watchmen_session"
#define LOADED 2000 /* entries that are over and were kept over a restart */

static void serve(void *ctx, struct http_request *r);

/* ---- entries ---- */

bool watchmen_is_over(const struct watchmen_entry *e) { return e->status != WAITING && e->status != READY; }

/* The machine of this server where it has GPUs, else the first that has. */
const char *watchmen_node(struct watchmen *w) {
    const struct live *l = &w->server->live;
    const char *found = "";
    for (size_t i = 0; i < l->count; i++) {
        if (!l->node[i]->devices) continue;
        if (strcmp(l->node[i]->name, w->server->host) == 0) return l->node[i]->name;
        if (!*found) found = l->node[i]->name;
    }
    return found;
}

struct watchmen_entry *watchmen_entry_new(struct watchmen *w) {
    struct watchmen_entry *e = calloc(1, sizeof *e);
    w->entry = realloc(w->entry, (w->count + 1) * sizeof(void *));
    if (!e || !w->entry) abort();
    e->registered_ns = e->asked_ns = clock_real_ns();
    e->asked_boot_ns = clock_boot_ns();
    return w->entry[w->count++] = e;
}

void watchmen_entry_drop(struct watchmen *w, size_t at) {
    free(w->entry[at]->uuids);
    free(w->entry[at]);
    memmove(w->entry + at, w->entry + at + 1, (--w->count - at) * sizeof(void *));
}

static enum watchmen_status status_of(enum job_state s, bool is_ready) {
    switch (s) {
    case JOB_DONE: return OK;
    case JOB_TIMEOUT: return TIMEOUT;
    case JOB_CANCELLED:
    case JOB_FAILED:
    case JOB_UNKNOWN: return CANCELLED;
    default: return is_ready ? READY : WAITING;
    }
}

/* What an earlier server gave him, once all of it is known again. */
static void indices_find(struct watchmen *w, struct watchmen_entry *e) {
    int found[JOB_GPUS_MAX], count = 0;
    for (const char *s = e->uuids; *s && count < JOB_GPUS_MAX;
         s += s[strcspn(s, ",")] ? strcspn(s, ",") + 1 : strcspn(s, ",")) {
        char uuid[96];
        snprintf(uuid, sizeof uuid, "%.*s", (int)strcspn(s, ","), s);
        found[count] = queue_gpu_index(w->server->queue, uuid);
        if (found[count++] < 0) return;
    }
    memcpy(e->got, found, (size_t)count * sizeof found[0]);
    e->given = count;
    free(e->uuids);
    e->uuids = NULL;
}

void watchmen_refresh(struct watchmen *w) {
    for (size_t i = 0; i < w->count; i++) {
        struct watchmen_entry *e = w->entry[i];
        struct queue_lease lease;
        if (e->uuids) indices_find(w, e);
        if (!e->job || watchmen_is_over(e) || !queue_lease(w->server->queue, e->job, &lease)) continue;
        e->status = status_of(lease.state, lease.is_ready);
        if (e->status == WAITING) e->given = 0;
        if (!lease.is_ready) continue;
        e->given = lease.gpus;
        memcpy(e->got, lease.gpu, (size_t)lease.gpus * sizeof e->got[0]);
    }
}

void watchmen_check(struct watchmen *w, const struct watchmen_entry *e) {
    struct queue_lease lease;
    if (e->status != READY || e->is_told || e->is_old) return;
    if (!queue_lease(w->server->queue, e->job, &lease) || !lease.is_lost) return;
    queue_lease_withdraw(w->server->queue, e->job);
    watchmen_refresh(w);
}

/* He has them for good when he knows of them and works there, or is silent for long. */
static void entry_tick(struct watchmen *w, const struct watchmen_entry *e, bool is_silent) {
    struct queue_lease lease;
    watchmen_check(w, e);
    if (!queue_lease(w->server->queue, e->job, &lease)) return;
    if (lease.is_ready && (is_silent || (lease.is_used && e->is_told)))
        queue_lease_end(w->server->queue, e->job, JOB_DONE, NULL, NULL);
    else if (!lease.is_ready && is_silent && lease.state != JOB_GRANTED)
        queue_lease_end(w->server->queue, e->job, JOB_TIMEOUT, NULL, NULL);
}

static void tick(void *ctx) {
    struct watchmen *w = ctx;
    int64_t now_ns = clock_boot_ns(), patience_ns = w->server->settings.watchmen_timeout_s * NS_PER_S;
    int64_t kept_ns = (int64_t)(w->server->settings.watchmen_keep_h * 3600 * 1e9);
    if (w->server->is_stopping) return;
    watchmen_refresh(w);
    for (size_t i = w->count; i > 0; i--) {
        const struct watchmen_entry *e = w->entry[i - 1];
        int64_t silent_ns = now_ns - e->asked_boot_ns;
        if (!e->job) continue;
        if (!watchmen_is_over(e))
            entry_tick(w, e, silent_ns > patience_ns);
        else if (silent_ns > kept_ns)
            watchmen_entry_drop(w, i - 1);
    }
    watchmen_refresh(w);
}

/* ---- replies ---- */

void watchmen_reply(struct http_request *r, int status, struct buf *b) {
    buf_putc(b, '\n');
    http_reply(r, status, "application/json", b->s, b->len);
}

void watchmen_say(struct http_request *r, int code, bool is_ok, const char *msg) {
    AUTO(buf_done) struct buf b = {0};
    json_open(&b, '{');
    json_pair_str(&b, "status", is_ok ? "ok" : "err");
    json_pair_str(&b, "msg", msg);
    json_close(&b, '}');
    watchmen_reply(r, code, &b);
}

static void refuse(void *ctx, struct http_request *r, int status, const char *sentence) {
    watchmen_say(r, status, false, sentence);
}

struct json_tree *watchmen_body(struct http_request *r, int otherwise) {
    struct json_tree *j = NULL;
    struct error e;
    const char *type = http_field(&r->head, "content-type");
    if (!type || !rules_is_json(type)) /* a page elsewhere can send anything but this without asking */
        watchmen_say(r, otherwise, false, "the body must be application/json");
    else if (json_tree_parse(r->body.s ? r->body.s : "", r->body.len, &j, &e) < 0)
        watchmen_say(r, otherwise, false, e.text);
    return j;
}

/* ---- looking ---- */

static void open_ok(struct buf *b) {
    json_open(b, '{');
    json_pair_str(b, "status", "ok");
    json_key(b, "msg");
}

static void show_work(struct watchmen *w, struct http_request *r) {
    AUTO(buf_done) struct buf b = {0};
    watchmen_refresh(w);
    open_ok(&b);
    watchmen_json_list(w, &b, false);
    json_close(&b, '}');
    watchmen_reply(r, 200, &b);
}

static void show_finished(struct watchmen *w, struct http_request *r) {
    AUTO(buf_done) struct buf b = {0};
    watchmen_refresh(w);
    open_ok(&b);
    watchmen_json_list(w, &b, true);
    json_close(&b, '}');
    watchmen_reply(r, 200, &b);
}

static void show_gpus(struct watchmen *w, struct http_request *r) {
    AUTO(buf_done) struct buf b = {0};
    open_ok(&b);
    watchmen_json_gpus(w, &b);
    json_close(&b, '}');
    watchmen_reply(r, 200, &b);
}

static void show_all(struct watchmen *w, struct http_request *r) {
    AUTO(buf_done) struct buf b = {0};
    http_add_field(r, "Access-Control-Allow-Origin", "*");
    watchmen_refresh(w);
    json_open(&b, '{');
    json_key(&b, "gpu");
    watchmen_json_gpus(w, &b);
    json_key(&b, "work_queue");
    watchmen_json_list(w, &b, false);
    json_key(&b, "finished_queue");
    watchmen_json_list(w, &b, true);
    json_close(&b, '}');
    watchmen_reply(r, 200, &b);
}

static void show_options(struct watchmen *w, struct http_request *r) {
    http_add_field(r, "Access-Control-Allow-Origin", "*");
    http_add_field(r, "Access-Control-Allow-Headers", "X-Auth-Token");
    http_reply(r, 200, NULL, NULL, 0);
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* "0,1,3"; negative: `text` says which word of it is none of ours. */
static int indices_read(struct watchmen *w, const char *list, int index[JOB_GPUS_MAX], char *text, size_t room) {
    int count = 0;
    for (char *end;; list = end + 1) {
        long v = strtol(list, &end, 10);
        bool is_number = end != list && (!*end || *end == ',') && v >= 0 && v <= INT_MAX;
        if (count == JOB_GPUS_MAX || !is_number ||
            queue_gpu_now(w->server->queue, watchmen_node(w), (int)v) == QUEUE_GPU_NONE) {
            snprintf(text, room, "gpu_index: %.*s does not exist", (int)(strcspn(list, ",") % 30), list);
            return -ENOENT;
        }
        index[count++] = (int)v;
        if (!*end) break;
    }
    qsort(index, (size_t)count, sizeof index[0], by_number);
    return count;
}

static void gpus_free(struct watchmen *w, struct http_request *r, const char *list, bool is_one) {
    AUTO(buf_done) struct buf b = {0};
    int index[JOB_GPUS_MAX];
    bool is_free[JOB_GPUS_MAX], all = true;
    char text[80];
    int count = indices_read(w, list, index, text, sizeof text);
    for (int i = 0; i < count; i++) {
        is_free[i] = queue_gpu_now(w->server->queue, watchmen_node(w), index[i]) == QUEUE_GPU_FREE;
        all &= is_free[i];
    }
    json_open(&b, '{');
    json_pair_str(&b, "status", count < 0 ? "err" : "ok");
    if (count < 0)
        json_pair_str(&b, "msg", text);
    else
        json_pair_bool(&b, "msg", all);
    if (!is_one) {
        json_key(&b, "detail");
        json_open(&b, '[');
        for (int i = 0; i < count; i++) {
            json_open(&b, '{');
            json_pair_int(&b, "gpu", index[i]);
            json_pair_bool(&b, "status", is_free[i]);
            json_close(&b, '}');
        }
        json_close(&b, ']');
    }
    json_close(&b, '}');
    watchmen_reply(r, 200, &b);
}

/* ---- who may ---- */

static void cookie_set(const struct watchmen *w, struct http_request *r) {
    http_add_field(r, "Set-Cookie", COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict", w->session);
}

static bool is_token(const struct watchmen *w, const char *text) { return text && secrets_same_text(text, w->token); }

/* ?token= */
static bool query_has_token(const struct watchmen *w, const struct http_request *r) {
    AUTO(buf_done) struct buf name = {0}, value = {0};
    const char *at = r->head.query;
    struct error e;
    while (http_query_next(&at, &name, &value, &e) > 0)
        if (strcmp(name.s, "token") == 0) return is_token(w, value.s);
    return false;
}

static bool may(const struct watchmen *w, const struct http_request *r) {
    char cookie[SECRETS_TEXT + 8];
    if (!*w->token || is_token(w, http_field(&r->head, "x-auth-token")) || query_has_token(w, r)) return true;
    const char *header = http_field(&r->head, "cookie");
    return header && rules_cookie(header, COOKIE, 0, cookie, sizeof cookie) && secrets_same_text(cookie, w->session);
}

static void client_auth(struct watchmen *w, struct http_request *r) {
    if (!*w->token) {
        watchmen_say(r, 200, true, "No authentication required");
        return;
    }
    struct json_tree *j = watchmen_body(r, 400);
    if (!j) return;
    const char *token = json_tree_text(json_tree_get(j, "token"), "");
    bool is_good = is_token(w, token), is_given = *token;
    json_tree_free(j);
    if (is_good) cookie_set(w, r);
    if (is_good)
        watchmen_say(r, 200, true, "Authentication successful");
    else
        watchmen_say(r, is_given ? 401 : 400, false, is_given ? "Invalid token" : "Token required");
}

/* ---- the page ---- */

static void page(struct watchmen *w, struct http_request *r) {
    AUTO(buf_done) struct buf b = {0};
    if (*w->token && query_has_token(w, r)) { /* so that it does not stay in the address bar */
        cookie_set(w, r);
        http_add_field(r, "Location", "/");
        http_reply(r, 303, NULL, NULL, 0);
        return;
    }
    if (may(w, r))
        watchmen_page(w, &b);
    else
        watchmen_ask_token(&b);
    http_add_field(r, "Cache-Control", "no-store");
    http_reply(r, 200, "text/html; charset=utf-8", b.s, b.len);
}

static void style(struct watchmen *w, struct http_request *r) {
    http_reply(r, 200, "text/css", watchmen_style, strlen(watchmen_style));
}

/* ---- the way of a request ---- */

static const struct {
    enum http_method method;
    const char *path;
    bool is_open;
    void (*serve)(struct watchmen *w, struct http_request *r);
} rows[] = {
    {HTTP_POST,    "/auth",            true,  client_auth         },
    {HTTP_POST,    "/client/register", false, watchmen_register   },
    {HTTP_POST,    "/client/ping",     false, watchmen_ping       },
    {HTTP_POST,    "/client/cancel",   false, watchmen_cancel     },
    {HTTP_GET,     "/show/work",       false, show_work           },
    {HTTP_GET,     "/show/finished",   false, show_finished       },
    {HTTP_GET,     "/show/gpus",       false, show_gpus           },
    {HTTP_GET,     "/api",             false, show_all            },
    {HTTP_OPTIONS, "/api",             true,  show_options        },
    {HTTP_GET,     "/",                true,  page                },
    {HTTP_GET,     "/old",             true,  page                },
    {HTTP_POST,    "/cancel",          false, watchmen_cancel_form},
    {HTTP_GET,     "/style.css",       true,  style               },
};

static void serve(void *ctx, struct http_request *r) {
    struct watchmen *w = ctx;
    const char *path = r->head.path;
    enum http_method method = r->head.method == HTTP_HEAD ? HTTP_GET : r->head.method;
    bool is_one = strncmp(path, "/gpu/", 5) == 0 && path[5], is_list = strncmp(path, "/gpus/", 6) == 0 && path[6];
    bool is_path = is_one || is_list;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].path, path) != 0) continue;
        is_path = true;
        if (rows[i].method != method) continue;
        if (rows[i].is_open || may(w, r))
            rows[i].serve(w, r);
        else
            watchmen_say(r, 401, false, "Authentication required");
        return;
    }
    if ((is_one || is_list) && method == HTTP_GET) {
        if (may(w, r))
            gpus_free(w, r, path + (is_one ? 5 : 6), is_one);
        else
            watchmen_say(r, 401, false, "Authentication required");
        return;
    }
    watchmen_say(r, is_path ? 405 : 404, false,
                 is_path ? "this address has no such method" : "there is nothing at this address");
}

static size_t body_max(void *ctx, const struct http_request *r) { return BODY_MAX; }

/* ---- beginning and end ---- */

static int load_job(void *ctx, const struct queue_job_row *row, struct error *e) {
    struct watchmen *w = ctx;
    struct job_spec spec;
    int64_t over_ns = row->ended_ns ? clock_real_ns() - row->ended_ns : 0;
    if (over_ns > (int64_t)(w->server->settings.watchmen_keep_h * 3600 * 1e9)) return 0;
    if (job_decode(row->record, row->record_len, &spec, e) < 0) return 0;
    struct watchmen_entry *entry = watchmen_entry_new(w);
    const char *id = job_word_next(&spec.command, job_word_next(&spec.command, NULL));
    entry->job = row->id;
    entry->is_old = true;
    entry->registered_ns = row->submitted_ns;
    if (row->ended_ns) entry->asked_ns = row->ended_ns;
    if (over_ns > 0) entry->asked_boot_ns -= over_ns;
    snprintf(entry->id, sizeof entry->id, "%s", id ? id : spec.name);
    entry->is_schedule = spec.labels.count > 0;
    entry->wanted = entry->is_schedule ? spec.gpus : 0;
    for (const char *s = NULL; (s = job_word_next(&spec.scope, s)) && entry->gpus < JOB_GPUS_MAX;)
        entry->gpu[entry->gpus++] = atoi(s);
    entry->status = status_of((enum job_state)row->state, false);
    return 0;
}

/* Of one that is over this is all that tells what he had; of one that goes on the queue does. */
static int load_run(void *ctx, const struct queue_run_row *row, struct error *e) {
    struct watchmen *w = ctx;
    struct watchmen_entry *last = w->count ? w->entry[w->count - 1] : NULL;
    if (!last || last->job != row->of.key.job || last->status != OK || last->uuids) return 0;
    last->uuids = strdup(row->gpus);
    if (!last->uuids) abort();
    return 0;
}

static int load_work(struct sql *db, void *ctx, struct error *e) {
    const struct queue_reader reader = {.ctx = ctx, .job = load_job, .run = load_run};
    const struct queue_ask ask = {.origins = BIT(QUEUE_BY_WATCHMEN), .limit = LOADED, .runs_most = 1};
    return queue_store_list(db, &ask, &reader, e);
}

/* "": the one that is kept, or a new one; none: nobody is asked. */
static int token_make(struct watchmen *w, struct error *e) {
    AUTO(buf_done) struct buf kept = {0};
    const char *given = w->server->settings.watchmen_token;
    char path[300];
    uint8_t random[16];
    snprintf(path, sizeof path, "%s/watchmen.token", w->server->privilege.state_dir);
    if (strcmp(given, "none") == 0) return 0;
    snprintf(w->token, sizeof w->token, "%s", given);
    if (*w->token) return 0;
    if (file_read(path, sizeof w->token - 1, &kept, e) >= 0 && kept.len) {
        snprintf(w->token, sizeof w->token, "%.*s", (int)strcspn(kept.s, "\r\n"), kept.s);
        if (*w->token) return 0;
    }
    secrets_random(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) snprintf(w->token + 2 * i, 3, "%02x", random[i]);
    return file_write(path, 0600, w->token, strlen(w->token), true, e);
}

int watchmen_new(struct server *s, struct watchmen **ret, struct error *e) {
    if (!*s->settings.watchmen_listen) return 0;
    struct watchmen *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->server = s;
    secrets_make(w->session);
    secrets_make(w->form);
    int r = token_make(w, e);
    if (r >= 0) r = state_run(s->state, load_work, w, e);
    if (r < 0) {
        watchmen_free(w);
        return r;
    }
    for (size_t i = 0; i < w->count / 2; i++) { /* the file tells the newest first */
        struct watchmen_entry *first = w->entry[i];
        w->entry[i] = w->entry[w->count - 1 - i];
        w->entry[w->count - 1 - i] = first;
    }
    *ret = w;
    return 0;
}

int watchmen_listen(struct watchmen *w, struct error *e) {
    if (!w) return 0;
    const struct settings *s = &w->server->settings;
    struct http_service service = {.body_max = body_max, .serve = serve, .refuse = refuse, .ctx = w};
    int r = http_server_new(w->server->loop, &service, &w->http, e);
    if (r >= 0) r = http_listen_tcp(w->http, s->watchmen_listen, NULL, e);
    if (r < 0) return fail_in(e, r, "watchmen.listen");
    if (http_is_exposed(w->http) && !s->listen_plain)
        return fail(e, -EINVAL,
                    "watchmen.listen: %s is not the loopback address, and watchmen's clients know no TLS: set "
                    "listen_plain if that is meant",
                    s->watchmen_listen);
    AUTO(buf_done) struct buf urls = {0};
    char path[300];
    http_addresses(w->http, &urls);
    snprintf(path, sizeof path, "%s/watchmen", w->server->privilege.socket_dir);
    loop_every(w->server->loop, 1000, tick, w);
    return file_write(path, 0644, urls.s, urls.len, false, e);
}

void watchmen_drain(struct watchmen *w) {
    if (w && w->http) http_drain(w->http);
}

void watchmen_free(struct watchmen *w) {
    if (!w) return;
    http_server_free(w->http);
    while (w->count) watchmen_entry_drop(w, w->count - 1);
    free(w->entry);
    free(w);
}
