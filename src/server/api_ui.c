/* Opening a UI: the answer is an address that works once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/api.h"
#include "server/proxy.h"
#include "server/queue_ui.h"
#include "server/server.h"

const struct route_field api_ui_query[] = {
    {"element", FIELD_NUMBER, false, "Of an array: which; where it is not given, the first that runs"},
    {0   }
};

int api_ui_open(struct call *c, const struct proxy_target *t, struct error *e) {
    AUTO(buf_done) struct buf url = {0};
    int r = proxy_open(c->server->proxy, c, t, &url, e);
    if (r < 0) return r;
    json_open(&c->out, '{');
    json_pair_str(&c->out, "url", url.s);
    json_pair_str(&c->out, "path", t->ui.path);
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}

int api_job_ui(struct call *c, struct error *e) {
    const struct queue_who who = api_who(c);
    struct proxy_target t = {.open.kind = WIRE_STREAM_RUN};
    struct queue_ui u;
    double element;
    int r = api_job_number(c->param[0], &t.job, e);
    if (r >= 0) r = call_query_number(c, "element", 0, 1e9, -1, &element, e);
    if (r >= 0) r = queue_ui(c->server->queue, t.job, (int64_t)element, &who, &u, e);
    if (r < 0) return r;
    t.element = (int64_t)element;
    t.open.key = u.key;
    t.ui = u.ui;
    memcpy(t.node, u.node, sizeof t.node);
    snprintf(t.title, sizeof t.title, "%s", u.title);
    snprintf(t.owner, sizeof t.owner, "%s", u.owner);
    return api_ui_open(c, &t, e);
}
