/* Services by the API: looking, and what people want of one. They are handed in as jobs with the key "service". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/api.h"
#include "server/routes.h"
#include "server/server.h"
#include "server/services.h"

const struct route_field api_service_spec_query[] = {
    {"revision", FIELD_NUMBER, false, "Another than the one that is to serve"},
    {0    }
};

static int find(struct call *c, int64_t *ret, struct error *e) {
    const struct queue_who who = api_who(c);
    *ret = services_find(c->server->services, c->param[0], &who, e);
    return *ret ? 0 : e->code;
}

int api_services(struct call *c, struct error *e) {
    json_open(&c->out, '{');
    json_pair_num(&c->out, "time", (double)(clock_real_ns() / NS_PER_MS) / 1e3);
    json_key(&c->out, "services");
    json_open(&c->out, '[');
    services_json(c->server->services, &c->out);
    json_close(&c->out, ']');
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}

int api_service(struct call *c, struct error *e) {
    int64_t id;
    int r = find(c, &id, e);
    if (r < 0) return r;
    services_json_one(c->server->services, &c->out, id);
    buf_putc(&c->out, '\n');
    return 0;
}

int api_service_spec(struct call *c, struct error *e) {
    const struct queue_who who = api_who(c);
    int64_t id;
    double revision = 0;
    int r = find(c, &id, e);
    if (r >= 0) r = call_query_number(c, "revision", 1, UINT32_MAX, 0, &revision, e);
    if (r >= 0) r = services_json_spec(c->server->services, &c->out, id, (uint32_t)revision, &who, e);
    if (r < 0) return r;
    buf_putc(&c->out, '\n');
    return 0;
}

struct doing {
    struct call *call;
    int64_t id;
};

static void done(void *ctx, int result, const struct error *e) {
    struct doing *d = ctx;
    struct call *c = d->call;
    if (result >= 0 && services_json_one(c->server->services, &c->out, d->id)) buf_putc(&c->out, '\n');
    call_end(c, result < 0 ? result : 0, e);
    free(d);
}

static int act(struct call *c, enum service_verb verb, struct error *e) {
    const struct queue_who who = api_who(c);
    int64_t id;
    int r = find(c, &id, e);
    if (r < 0) return r;
    struct doing *d = malloc(sizeof *d);
    if (!d) abort();
    *d = (struct doing){c, id};
    r = services_do(c->server->services, &who, id, verb, done, d, e);
    if (r >= 0) return CALL_LATER;
    free(d);
    return r;
}

int api_service_suspend(struct call *c, struct error *e) { return act(c, SERVICE_DO_SUSPEND, e); }
int api_service_resume(struct call *c, struct error *e) { return act(c, SERVICE_DO_RESUME, e); }
int api_service_restart(struct call *c, struct error *e) { return act(c, SERVICE_DO_RESTART, e); }
int api_service_remove(struct call *c, struct error *e) { return act(c, SERVICE_DO_REMOVE, e); }
