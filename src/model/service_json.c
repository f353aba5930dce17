#include "model/service_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "model/duration.h"

struct reading {
    struct service_spec s;
    struct buf command;
    bool has_health, has_port, has_status, has_timeout;
    int result;
    struct error *e;
};

typedef int (*read_fn)(struct reading *r, const char *key, const struct json_tree *v);

static int span_of(struct reading *r, const char *key, const struct json_tree *v, int64_t *ret_ns) {
    const char *text = json_tree_text(v, NULL);
    if (!text) return fail(r->e, -EINVAL, "service.%s: not a length of time in quotes, as in \"10s\"", key);
    int result = duration_parse(text, ret_ns, r->e);
    if (result < 0) return fail_in(r->e, result, "service.%s", key);
    *ret_ns -= *ret_ns % DURATION_LEAST_NS;
    return 0;
}

static int whole_of(struct reading *r, const char *key, const struct json_tree *v, int *ret) {
    int64_t n = json_tree_integer(v, INT64_MIN);
    if (n < INT32_MIN || n > INT32_MAX) return fail(r->e, -EINVAL, "service.%s: not a whole number within bounds", key);
    *ret = (int)n;
    return 0;
}

static int read_restart(struct reading *r, const char *key, const struct json_tree *v) {
    const char *text = json_tree_text(v, "");
    for (int i = SERVICE_ALWAYS; i <= SERVICE_NEVER; i++)
        if (strcmp(text, service_restart_name((enum service_restart)i)) == 0) {
            r->s.restart = (enum service_restart)i;
            return 0;
        }
    return fail(r->e, -EINVAL, "service.%s: neither \"always\", \"on-failure\" nor \"never\"", key);
}

static int read_yield(struct reading *r, const char *key, const struct json_tree *v) {
    if (json_tree_type(v) != JSON_TREE_BOOL) return fail(r->e, -EINVAL, "service.%s: neither true nor false", key);
    r->s.yields = json_tree_is_true(v);
    return 0;
}

static int read_update(struct reading *r, const char *key, const struct json_tree *v) {
    const char *text = json_tree_text(v, "");
    if (strcmp(text, "beside") != 0 && strcmp(text, "replace") != 0)
        return fail(r->e, -EINVAL, "service.%s: neither \"beside\" nor \"replace\"", key);
    r->s.update = *text == 'b' ? SERVICE_BESIDE : SERVICE_REPLACE;
    return 0;
}

#define SPAN(name, field)                                                                                              \
    static int read_##name(struct reading *r, const char *key, const struct json_tree *v) {                            \
        return span_of(r, key, v, &r->s.field);                                                                        \
    }
SPAN(pause, pause_ns)
SPAN(pause_most, pause_most_ns)
SPAN(forget, forget_ns)
SPAN(within, within_ns)
SPAN(interval, interval_ns)
SPAN(grace, grace_ns)

static int read_timeout(struct reading *r, const char *key, const struct json_tree *v) {
    r->has_timeout = true;
    return span_of(r, key, v, &r->s.timeout_ns);
}

static int read_give_up(struct reading *r, const char *key, const struct json_tree *v) {
    return whole_of(r, key, v, &r->s.give_up);
}
static int read_failures(struct reading *r, const char *key, const struct json_tree *v) {
    return whole_of(r, key, v, &r->s.failures);
}
static int read_status(struct reading *r, const char *key, const struct json_tree *v) {
    r->has_status = true;
    return whole_of(r, key, v, &r->s.status);
}

static int port_of(struct reading *r, const char *key, const struct json_tree *v) {
    int result = whole_of(r, key, v, &r->s.port);
    if (result >= 0 && (r->s.port < 1 || r->s.port > 65535))
        return fail(r->e, -EINVAL, "service.%s: %d is no port; nobody could listen there", key, r->s.port);
    return result;
}

static int read_port(struct reading *r, const char *key, const struct json_tree *v) {
    r->has_port = true;
    return port_of(r, key, v);
}

static int probe_once(struct reading *r, enum service_probe p) {
    if (r->s.probe != SERVICE_UNPROBED)
        return fail(r->e, -EINVAL, "service.health: of http, tcp and command only one makes sense");
    r->s.probe = p;
    return 0;
}

static int read_http(struct reading *r, const char *key, const struct json_tree *v) {
    const char *text = json_tree_text(v, NULL);
    if (!text) return fail(r->e, -EINVAL, "service.%s: not a path in quotes, as in \"/healthz\"", key);
    r->s.path = text;
    return probe_once(r, SERVICE_HTTP);
}

static int read_tcp(struct reading *r, const char *key, const struct json_tree *v) {
    int result = probe_once(r, SERVICE_TCP);
    return result < 0 ? result : port_of(r, key, v);
}

static int read_command(struct reading *r, const char *key, const struct json_tree *v) {
    const char *one = json_tree_text(v, NULL);
    if (one && !one[strspn(one, " \t\n")]) return fail(r->e, -EINVAL, "service.%s: it is empty", key);
    if (one) {
        job_word_put(&r->command, "sh");
        job_word_put(&r->command, "-c");
        job_word_put(&r->command, one);
    } else if (json_tree_type(v) != JSON_TREE_LIST) {
        return fail(r->e, -EINVAL, "service.%s: neither a list of words nor one text for the shell", key);
    }
    for (size_t i = 0; !one && i < json_tree_count(v); i++) {
        const char *word = json_tree_text(json_tree_at(v, i), NULL);
        if (!word) return fail(r->e, -EINVAL, "service.%s[%zu]: not a text in quotes", key, i);
        job_word_put(&r->command, word);
    }
    return probe_once(r, SERVICE_COMMAND);
}

struct row {
    const char *key, *full; /* full: as sentences call it */
    read_fn read;
};

static const struct row health_keys[] = {
    {"http",     "health.http",     read_http    },
    {"tcp",      "health.tcp",      read_tcp     },
    {"command",  "health.command",  read_command },
    {"port",     "health.port",     read_port    },
    {"status",   "health.status",   read_status  },
    {"interval", "health.interval", read_interval},
    {"timeout",  "health.timeout",  read_timeout },
    {"grace",    "health.grace",    read_grace   },
    {"failures", "health.failures", read_failures},
};

static int read_health(struct reading *r, const char *key, const struct json_tree *v);

static const struct row keys[] = {
    {"restart",    "restart",    read_restart   },
    {"pause",      "pause",      read_pause     },
    {"pause_most", "pause_most", read_pause_most},
    {"forget",     "forget",     read_forget    },
    {"give_up",    "give_up",    read_give_up   },
    {"within",     "within",     read_within    },
    {"yield",      "yield",      read_yield     },
    {"update",     "update",     read_update    },
    {"health",     "health",     read_health    },
};

static void look_up(struct reading *r, const struct row *rows, size_t count, const char *key,
                    const struct json_tree *v) {
    struct nearest guess = {.typed = key};
    const char *of = rows == keys ? "" : "health.";
    if (r->result < 0) return;
    for (size_t i = 0; i < count; i++) {
        nearest_offer(&guess, rows[i].key);
        if (strcmp(rows[i].key, key) != 0) continue;
        if (!json_tree_is_null(v)) r->result = rows[i].read(r, rows[i].full, v);
        return;
    }
    r->result = guess.best ? fail(r->e, -EINVAL, "service.%s%.60s: there is no such key; did you mean \"%s\"?", of, key,
                                  guess.best)
                           : fail(r->e, -EINVAL, "service.%s%.60s: there is no such key", of, key);
}

static void health_member(void *ctx, const char *key, const struct json_tree *v) {
    look_up(ctx, health_keys, ARRAY_LEN(health_keys), key, v);
}

static void member(void *ctx, const char *key, const struct json_tree *v) {
    look_up(ctx, keys, ARRAY_LEN(keys), key, v);
}

static int read_health(struct reading *r, const char *key, const struct json_tree *v) {
    if (json_tree_type(v) != JSON_TREE_OBJECT)
        return fail(r->e, -EINVAL, "service.%s: not an object, as in {\"http\": \"/healthz\", \"port\": 8000}", key);
    r->has_health = true;
    json_tree_each(v, health_member, r);
    return r->result;
}

int service_json_words(const struct json_tree *v, struct buf *ret, struct error *e) {
    struct reading r = {.e = e};
    if (json_tree_type(v) != JSON_TREE_OBJECT)
        return fail(e, -EINVAL, "service: not an object, as in {\"restart\": \"always\"}");
    service_spec_usual(&r.s);
    json_tree_each(v, member, &r);
    if (r.result >= 0 && r.has_health && r.s.probe == SERVICE_UNPROBED)
        r.result = fail(e, -EINVAL, "service.health: it says neither http, tcp nor command");
    if (r.result >= 0 && r.has_port && r.s.probe == SERVICE_TCP)
        r.result = fail(e, -EINVAL, "service.health.port: tcp names the port already");
    if (!r.has_timeout && r.s.timeout_ns > r.s.interval_ns) r.s.timeout_ns = r.s.interval_ns;
    r.s.command = job_words_of(&r.command);
    if (r.result >= 0) r.result = service_spec_check(&r.s, e);
    if (r.result >= 0) service_spec_write(&r.s, ret);
    buf_done(&r.command);
    return r.result;
}
