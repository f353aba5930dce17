/* GPUs and nodes as they are now. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/gpu_json.h"
#include "server/api.h"
#include "server/live_json.h"
#include "server/server.h"

static void begin(struct call *c) {
    json_open(&c->out, '{');
    gpu_json_number(&c->out, "time", (double)clock_real_ns() / NS_PER_S, 0.001);
}

static int end(struct call *c) {
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}

int api_gpus(struct call *c, struct error *e) {
    begin(c);
    live_json_gpus(&c->out, &c->server->live, clock_boot_ns());
    return end(c);
}

int api_gpu(struct call *c, struct error *e) {
    struct live_node *n;
    const struct live_device *d = live_find_gpu(&c->server->live, c->param[0], &n);
    if (!d) return fail(e, -ENOENT, "no GPU with this UUID is known");
    live_json_gpu(&c->out, n, d, clock_boot_ns(), true);
    buf_putc(&c->out, '\n');
    return 0;
}

int api_nodes(struct call *c, struct error *e) {
    begin(c);
    live_json_nodes(&c->out, &c->server->live, clock_boot_ns());
    return end(c);
}

int api_node(struct call *c, struct error *e) {
    const struct live_node *n = live_find_node(&c->server->live, c->param[0]);
    if (!n) return fail(e, -ENOENT, "no node of this name is known");
    live_json_node(&c->out, n, clock_boot_ns());
    buf_putc(&c->out, '\n');
    return 0;
}

/* It is off the list when the file says so. It may have come back meanwhile: then it is one that came, and stays. */
static void forgotten(void *ctx, int result, const struct error *e) {
    struct call *c = ctx;
    struct server *s = c->server;
    struct live_node *n = result >= 0 ? live_find_node(&s->live, c->param[0]) : NULL;
    if (n && n->is_gone) {
        link_end(s->links, n, "an administrator forgot this machine");
        live_forget(&s->live, n);
    }
    call_end(c, result < 0 ? result : 0, e);
}

/* What is open about it ends before the row goes, so that all of it has ended when the call is answered. */
int api_node_forget(struct call *c, struct error *e) {
    struct server *s = c->server;
    const struct live_node *n = live_find_node(&s->live, c->param[0]);
    if (!n) return fail(e, -ENOENT, "no node of this name is known");
    if (!n->is_gone)
        return fail(e, -EBUSY, "node %s is not gone: only one that has fallen silent can be forgotten", n->name);
    char text[160], subject[104];
    snprintf(text, sizeof text, "%.60s forgot this machine", c->who.name);
    server_event(s, n->name, "node_forgotten", EVENT_INFO, text);
    for (uint16_t i = 0; i < n->devices; i++) {
        snprintf(subject, sizeof subject, "gpu:%s", n->device[i].is.uuid);
        tell_forget(s->tell, subject);
    }
    int r = roster_forget(s->roster, n->name, forgotten, c, e);
    return r < 0 ? r : CALL_LATER;
}
