#include "server/call.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/json.h"
#include "model/wire_job.h"
#include "net/gzip.h"
#include "server/routes.h"
#include "server/server.h"

/* ---- answers ---- */

static const struct {
    int status;
    const char *code;
} codes[] = {
    {400, "bad_request"       },
    {401, "unauthenticated"   },
    {403, "forbidden"         },
    {404, "not_found"         },
    {405, "method_not_allowed"},
    {408, "timeout"           },
    {409, "conflict"          },
    {413, "too_large"         },
    {415, "bad_request"       },
    {417, "bad_request"       },
    {429, "rate_limited"      },
    {431, "too_large"         },
    {501, "bad_request"       },
    {503, "unavailable"       },
    {505, "bad_request"       },
};

const char *call_code_of(int status) {
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].status == status) return codes[i].code;
    return "internal";
}

void call_refuse_request(struct http_request *r, int status, const char *code, const char *sentence) {
    AUTO(buf_done) struct buf b = {0};
    json_open(&b, '{');
    json_key(&b, "error");
    json_open(&b, '{');
    json_pair_str(&b, "code", code);
    json_pair_str(&b, "message", sentence);
    json_close(&b, '}');
    json_close(&b, '}');
    buf_putc(&b, '\n');
    if (status == 401) http_add_field(r, "WWW-Authenticate", "Bearer realm=\"gpumgr\"");
    http_reply(r, status, "application/json", b.s, b.len);
}

/* Every call that may change something is in the log, with how it ended. */
static void audit(struct call *c, int status) {
    if (c->audit) auth_audit_end(c->server->auth, c->audit, status);
    if (c->audit || !c->is_mutating || !c->request) {
        c->audit = NULL;
        return;
    }
    auth_audit(c->server->auth, &c->who, c->address, http_method_name(c->request->head.method), c->request->head.path,
               status, clock_real_ns() / NS_PER_S);
}

void call_refuse(struct call *c, int status, const char *code, const char *sentence) {
    audit(c, status);
    if (!c->request) return;
    call_refuse_request(c->request, status, code, sentence);
}

/* What an errno means to a caller. One that no row names is ours, not his. */
static const struct {
    int code, status;
    const char *word;
} refusals[] = {
    {EINVAL,       400, "bad_request"    },
    {ERANGE,       400, "bad_request"    },
    {EBADMSG,      400, "bad_json"       },
    {ENAMETOOLONG, 400, "bad_request"    },
    {ENOKEY,       401, "unauthenticated"},
    {EACCES,       403, "forbidden"      },
    {EPERM,        403, "forbidden"      },
    {EKEYREJECTED, 403, "csrf"           },
    {ENOENT,       404, "not_found"      },
    {EEXIST,       409, "conflict"       },
    {EBUSY,        409, "conflict"       },
    {EFBIG,        413, "too_large"      },
    {E2BIG,        413, "too_large"      },
    {EAGAIN,       429, "rate_limited"   },
    {ENOTCONN,     503, "unavailable"    },
    {ETIMEDOUT,    503, "unavailable"    },
};

static void refuse_errno(struct call *c, int code, const char *sentence) {
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        if (code == -refusals[i].code) {
            call_refuse(c, refusals[i].status, refusals[i].word, sentence);
            return;
        }
    call_refuse(c, 500, "internal", sentence);
}

/* ---- a call's life ---- */

static void caller_gone(struct http_request *r) {
    struct call *c = r->ctx;
    c->request = NULL;
}

struct call *call_new(struct server *s, struct http_request *r, const struct route *route) {
    struct call *c = calloc(1, sizeof *c);
    if (!c) abort();
    *c = (struct call){.server = s, .request = r, .route = route, .takes_gzip = routes_take_gzip(r)};
    r->ctx = c;
    http_on_gone(r, caller_gone);
    return c;
}

void call_free(struct call *c) {
    if (!c) return;
    for (int i = 0; i < CALL_FIELDS_MAX; i++) {
        free(c->query[i]);
        free(c->body[i]);
    }
    buf_done(&c->out);
    buf_done(&c->room);
    free(c);
}

void call_pack(struct call *c, struct buf *out) {
    AUTO(buf_done) struct buf packed = {0};
    if (!c->takes_gzip || c->is_packed || !gzip_pack(out->s, out->len, &packed)) return;
    c->is_packed = true;
    buf_done(out);
    *out = TAKE_STRUCT(packed);
}

void call_end(struct call *c, int result, const struct error *e) {
    struct http_request *r = c->request;
    int status = result >= 100 ? result : c->out.len ? 200 : 204;
    CRASH_POINT();
    if (result < 0)
        refuse_errno(c, result, e->text);
    else
        audit(c, status); /* also of a caller who did not wait */
    if (r && result >= 0) {
        call_pack(c, &c->out);
        if (c->is_packed) http_add_field(r, "Content-Encoding", "gzip");
        if (c->is_packed) http_add_field(r, "Vary", "Accept-Encoding");
        http_reply(r, status, c->out.len ? "application/json" : NULL, c->out.s, c->out.len);
    }
    call_free(c);
}

/* ---- what was given ---- */

static int field_at(const struct route_field *table, const char *name) {
    for (int i = 0; table && table[i].name; i++)
        if (strcmp(table[i].name, name) == 0) return i;
    return -1;
}

static const char *value_of(const struct route_field *table, char *const *values, const char *name) {
    int i = field_at(table, name);
    return i < 0 || i >= CALL_FIELDS_MAX ? NULL : values[i];
}

const char *call_query(const struct call *c, const char *name) { return value_of(c->route->query, c->query, name); }

bool call_query_is_true(const struct call *c, const char *name) {
    const char *text = call_query(c, name);
    return text && strcmp(text, "0") != 0 && strcmp(text, "false") != 0;
}
const char *call_field(const struct call *c, const char *name) { return value_of(c->route->body, c->body, name); }

int call_key(const struct call *c, const char **ret, struct error *e) {
    const char *key = http_field(&c->request->head, "idempotency-key");
    if (key && (!*key || !wire_key_is_good(key)))
        return fail(e, -EINVAL, "Idempotency-Key: 1 to 64 printable characters without blanks");
    *ret = key ? key : "";
    return 0;
}

static int number_of(const char *name, const char *text, double least, double most, double otherwise, double *ret,
                     struct error *e) {
    if (!text) return *ret = otherwise, 0;
    char *end;
    double v = strtod(text, &end);
    bool is_plain = *text && strspn(text, "0123456789.eE+-") == strlen(text); /* no "nan", "inf", "0x10" */
    if (!is_plain || *end || !isfinite(v) || v < least || v > most)
        return fail(e, -EINVAL, "%s: %.40s is not a number from %.15g to %.15g", name, text, least, most);
    *ret = v;
    return 0;
}

int call_query_number(const struct call *c, const char *name, double least, double most, double otherwise, double *ret,
                      struct error *e) {
    return number_of(name, call_query(c, name), least, most, otherwise, ret, e);
}

int call_field_number(const struct call *c, const char *name, double least, double most, double otherwise, double *ret,
                      struct error *e) {
    return number_of(name, call_field(c, name), least, most, otherwise, ret, e);
}

static int check_required(const struct route_field *table, char *const *values, struct error *e) {
    for (int i = 0; table && table[i].name; i++)
        if (table[i].is_required && !values[i]) return fail(e, -EINVAL, "%s is missing", table[i].name);
    return 0;
}

static char *copy(const char *text) {
    char *s = strdup(text);
    if (!s) abort();
    return s;
}

int call_read_query(struct call *c, struct error *e) {
    AUTO(buf_done) struct buf name = {0}, value = {0};
    const char *at = c->request->head.query;
    int r;
    while ((r = http_query_next(&at, &name, &value, e)) > 0) {
        int i = field_at(c->route->query, name.s);
        if (i < 0) return fail(e, -EINVAL, "%.60s is no parameter of this address", name.s);
        if (c->query[i]) return fail(e, -EINVAL, "%s is given twice", name.s);
        c->query[i] = copy(value.s);
    }
    return r < 0 ? r : check_required(c->route->query, c->query, e);
}

static int take_leaf(struct call *c, const struct json_leaf *leaf, struct error *e) {
    static const struct {
        unsigned types;
        const char *words;
    } want[] = {
        [FIELD_TEXT] = {BIT(JSON_LEAF_STRING),                    "a text"       },
        [FIELD_NUMBER] = {BIT(JSON_LEAF_INT) | BIT(JSON_LEAF_REAL), "a number"     },
        [FIELD_BOOL] = {BIT(JSON_LEAF_BOOL),                      "true or false"},
        [FIELD_LIST] = {BIT(JSON_LEAF_LIST),                      "a list"       },
    };
    int i = field_at(c->route->body, leaf->path);
    if (i < 0) return fail(e, -EINVAL, "%.60s is no field of this request", leaf->path);
    if (leaf->type == JSON_LEAF_NULL) return 0; /* as if it were not given */
    const struct route_field *f = &c->route->body[i];
    if (!(want[f->type].types & BIT(leaf->type)))
        return fail(e, -EINVAL, "%s must be %s", f->name, want[f->type].words);
    if (c->body[i]) return fail(e, -EINVAL, "%s is given twice", f->name);
    c->body[i] = copy(leaf->text);
    return 0;
}

/* What our own table refuses is a bad request; everything else that stops the walk is bad JSON. */
struct reading {
    struct call *call;
    bool is_refused;
};

static int read_leaf(void *ctx, const struct json_leaf *leaf, struct error *e) {
    struct reading *reading = ctx;
    int r = take_leaf(reading->call, leaf, e);
    reading->is_refused = r < 0;
    return r;
}

int call_read_body(struct call *c, struct error *e) {
    const struct buf *body = &c->request->body;
    if (!c->route->body) return body->len ? fail(e, -EINVAL, "this request takes no body") : 0;
    const char *type = http_field(&c->request->head, "content-type");
    if (body->len && (!type || strncasecmp(type, "application/json", 16) != 0 || (type[16] && !strchr("; ", type[16]))))
        return fail(e, -EINVAL, "the body must be application/json");
    if (c->route->is_document) return 0;
    struct reading reading = {.call = c};
    if (body->len && json_walk(body->s, body->len, read_leaf, &reading, e) < 0)
        return reading.is_refused ? -EINVAL : -EBADMSG;
    return check_required(c->route->body, c->body, e);
}

int call_store(struct call *c, const void *ctx, size_t size, state_work_fn work, state_done_fn done, struct error *e) {
    void *copy = malloc(size);
    if (!copy) abort();
    memcpy(copy, ctx, size);
    int r = state_submit(c->server->state, work, done, copy, e);
    if (r >= 0) return CALL_LATER;
    free(copy);
    return r;
}
