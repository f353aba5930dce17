/* /metrics, and what is known of the messages to people. */
#include "base/clock.h"
#include "base/json.h"
#include "server/api.h"
#include "server/server.h"

int api_exposition(struct call *c, struct error *e) {
    struct server *s = c->server;
    struct http_shared *text = exporter_text(&s->exporter, &s->live, s->settings.dcgm_names, clock_boot_ns());
    struct http_shared *packed = c->takes_gzip ? exporter_packed(&s->exporter) : NULL;
    if (packed) {
        http_add_field(c->request, "Content-Encoding", "gzip");
        http_add_field(c->request, "Vary", "Accept-Encoding");
        text = packed;
    }
    http_reply_shared(c->request, 200, "text/plain; version=0.0.4; charset=utf-8", text);
    return CALL_DONE;
}

int api_notifications(struct call *c, struct error *e) {
    json_open(&c->out, '{');
    tell_json(c->server->tell, &c->out);
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}

int api_notifications_test(struct call *c, struct error *e) {
    int r = tell_test(c->server->tell, c->server->host, e);
    return r < 0 ? r : 202;
}
