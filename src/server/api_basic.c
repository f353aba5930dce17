#include "base/json.h"
#include "model/host_metrics.h"
#include "server/api.h"
#include "server/routes.h"
#include "server/server.h"

int api_health(struct call *c, struct error *e) {
    json_open(&c->out, '{');
    json_pair_str(&c->out, "status", "ok");
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}

int api_ready(struct call *c, struct error *e) {
    bool is_ready = false;
    for (size_t i = 0; i < c->server->live.count && !c->server->is_stopping; i++)
        is_ready |= c->server->live.node[i]->rounds > 0;
    json_open(&c->out, '{');
    json_pair_bool(&c->out, "ready", is_ready);
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return is_ready ? 0 : 503;
}

int api_openapi(struct call *c, struct error *e) {
    routes_openapi(c->server->base_path, &c->out);
    return 0;
}

static const char *keep_name(enum metric_keep keep) {
    static const char *const names[] = {[KEEP_MEAN] = "mean", [KEEP_MIN] = "min", [KEEP_MAX] = "max"};
    return names[keep];
}

static void put_metric(struct buf *b, const struct metric *m, const char *scope) {
    json_open(b, '{');
    json_pair_str(b, "name", m->name);
    json_pair_str(b, "unit", metric_unit_name(m->unit));
    json_pair_str(b, "kind", metric_kind_name(m->kind));
    json_pair_str(b, "keep", keep_name(m->keep));
    json_pair_num(b, "scale", m->scale);
    json_pair_str(b, "help", m->help);
    json_pair_str(b, "scope", scope);
    json_close(b, '}');
}

int api_metrics(struct call *c, struct error *e) {
    json_open(&c->out, '{');
    json_key(&c->out, "metrics");
    json_open(&c->out, '[');
    for (int i = 0; i < METRIC_COUNT; i++) put_metric(&c->out, &metrics[i], "gpu");
    for (int i = 0; i < HOST_METRIC_COUNT; i++) put_metric(&c->out, &host_metrics[i], "host");
    json_close(&c->out, ']');
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}
