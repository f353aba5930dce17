#include "model/service_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/duration.h"

#define S 1000000000LL
#define FIXED 16 /* words before those of a command */

static const char *const restarts[] = {"always", "on-failure", "never"};
static const char *const updates[] = {"no", "beside", "replace"};
static const char *const probes[] = {"none", "http", "tcp", "command"};

const char *service_restart_name(enum service_restart r) { return restarts[r]; }
const char *service_probe_name(enum service_probe p) { return probes[p]; }

void service_spec_usual(struct service_spec *s) {
    *s = (struct service_spec){.restart = SERVICE_ALWAYS,
                               .pause_ns = S,
                               .pause_most_ns = 300 * S,
                               .forget_ns = 60 * S,
                               .give_up = 10,
                               .within_ns = 3600 * S,
                               .path = "",
                               .interval_ns = 10 * S,
                               .timeout_ns = 3 * S,
                               .grace_ns = 60 * S,
                               .failures = 3};
}

/* ---- words ---- */

static void PRINTF(2, 3) put(struct buf *b, const char *fmt, ...) {
    va_list ap;
    char word[4200];
    va_start(ap, fmt);
    vsnprintf(word, sizeof word, fmt, ap);
    va_end(ap);
    job_word_put(b, word);
}

static void put_span(struct buf *b, const char *key, int64_t ns) {
    char text[DURATION_TEXT];
    duration_text(ns, text);
    put(b, "%s=%s", key, text);
}

void service_spec_write(const struct service_spec *s, struct buf *b) {
    put(b, "restart=%s", restarts[s->restart]);
    put_span(b, "pause", s->pause_ns);
    put_span(b, "pause_most", s->pause_most_ns);
    put_span(b, "forget", s->forget_ns);
    put(b, "give_up=%d", s->give_up);
    put_span(b, "within", s->within_ns);
    put(b, "yield=%s", s->yields ? "yes" : "no");
    put(b, "update=%s", updates[s->update]);
    put(b, "probe=%s", probes[s->probe]);
    put(b, "port=%d", s->port);
    put(b, "path=%s", s->path);
    put(b, "status=%d", s->status);
    put_span(b, "interval", s->interval_ns);
    put_span(b, "timeout", s->timeout_ns);
    put_span(b, "grace", s->grace_ns);
    put(b, "failures=%d", s->failures);
    if (s->command.len) buf_add(b, s->command.s, s->command.len);
}

struct reading {
    const struct job_words *w;
    const char *at;
    bool is_bad;
};

/* The value of the next word, which must have this key. */
static const char *value(struct reading *r, const char *key) {
    size_t n = strlen(key);
    r->at = r->is_bad ? NULL : job_word_next(r->w, r->at);
    if (r->at && strncmp(r->at, key, n) == 0 && r->at[n] == '=') return r->at + n + 1;
    r->is_bad = true;
    return "";
}

static int one_of(struct reading *r, const char *key, const char *const *names, int count) {
    const char *v = value(r, key);
    for (int i = 0; i < count; i++)
        if (strcmp(v, names[i]) == 0) return i;
    r->is_bad = true;
    return 0;
}

static int64_t span(struct reading *r, const char *key) {
    const char *v = value(r, key);
    int64_t ns = 0;
    struct error e;
    if (!r->is_bad && duration_parse(v, &ns, &e) < 0) r->is_bad = true;
    return ns;
}

static int whole(struct reading *r, const char *key) {
    const char *v = value(r, key);
    size_t n = strspn(v, "0123456789");
    if (n == 0 || n > 6 || v[n]) r->is_bad = true;
    return r->is_bad ? 0 : atoi(v);
}

int service_spec_read(const struct job_words *w, struct service_spec *ret, struct error *e) {
    static const char *const yes[] = {"no", "yes"};
    struct reading r = {.w = w};
    struct service_spec s = {0};
    s.restart = (enum service_restart)one_of(&r, "restart", restarts, ARRAY_LEN(restarts));
    s.pause_ns = span(&r, "pause");
    s.pause_most_ns = span(&r, "pause_most");
    s.forget_ns = span(&r, "forget");
    s.give_up = whole(&r, "give_up");
    s.within_ns = span(&r, "within");
    s.yields = one_of(&r, "yield", yes, ARRAY_LEN(yes)) == 1;
    s.update = (enum service_update)one_of(&r, "update", updates, ARRAY_LEN(updates));
    s.probe = (enum service_probe)one_of(&r, "probe", probes, ARRAY_LEN(probes));
    s.port = whole(&r, "port");
    s.path = value(&r, "path");
    s.status = whole(&r, "status");
    s.interval_ns = span(&r, "interval");
    s.timeout_ns = span(&r, "timeout");
    s.grace_ns = span(&r, "grace");
    s.failures = whole(&r, "failures");
    if (r.is_bad) return fail(e, -EPROTO, "service: words that make no sense");
    const char *rest = r.at + strlen(r.at) + 1;
    if (w->count > FIXED) s.command = (struct job_words){rest, w->len - (size_t)(rest - w->s), w->count - FIXED};
    int result = service_spec_check(&s, e);
    if (result < 0) return result;
    AUTO(buf_done) struct buf again = {0};
    service_spec_write(&s, &again);
    if (again.len != w->len || memcmp(again.s, w->s, w->len) != 0)
        return fail(e, -EPROTO, "service: words that make no sense");
    *ret = s;
    return 0;
}

/* ---- what cannot be meant ---- */

static int check_span(const char *key, int64_t ns, int64_t least_ns, struct error *e) {
    char least[DURATION_TEXT];
    duration_text(least_ns, least);
    if (ns < least_ns || ns > DURATION_MOST_NS || ns % DURATION_LEAST_NS)
        return fail(e, -EINVAL, "service.%s: not from %s to 366 days", key, least);
    return 0;
}

static int check_times(const struct service_spec *s, struct error *e) {
    int r = check_span("pause", s->pause_ns, 100 * DURATION_LEAST_NS, e);
    if (r >= 0) r = check_span("pause_most", s->pause_most_ns, 100 * DURATION_LEAST_NS, e);
    if (r >= 0) r = check_span("forget", s->forget_ns, 100 * DURATION_LEAST_NS, e);
    if (r >= 0) r = check_span("within", s->within_ns, S, e);
    if (r >= 0) r = check_span("health.interval", s->interval_ns, 200 * DURATION_LEAST_NS, e);
    if (r >= 0) r = check_span("health.timeout", s->timeout_ns, 50 * DURATION_LEAST_NS, e);
    if (r >= 0) r = check_span("health.grace", s->grace_ns, DURATION_LEAST_NS, e);
    if (r < 0) return r;
    if (s->pause_most_ns < s->pause_ns) return fail(e, -EINVAL, "service.pause_most: shorter than the first pause");
    if (s->timeout_ns > s->interval_ns)
        return fail(e, -EINVAL, "service.health.timeout: longer than the interval; checks would overtake each other");
    return 0;
}

static bool is_path(const char *path) {
    if (path[0] != '/' || strlen(path) > 1000) return false;
    for (; *path; path++)
        if (*path <= ' ' || *path >= 0x7f || *path == '#') return false;
    return true;
}

static int check_probe(const struct service_spec *s, struct error *e) {
    bool has_port = s->probe == SERVICE_HTTP || s->probe == SERVICE_TCP;
    if (has_port && !s->port)
        return fail(e, -EINVAL, "service.health.port: there is none; a path alone says nothing of where it is served");
    if (s->port < 0 || s->port > 65535)
        return fail(e, -EINVAL, "service.health.port: %d is no port; nobody could listen there", s->port);
    if (!has_port && s->port) return fail(e, -EINVAL, "service.health.port: it needs http or tcp beside it");
    if (s->probe == SERVICE_HTTP && !is_path(s->path))
        return fail(e, -EINVAL, "service.health.http: \"%.60s\" is no path, as in /healthz", s->path);
    if (s->probe != SERVICE_HTTP && (*s->path || s->status))
        return fail(e, -EINVAL, "service.health.status: it needs http beside it");
    if (s->status && (s->status < 200 || s->status > 599))
        return fail(e, -EINVAL, "service.health.status: %d is not from 200 to 599; no answer ends with it", s->status);
    if (s->probe == SERVICE_COMMAND && (!s->command.count || !s->command.s[0]))
        return fail(e, -EINVAL, "service.health.command: it is empty");
    if (s->probe != SERVICE_COMMAND && s->command.count)
        return fail(e, -EINVAL, "service.health: of http, tcp and command only one makes sense");
    if (s->failures < 1 || s->failures > 1000)
        return fail(e, -EINVAL, "service.health.failures: %d is not from 1 to 1000", s->failures);
    return 0;
}

int service_spec_check(const struct service_spec *s, struct error *e) {
    int r = check_times(s, e);
    if (r >= 0) r = check_probe(s, e);
    if (r < 0) return r;
    if (s->give_up < 0 || s->give_up > SERVICE_GIVE_UP_MAX)
        return fail(e, -EINVAL, "service.give_up: %d is not from 0 to %d", s->give_up, SERVICE_GIVE_UP_MAX);
    return 0;
}

int service_spec_check_job(const struct job_spec *j, struct error *e) {
    struct service_spec s;
    const char *other = j->array[0]        ? "array"
                        : j->sweep.count   ? "sweep"
                        : j->after.count   ? "after"
                        : j->finish_by_ns  ? "finish_by"
                        : j->time_limit_ns ? "time_limit"
                        : j->retries       ? "retries"
                        : j->is_pty        ? "pty"
                                           : NULL;
    if (!j->service.count) return 0;
    if (other) return fail(e, -EINVAL, "%s: does not go with service, which stays up", other);
    return service_spec_read(&j->service, &s, e);
}

/* ---- JSON ---- */

static void span_json(struct buf *b, const char *key, int64_t ns) {
    char text[DURATION_TEXT];
    duration_text(ns, text);
    json_pair_str(b, key, text);
}

static void health_json(struct buf *b, const struct service_spec *s) {
    json_key(b, "health");
    json_open(b, '{');
    if (s->probe == SERVICE_HTTP) {
        json_pair_str(b, "http", s->path);
        json_pair_int(b, "port", s->port);
        if (s->status) json_pair_int(b, "status", s->status);
    } else if (s->probe == SERVICE_TCP) {
        json_pair_int(b, "tcp", s->port);
    } else {
        json_key(b, "command");
        json_open(b, '[');
        for (const char *w = NULL; (w = job_word_next(&s->command, w));) json_str(b, w);
        json_close(b, ']');
    }
    span_json(b, "interval", s->interval_ns);
    span_json(b, "timeout", s->timeout_ns);
    span_json(b, "grace", s->grace_ns);
    json_pair_int(b, "failures", s->failures);
    json_close(b, '}');
}

void service_spec_json(struct buf *b, const struct service_spec *s) {
    json_open(b, '{');
    json_pair_str(b, "restart", restarts[s->restart]);
    span_json(b, "pause", s->pause_ns);
    span_json(b, "pause_most", s->pause_most_ns);
    span_json(b, "forget", s->forget_ns);
    json_pair_int(b, "give_up", s->give_up);
    span_json(b, "within", s->within_ns);
    json_pair_bool(b, "yield", s->yields);
    if (s->update != SERVICE_NEW) json_pair_str(b, "update", updates[s->update]);
    if (s->probe != SERVICE_UNPROBED) health_json(b, s);
    json_close(b, '}');
}
