#include "server/proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/http_relay.h"
#include "server/api.h"
#include "server/link_stream.h"
#include "server/proxy_head.h"
#include "server/proxy_page.h"
#include "server/queue_ui.h"
#include "server/secrets.h"
#include "server/server.h"

#define TICKET_S 60
#define GRANT_S (12 * 3600) /* of one who asked over the Unix socket: he has no session whose end would end it */
#define VIEWERS_MAX 64      /* of one UI */
#define ASK_S 2             /* between two questions about a container */
#define ENTER "/.gpumgr/enter?ticket="
#define NONCE 12

/* Somebody who may see a UI: one who has a ticket, or has used it. */
struct viewer {
    struct viewer *next;
    struct ui_open *ui;
    struct caller who;
    uint8_t secret[SECRETS_HASH]; /* of the ticket, then of the cookie */
    bool is_ticket;
    int64_t until_s;
    uint64_t number;             /* no other viewer ever has it */
    bool is_asking, may_no_more; /* of a container: its machine is asked; and said no */
};

struct ui_open {
    struct ui_open *next;
    struct proxy *proxy;
    struct proxy_target of;
    char name[72];         /* "job-17": in the host's name where UIs have names */
    char nonce[NONCE + 1]; /* this UI and no other one: what a browser kept of it need not be cleared */
    unsigned port;
    struct relay *relay; /* its own; NULL where all share one */
    struct viewer *viewers;
};

struct proxy {
    struct server *server;
    unsigned first, last;
    struct {
        char owner[64];
        int64_t used_s;
    } * past;             /* by port: who had it last */
    struct relay *shared; /* where UIs have names */
    struct ui_open *uis;
    uint64_t viewers, seconds;
};

static int64_t now_s(void) { return clock_real_ns() / NS_PER_S; }

/* ---- who may ---- */

static bool may_view(struct ui_open *ui, struct viewer *v) {
    struct server *s = ui->proxy->server;
    struct queue_ui now;
    struct error e;
    if (v->until_s < now_s() || !auth_is_still(ui->proxy->server->auth, &v->who, now_s())) return false;
    if (!ui->of.job) return !v->may_no_more; /* and the node says no with each connection */
    const struct queue_who who = api_who_of(s->auth, &v->who);
    return queue_ui(s->queue, ui->of.job, ui->of.element, &who, &now, &e) >= 0;
}

static struct viewer *viewer_by(struct ui_open *ui, const char *secret, bool is_ticket) {
    uint8_t hash[SECRETS_HASH];
    secrets_hash(is_ticket ? "ui ticket" : "ui", secret, hash);
    for (struct viewer *v = ui->viewers; v; v = v->next)
        if (v->is_ticket == is_ticket && secrets_equal(hash, v->secret, sizeof hash)) return may_view(ui, v) ? v : NULL;
    return NULL;
}

/* ---- names ---- */

static void cookie_name(const struct ui_open *ui, bool is_tls, char ret[PROXY_COOKIE_NAME]) {
    if (ui->relay)
        snprintf(ret, PROXY_COOKIE_NAME, "%sgpumgr_ui_%u", is_tls ? "__Host-" : "", ui->port);
    else
        snprintf(ret, PROXY_COOKIE_NAME, "%sgpumgr_ui", is_tls ? "__Host-" : "");
}

/* As the browser sees it: the word of a trusted proxy counts. */
struct seen {
    bool is_tls;
    char address[48], origin[300];
};

static void see(const struct proxy *p, const struct relay_conn *c, struct seen *ret) {
    struct in6_addr address;
    const struct http_pass *r = relay_request(c);
    const char *host = http_field(&r->head, "host");
    relay_address(c, &address);
    ret->is_tls = relay_is_tls(c);
    proxies_origin(&p->server->proxies, &r->head, &address, &ret->is_tls);
    http_address_text(&address, ret->address, sizeof ret->address);
    snprintf(ret->origin, sizeof ret->origin, "%s://%.255s", ret->is_tls ? "https" : "http", host ? host : "");
}

static void about_of(const struct ui_open *ui, const struct seen *seen, struct proxy_about *ret) {
    *ret = (struct proxy_about){
        .port = ui->of.ui.port, .origin = seen->origin, .address = seen->address, .is_own_host = !ui->relay};
    if (!ret->port && ui->of.open.kind == WIRE_STREAM_CONTAINER) ret->port = ui->of.open.port;
    snprintf(ret->prefix, sizeof ret->prefix, "gpumgr_%.8s_", ui->nonce);
    cookie_name(ui, seen->is_tls, ret->cookie);
}

/* ---- a request ---- */

static void say(struct relay_conn *c, int status, const char *title, const char *sentence, bool is_again) {
    AUTO(buf_done) struct buf fields = {0}, body = {0};
    const struct http_pass *r = relay_request(c);
    bool is_page = http_list_has(http_field(&r->head, "accept"), "text/html");
    if (is_page)
        proxy_page(title, sentence, is_again, &fields, &body);
    else
        buf_printf(&body, "%s: %s\n", title, sentence);
    if (is_again && !is_page) buf_puts(&fields, "Retry-After: 2\r\n");
    relay_reply(c, status, fields.s, is_page ? "text/html; charset=utf-8" : "text/plain; charset=utf-8", body.s,
                body.len);
}

/* Whether the browser was at this very UI before. */
static bool was_here(const struct ui_open *ui, const char *cookies, const char *name) {
    char value[NONCE + SECRETS_TEXT + 2];
    for (int i = 0; rules_cookie(cookies, name, i, value, sizeof value); i++)
        if (strncmp(value, ui->nonce, NONCE) == 0 && value[NONCE] == '.') return true;
    return false;
}

static struct viewer *viewer_of(struct ui_open *ui, const char *cookies, const char *name) {
    char value[NONCE + SECRETS_TEXT + 2];
    for (int i = 0; rules_cookie(cookies, name, i, value, sizeof value); i++) {
        struct viewer *v = strlen(value) > NONCE + 1 ? viewer_by(ui, value + NONCE + 1, false) : NULL;
        if (v) return v;
    }
    return NULL;
}

/* The ticket becomes a cookie; what an earlier UI left at this origin is cleared. */
static void enter(struct relay_conn *c, struct ui_open *ui, const struct seen *seen, const char *ticket) {
    char secret[SECRETS_TEXT], name[PROXY_COOKIE_NAME];
    const char *cookies = http_field(&relay_request(c)->head, "cookie");
    struct viewer *v = rules_is_secret(ticket) ? viewer_by(ui, ticket, true) : NULL;
    if (!v) {
        say(c, 403, "This link was used already, or is too old", "Open the UI once more from the job's page.", false);
        return;
    }
    cookie_name(ui, seen->is_tls, name);
    secrets_make(secret);
    secrets_hash("ui", secret, v->secret);
    v->is_ticket = false;
    v->until_s = now_s() + GRANT_S;
    AUTO(buf_done) struct buf fields = {0};
    buf_printf(&fields, "Location: %s\r\nSet-Cookie: %s=%s.%s; Path=/; HttpOnly; SameSite=Lax%s\r\n", ui->of.ui.path,
               name, ui->nonce, secret, seen->is_tls ? "; Secure" : "");
    if (ui->relay && !was_here(ui, cookies, name)) buf_puts(&fields, "Clear-Site-Data: \"cache\", \"storage\"\r\n");
    buf_puts(&fields, "Referrer-Policy: no-referrer\r\n");
    relay_reply(c, 303, fields.s, NULL, NULL, 0);
}

static void serve(struct ui_open *ui, struct relay_conn *c, const struct http_pass *r) {
    struct seen seen;
    struct proxy_about about;
    see(ui->proxy, c, &seen);
    about_of(ui, &seen, &about);
    if (strcmp(r->method, "GET") == 0 && strncmp(r->target, ENTER, strlen(ENTER)) == 0) {
        enter(c, ui, &seen, r->target + strlen(ENTER));
        return;
    }
    struct viewer *v = viewer_of(ui, http_field(&r->head, "cookie"), about.cookie);
    if (!v) {
        say(c, 403, "This UI is not open for you", "Open it from the job's page of gpumgr, or with gpumgr open.",
            false);
    } else if (!proxy_may_pass(r, seen.origin)) {
        say(c, 403, "Refused", "Another page asked for this in your name.", false);
    } else if (ui->relay && http_field(&r->head, "service-worker")) {
        say(c, 403, "Refused", "A service worker would outlive this UI at an address that others get later.", false);
    } else {
        AUTO(buf_done) struct buf head = {0};
        relay_set_ctx(c, v);
        proxy_request(r, &about, &head);
        relay_pass(c, &head);
    }
}

static void on_request(void *ctx, struct relay_conn *c, const struct http_pass *r) { serve(ctx, c, r); }

/* Its name is the first part of the host's. */
static void on_named_request(void *ctx, struct relay_conn *c, const struct http_pass *r) {
    struct proxy *p = ctx;
    const char *host = http_field(&r->head, "host");
    size_t n = host ? strcspn(host, ".:") : 0;
    for (struct ui_open *ui = host ? p->uis : NULL; ui; ui = ui->next)
        if (strlen(ui->name) == n && strncasecmp(ui->name, host, n) == 0) {
            serve(ui, c, r);
            return;
        }
    say(c, 404, "There is no such UI", "It is not open, or its job has ended.", false);
}

static void on_response(void *ctx, struct relay_conn *c, const struct http_pass *r, struct buf *head) {
    const struct viewer *v = relay_ctx(c);
    struct seen seen;
    struct proxy_about about;
    see(v->ui->proxy, c, &seen);
    about_of(v->ui, &seen, &about);
    proxy_response(r, &about, head);
}

static void on_failed(void *ctx, struct relay_conn *c, int code, const char *sentence) {
    bool is_again = code == -ECONNREFUSED || code == -ENOTCONN || code == -ETIMEDOUT || code == -EAGAIN;
    say(c, is_again ? 503 : 502, is_again ? "Not there yet" : "It cannot be reached", sentence, is_again);
}

/* ---- what is behind ---- */

static void up_opened(void *ctx) { relay_up_opened(ctx); }
static void up_data(void *ctx, const void *bytes, size_t n) { relay_up_data(ctx, bytes, n); }
static void up_room(void *ctx) { relay_up_room(ctx); }
static void up_ended(void *ctx) { relay_up_ended(ctx); }
static void up_closed(void *ctx, int result, const char *sentence) { relay_up_closed(ctx, result, sentence); }

static int on_open(void *ctx, struct relay_conn *c, void **ret_up, struct error *e) {
    static const struct link_stream_events events = {up_opened, up_data, up_room, up_ended, up_closed};
    const struct viewer *v = relay_ctx(c);
    struct server *s = v->ui->proxy->server;
    struct wire_stream_open o = v->ui->of.open;
    struct link_stream *stream;
    snprintf(o.account, sizeof o.account, "%s", v->who.name);
    o.is_admin = v->who.role == ROLE_ADMIN;
    int r = link_stream_open(s->links, v->ui->of.node, &o, &events, c, &stream, e);
    if (r >= 0) *ret_up = stream;
    return r;
}

static size_t up_room_of(void *up) { return link_stream_room(up); }
static void up_write(void *up, const void *bytes, size_t n) { link_stream_write(up, bytes, n); }
static void up_took(void *up, size_t n) { link_stream_took(up, n); }
static void up_end(void *up) { link_stream_end(up); }
static void up_close(void *up) { link_stream_close(up); }

static struct relay_service service_of(void *ctx, bool is_named) {
    return (struct relay_service){.ctx = ctx,
                                  .request = is_named ? on_named_request : on_request,
                                  .response = on_response,
                                  .open = on_open,
                                  .failed = on_failed,
                                  .room = up_room_of,
                                  .write = up_write,
                                  .took = up_took,
                                  .end = up_end,
                                  .close = up_close};
}

/* ---- UIs ---- */

static bool is_of_ui(void *ctx, const struct relay_conn *c) {
    const struct viewer *v = relay_ctx(c);
    return v && v->ui == ctx;
}

static bool is_of_viewer(void *ctx, const struct relay_conn *c) { return relay_ctx(c) == ctx; }

static struct relay *relay_of(const struct ui_open *ui) { return ui->relay ? ui->relay : ui->proxy->shared; }

static void ui_close(struct proxy *p, struct ui_open *ui) {
    struct ui_open **at = &p->uis;
    while (*at != ui) at = &(*at)->next;
    *at = ui->next;
    if (!ui->relay) relay_cut(p->shared, is_of_ui, ui);
    relay_free(ui->relay);
    while (ui->viewers) {
        struct viewer *v = ui->viewers;
        ui->viewers = v->next;
        free(v);
    }
    if (ui->port && ui->relay) p->past[ui->port - p->first].used_s = now_s();
    free(ui);
}

/* Who is not signed in any more, or lost his right to it, is cut off. */
static void mind_viewers(struct ui_open *ui) {
    for (struct viewer **at = &ui->viewers; *at;) {
        struct viewer *v = *at;
        if (may_view(ui, v)) {
            at = &v->next;
            continue;
        }
        relay_cut(relay_of(ui), is_of_viewer, v);
        *at = v->next;
        free(v);
    }
}

static bool is_over(struct ui_open *ui) {
    static const struct queue_who anybody = {.is_admin = true, .account = ""};
    struct queue_ui now;
    struct error e;
    if (!ui->of.job) return false;
    if (queue_ui(ui->proxy->server->queue, ui->of.job, ui->of.element, &anybody, &now, &e) < 0) return true;
    ui->of.open.key = now.key; /* another attempt */
    return false;
}

/* ---- containers: their machines know whether they run, and who may ---- */

struct asking {
    struct proxy *proxy;
    uint64_t viewer;
};

static struct viewer *viewer_of_number(struct proxy *p, uint64_t number) {
    for (struct ui_open *ui = p->uis; ui; ui = ui->next)
        for (struct viewer *v = ui->viewers; v; v = v->next)
            if (v->number == number) return v;
    return NULL;
}

/* A machine that does not answer says nothing; the server's end (-ENOTCONN) comes when the proxy is gone. */
static void may_came(void *ctx, int result, const struct wire_container_answer *a, const char *sentence) {
    struct asking *k = ctx;
    bool is_silent = result == -ENOTCONN || result == -ETIMEDOUT;
    struct viewer *v = result == -ENOTCONN ? NULL : viewer_of_number(k->proxy, k->viewer);
    if (v) v->is_asking = false;
    if (v && result < 0 && !is_silent && result != -EAGAIN && result != -EIO && result != -EPROTO)
        v->may_no_more = true;
    free(k);
}

static void ask_machine(struct ui_open *ui, struct viewer *v) {
    struct server *s = ui->proxy->server;
    struct wire_container_call call = {.verb = CONTAINER_VERB_UI, .is_admin = v->who.role == ROLE_ADMIN};
    struct live_node *n = live_find_node(&s->live, ui->of.node);
    struct error ignored;
    snprintf(call.account, sizeof call.account, "%s", v->who.user ? v->who.name : "");
    snprintf(call.of, sizeof call.of, "%s", ui->of.open.container);
    struct asking *k = malloc(sizeof *k);
    if (!k) abort();
    *k = (struct asking){ui->proxy, v->number};
    v->is_asking = n && containers_ask(s->containers, n, &call, may_came, k, &ignored) >= 0;
    if (!v->is_asking) free(k);
}

static void ask_machines(struct proxy *p) {
    for (struct ui_open *ui = p->uis; ui; ui = ui->next)
        for (struct viewer *v = ui->of.job ? NULL : ui->viewers; v; v = v->next)
            if (!v->is_asking) ask_machine(ui, v);
}

static void on_second(void *ctx) {
    struct proxy *p = ctx;
    if (p->seconds++ % ASK_S == 0) ask_machines(p);
    for (struct ui_open *ui = p->uis, *next; ui; ui = next) {
        next = ui->next;
        mind_viewers(ui);
        if (is_over(ui) || !ui->viewers) ui_close(p, ui);
    }
}

static struct ui_open *find(struct proxy *p, const struct proxy_target *t) {
    for (struct ui_open *ui = p->uis; ui; ui = ui->next)
        if (ui->of.job == t->job && ui->of.element == t->element && strcmp(ui->of.node, t->node) == 0 &&
            strcmp(ui->of.open.container, t->open.container) == 0)
            return ui;
    return NULL;
}

/* The order in which ports are tried: one that the same user had, one that nobody had, the one that was left longest ago. */
static unsigned best_port(const struct proxy *p, const char *owner, const bool *is_tried) {
    unsigned best = 0;
    int64_t least = INT64_MAX;
    for (unsigned port = p->first; port <= p->last; port++) {
        unsigned i = port - p->first;
        bool is_his = *p->past[i].owner && strcmp(p->past[i].owner, owner) == 0;
        int64_t rank = is_his ? -1 : p->past[i].used_s;
        if (is_tried[i] || rank >= least) continue;
        least = rank;
        best = port;
    }
    return best;
}

static bool has_port(const struct proxy *p, unsigned port) {
    for (const struct ui_open *ui = p->uis; ui; ui = ui->next)
        if (ui->relay && ui->port == port) return true;
    return false;
}

static int listen_at(struct proxy *p, unsigned port, void *ctx, bool is_named, struct relay **ret, struct error *e) {
    const char *listen = p->server->settings.listen, *colon = strrchr(listen, ':');
    const struct relay_service service = service_of(ctx, is_named);
    char address[160];
    snprintf(address, sizeof address, "%.*s:%u", (int)(colon ? colon - listen : 0), listen, port);
    return relay_new(p->server->loop, address, p->server->tls, &service, ret, e);
}

static int take_port(struct ui_open *ui, struct error *e) {
    struct proxy *p = ui->proxy;
    unsigned count = p->last - p->first + 1, port;
    bool *is_tried = calloc(count, sizeof *is_tried);
    if (!is_tried) abort();
    int r = -EADDRINUSE;
    for (unsigned i = 0; i < count; i++) is_tried[i] = has_port(p, p->first + i);
    while (r < 0 && (port = best_port(p, ui->of.owner, is_tried))) {
        is_tried[port - p->first] = true;
        r = listen_at(p, port, ui, false, &ui->relay, e);
        if (r < 0) continue;
        ui->port = port;
        snprintf(p->past[port - p->first].owner, sizeof p->past[0].owner, "%s", ui->of.owner);
    }
    free(is_tried);
    return r < 0 ? fail(e, -EBUSY, "all ports for UIs are taken (ui.ports, %u to %u)", p->first, p->last) : 0;
}

static int ui_new(struct proxy *p, const struct proxy_target *t, struct ui_open **ret, struct error *e) {
    struct ui_open *ui = calloc(1, sizeof *ui);
    char random[SECRETS_TEXT];
    if (!ui) abort();
    *ui = (struct ui_open){.proxy = p, .of = *t};
    secrets_make(random);
    for (char *s = random; *s; s++)
        if (*s == '-' || *s == '_') *s = 'x';
    memcpy(ui->nonce, random, NONCE);
    if (!t->job)
        snprintf(ui->name, sizeof ui->name, "c-%.12s", t->open.container);
    else if (t->element >= 0)
        snprintf(ui->name, sizeof ui->name, "job-%" PRId64 "-%" PRId64, t->job, t->element);
    else
        snprintf(ui->name, sizeof ui->name, "job-%" PRId64, t->job);
    int r = p->shared ? 0 : take_port(ui, e);
    if (r < 0) {
        free(ui);
        return r;
    }
    ui->next = p->uis;
    p->uis = ui;
    log_line(LOG_INFO, "ui_opened", -1, "the UI of %s (%s) is open at %s %u", ui->name, t->title,
             ui->relay ? "port" : "its own name, port", ui->relay ? ui->port : p->first);
    *ret = ui;
    return 0;
}

/* ---- its address ---- */

/* The host as the caller typed it, or as this server is known. */
static void host_of(const struct call *c, char *ret, size_t room) {
    const struct settings *s = &c->server->settings;
    const char *typed = c->request && !c->request->peer.is_unix ? http_field(&c->request->head, "host") : NULL;
    const char *url = strstr(s->public_url, "://"), *from = typed ? typed : url ? url + 3 : s->listen;
    size_t n = *from == '[' ? strcspn(from, "]") + 1 : strcspn(from, ":/");
    snprintf(ret, room, "%.*s", (int)(n < room ? n : room - 1), from);
    if (!*ret || strcmp(ret, "*") == 0 || strcmp(ret, "0.0.0.0") == 0 || strcmp(ret, "[::]") == 0)
        snprintf(ret, room, "%s", c->server->host);
}

static int put_url(const struct ui_open *ui, const struct call *c, const char *ticket, struct buf *url,
                   struct error *e) {
    char host[256];
    if (!ui->relay) {
        int r = ui_origin(c->server->settings.ui_url, ui->name, url, e);
        if (r < 0) return r;
    } else {
        host_of(c, host, sizeof host);
        buf_printf(url, "%s://%s:%u", c->server->tls ? "https" : "http", host, ui->port);
    }
    buf_printf(url, ENTER "%s", ticket);
    return 0;
}

/* ---- for the API ---- */

int proxy_open(struct proxy *p, const struct call *c, const struct proxy_target *t, struct buf *url, struct error *e) {
    char ticket[SECRETS_TEXT];
    struct ui_open *ui = find(p, t);
    unsigned count = 0;
    if (!p->last) return fail(e, -EBUSY, "UIs are not opened through this server: ui.ports is empty");
    int r = ui ? 0 : ui_new(p, t, &ui, e);
    if (r < 0) return r;
    for (const struct viewer *v = ui->viewers; v; v = v->next) count++;
    if (count >= VIEWERS_MAX) return fail(e, -EAGAIN, "this UI was opened too often at once; try again in a minute");
    struct viewer *v = calloc(1, sizeof *v);
    if (!v) abort();
    *v = (struct viewer){.next = ui->viewers,
                         .ui = ui,
                         .who = c->who,
                         .is_ticket = true,
                         .until_s = now_s() + TICKET_S,
                         .number = ++p->viewers};
    secrets_make(ticket);
    secrets_hash("ui ticket", ticket, v->secret);
    ui->viewers = v;
    return put_url(ui, c, ticket, url, e);
}

int proxy_new(struct server *s, struct proxy **ret, struct error *e) {
    AUTO(buf_done) struct buf unused = {0};
    struct proxy *p = calloc(1, sizeof *p);
    if (!p) abort();
    p->server = s;
    int r = ui_ports(s->settings.ui_ports, &p->first, &p->last, e);
    if (r >= 0) {
        p->past = calloc(p->last - p->first + 1, sizeof *p->past);
        if (!p->past) abort();
    }
    if (r >= 0 && *s->settings.ui_url) r = ui_origin(s->settings.ui_url, "job-1", &unused, e);
    if (r >= 0 && *s->settings.ui_url && p->last) r = listen_at(p, p->first, p, true, &p->shared, e);
    if (r < 0) {
        proxy_free(p);
        return r;
    }
    loop_every(s->loop, 1000, on_second, p);
    *ret = p;
    return 0;
}

void proxy_drain(struct proxy *p) {
    while (p->uis) ui_close(p, p->uis);
    relay_free(p->shared);
    p->shared = NULL;
    p->last = p->first = 0;
}

void proxy_free(struct proxy *p) {
    if (!p) return;
    proxy_drain(p);
    free(p->past);
    free(p);
}
