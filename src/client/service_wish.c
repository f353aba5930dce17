#include "client/service_wish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_tree.h"
#include "client/begin.h"
#include "client/job_wish.h"
#include "client/output.h"
#include "client/server_ask.h"

enum kind { TEXT, WHOLE, HEALTH_TEXT, HEALTH_WHOLE };

static const struct {
    const char *flag, *key;
    enum kind kind;
} table[] = {
    {"restart",         "restart",    TEXT        },
    {"pause",           "pause",      TEXT        },
    {"pause-most",      "pause_most", TEXT        },
    {"forget",          "forget",     TEXT        },
    {"give-up",         "give_up",    WHOLE       },
    {"within",          "within",     TEXT        },
    {"health-status",   "status",     HEALTH_WHOLE},
    {"health-interval", "interval",   HEALTH_TEXT },
    {"health-timeout",  "timeout",    HEALTH_TEXT },
    {"health-grace",    "grace",      HEALTH_TEXT },
    {"health-failures", "failures",   HEALTH_WHOLE},
};

struct wish {
    const char *name, *given[ARRAY_LEN(table)], *health;
    bool yields, replaces, is_update;
    const struct job_wish *job;
};

/* ---- JSON ---- */

static int put_value(struct buf *b, size_t i, const char *text, struct error *e) {
    json_key(b, table[i].key);
    if (table[i].kind == TEXT || table[i].kind == HEALTH_TEXT) {
        json_str(b, text);
        return 0;
    }
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (!*text || *end || errno || v < 0 || v > INT32_MAX)
        return fail(e, -EINVAL, "--%s: \"%.40s\" is not a whole number", table[i].flag, text);
    json_int(b, v);
    return 0;
}

/* "http:8000/healthz", "tcp:5432", "command:TEXT". */
static int put_probe(struct buf *b, const char *text, struct error *e) {
    bool is_http = strncmp(text, "http:", 5) == 0, is_tcp = strncmp(text, "tcp:", 4) == 0;
    if (strncmp(text, "command:", 8) == 0) {
        json_pair_str(b, "command", text + 8);
        return 0;
    }
    const char *port = text + (is_http ? 5 : 4);
    size_t n = is_http || is_tcp ? strspn(port, "0123456789") : 0;
    bool is_good = n > 0 && n <= 6 && (is_http ? port[n] == '/' : port[n] == 0);
    if (!is_good) return fail(e, -EINVAL, "--health: \"%.60s\" is not http:PORT/PATH, tcp:PORT or command:TEXT", text);
    if (is_http) json_pair_str(b, "http", port + n);
    json_pair_int(b, is_http ? "port" : "tcp", atol(port));
    return 0;
}

struct rest {
    struct buf *b;
    bool (*is_said)(const struct wish *w, const struct json_tree *fresh, const char *key);
    const struct wish *w;
    const struct json_tree *fresh;
};

/* What stays as it was. */
static void keep(void *ctx, const char *key, const struct json_tree *v) {
    const struct rest *r = ctx;
    if (json_tree_is_null(v) || r->is_said(r->w, r->fresh, key)) return;
    json_key(r->b, key);
    json_tree_write(v, r->b);
}

static bool is_row(const struct wish *w, const char *key, bool is_health) {
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (w->given[i] && strcmp(table[i].key, key) == 0 && is_health == (table[i].kind >= HEALTH_TEXT)) return true;
    return false;
}

static bool is_health_said(const struct wish *w, const struct json_tree *fresh, const char *key) {
    static const char *const probe[] = {"http", "tcp", "command", "port", "status"};
    for (size_t i = 0; w->health && i < ARRAY_LEN(probe); i++)
        if (strcmp(key, probe[i]) == 0) return true;
    return is_row(w, key, true);
}

static bool is_service_said(const struct wish *w, const struct json_tree *fresh, const char *key) {
    return strcmp(key, "health") == 0 || strcmp(key, "update") == 0 || (w->yields && strcmp(key, "yield") == 0) ||
           is_row(w, key, false);
}

/* A job without a probe has no other words about its health either. */
static int put_health(struct buf *b, const struct wish *w, const struct json_tree *old, struct error *e) {
    const struct json_tree *was = json_tree_get(old, "health");
    bool is_any = w->health || (was && !json_tree_is_null(was));
    for (size_t i = 0; i < ARRAY_LEN(table); i++) is_any |= w->given[i] && table[i].kind >= HEALTH_TEXT;
    if (!is_any) return 0;
    int r = 0;
    json_key(b, "health");
    json_open(b, '{');
    if (w->health) r = put_probe(b, w->health, e);
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(table); i++)
        if (w->given[i] && table[i].kind >= HEALTH_TEXT) r = put_value(b, i, w->given[i], e);
    struct rest rest = {b, is_health_said, w, NULL};
    json_tree_each(was, keep, &rest);
    json_close(b, '}');
    return r;
}

static int put_service(struct buf *b, const struct wish *w, const struct json_tree *old, struct error *e) {
    int r = 0;
    json_key(b, "service");
    json_open(b, '{');
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(table); i++)
        if (w->given[i] && table[i].kind < HEALTH_TEXT) r = put_value(b, i, w->given[i], e);
    if (w->yields) json_pair_bool(b, "yield", true);
    if (w->is_update) json_pair_str(b, "update", w->replaces ? "replace" : "beside");
    struct rest rest = {b, is_service_said, w, NULL};
    json_tree_each(old, keep, &rest);
    if (r >= 0) r = put_health(b, w, old, e);
    json_close(b, '}');
    return r;
}

static bool is_job_said(const struct wish *w, const struct json_tree *fresh, const char *key) {
    bool is_exact = fresh && json_tree_get(fresh, "gpu_ids");
    if (strcmp(key, "name") == 0 || strcmp(key, "service") == 0) return true;
    if (is_exact && (strcmp(key, "scope") == 0 || strcmp(key, "gpus") == 0)) return true;
    return fresh && json_tree_get(fresh, key);
}

static void tree_free(struct json_tree **j) { json_tree_free(*j); }

/* What the service is made of now: for its owner, by the server. */
static int ask_old(const struct wish *w, struct json_tree **ret, struct error *e) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    server_path(&path, "/api/v1/services/", w->name, "/spec");
    int r = server_ask(w->job->loaded.values.dir, "GET", path.s, NULL, &answer, e);
    return r < 0 ? r : json_tree_parse(answer.s, answer.len, ret, e);
}

/* The document of a plain job becomes that of a service: a name, the key, and with an update what it does not say. */
static int amend(void *ctx, struct buf *document, struct error *e) {
    const struct wish *w = ctx;
    AUTO(tree_free) struct json_tree *fresh = NULL;
    AUTO(tree_free) struct json_tree *old = NULL;
    AUTO(buf_done) struct buf b = {0};
    int r = json_tree_parse(document->s, document->len, &fresh, e);
    if (r < 0) return r;
    if (json_tree_type(fresh) != JSON_TREE_OBJECT || json_tree_get(fresh, "jobs"))
        return fail(e, -EINVAL, "a service is one job, as in {\"command\": ...}");
    if (w->is_update && !w->job->job.file) r = ask_old(w, &old, e);
    if (r < 0) return r;
    const char *name = old ? json_tree_text(json_tree_get(old, "name"), w->name) : w->name;
    json_open(&b, '{');
    json_pair_str(&b, "name", name);
    struct rest own = {&b, is_job_said, w, NULL}, kept = {&b, is_job_said, w, fresh};
    json_tree_each(fresh, keep, &own);
    json_tree_each(old, keep, &kept);
    r = put_service(&b, w, json_tree_get(old ? old : fresh, "service"), e);
    json_close(&b, '}');
    if (r < 0) return r;
    buf_done(document);
    *document = TAKE_STRUCT(b);
    return 0;
}

/* ---- the command ---- */

static int submit(const struct command *self, const struct wish *w, const struct job_wish *job) {
    AUTO(buf_done) struct buf out = {0};
    int64_t id = 0;
    int code = job_wish_submit(self, job, &id);
    if (code != EXIT_DONE) return code;
    if (job->json)
        buf_printf(&out, "{\"id\":%lld}\n", (long long)id);
    else
        buf_printf(&out, "service %s (%lld) %s\n", w->name, (long long)id,
                   w->is_update ? "is being updated" : "is being started");
    return output_exit(&out);
}

int service_wish_run(const struct command *self, int argc, char **argv) {
    AUTO(job_wish_done) struct job_wish job = {0};
    struct wish w = {.is_update = strcmp(argv[0], "update") == 0, .job = &job};
    struct flag more[ARRAY_LEN(table) + 3];
    struct error e;
    size_t count = 0;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return command_help(self);
    if (argc < 2 || argv[1][0] == '-' || !*argv[1]) {
        fail(&e, -EINVAL, "a name is missing, as in: gpumgr service %s web --gpus 1 -- python serve.py", argv[0]);
        return command_fail(self, &e, EXIT_INPUT);
    }
    w.name = argv[1];
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        more[count++] = (struct flag){.name = table[i].flag, .kind = FLAG_TEXT, .into = &w.given[i]};
    more[count++] = (struct flag){.name = "health", .kind = FLAG_TEXT, .into = &w.health};
    more[count++] = (struct flag){.name = "yield", .kind = FLAG_YES, .into = &w.yields};
    if (w.is_update) more[count++] = (struct flag){.name = "replace", .kind = FLAG_YES, .into = &w.replaces};
    job.job.is_partial = w.is_update;
    job.amend = amend;
    job.amend_ctx = &w;
    argv[1] = argv[0]; /* the flags begin behind the name */
    int code = job_wish_begin(self, argc - 1, argv + 1, more, count, &job);
    if (code != COMMAND_GOES_ON) return code;
    return job.is_dry ? job_wish_plan(self, &job) : submit(self, &w, &job);
}
