#include "server/proxy_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/auth_rules.h"

#define OURS "gpumgr"

/* ---- cookies ---- */

static bool begins(const char *text, size_t n, const char *with) {
    return n >= strlen(with) && strncasecmp(text, with, strlen(with)) == 0;
}

bool proxy_is_ours(const char *name, size_t n) {
    static const char *const promises[] = {"__Host-", "__Secure-"};
    for (size_t i = 0; i < ARRAY_LEN(promises); i++)
        if (begins(name, n, promises[i])) {
            name += strlen(promises[i]);
            n -= strlen(promises[i]);
        }
    return begins(name, n, OURS);
}

/* The next "name=value" of a list with semicolons, without blanks around it; NULL: no more. */
static const char *next_part(const char **at, size_t *ret_n) {
    while (**at == ' ' || **at == '\t' || **at == ';') (*at)++;
    const char *from = *at;
    if (!*from) return NULL;
    size_t n = strcspn(from, ";");
    *at += n;
    while (n && (from[n - 1] == ' ' || from[n - 1] == '\t')) n--;
    *ret_n = n;
    return from;
}

static void put_cookies(const struct http_pass *p, const struct proxy_about *about, struct buf *head) {
    bool is_first = true;
    for (unsigned i = 0; i < p->head.count; i++) {
        const char *at = p->head.field[i].value, *one;
        size_t n;
        if (strcmp(p->head.field[i].name, "cookie") != 0) continue;
        while ((one = next_part(&at, &n))) {
            if (begins(one, n, about->prefix)) {
                one += strlen(about->prefix);
                n -= strlen(about->prefix);
            } else if (proxy_is_ours(one, strcspn(one, "=;"))) {
                continue;
            }
            buf_printf(head, "%s%.*s", is_first ? "Cookie: " : "; ", (int)n, one);
            is_first = false;
        }
    }
    if (!is_first) buf_puts(head, "\r\n");
}

static bool has_attribute(const char *attributes, const char *name) {
    const char *one;
    size_t n;
    while ((one = next_part(&attributes, &n)))
        if (n == strlen(name) && strncasecmp(one, name, n) == 0) return true;
    return false;
}

/* Without a Domain: it is for the host that the browser sees, and for no other. What counts is the first part as a browser finds it,
 * behind blanks and semicolons; one without a name is none of a UI's, for its value would come back as another's name. */
static void put_set_cookie(const char *cookie, const struct proxy_about *about, struct buf *head) {
    const char *one;
    size_t n = 0;
    const char *first = next_part(&cookie, &n);
    if (!first || *first == '=' || proxy_is_ours(first, strcspn(first, "=;"))) return;
    buf_printf(head, "Set-Cookie: %s%.*s", has_attribute(cookie, "HttpOnly") ? about->prefix : "", (int)n, first);
    while ((one = next_part(&cookie, &n)))
        if (!begins(one, n, "Domain=")) buf_printf(head, "; %.*s", (int)n, one);
    buf_puts(head, "\r\n");
}

/* ---- who asks ---- */

static bool is(const char *value, const char *want) { return value && strcmp(value, want) == 0; }

bool proxy_may_pass(const struct http_pass *p, const char *origin) {
    const struct http_head *h = &p->head;
    const char *from = http_field(h, "origin"), *site = http_field(h, "sec-fetch-site");
    if (http_field_count(h, "origin") > 1 || http_field_count(h, "sec-fetch-site") > 1) return false;
    if (site && !is(site, "same-origin") && !is(site, "none"))
        return is(p->method, "GET") && is(http_field(h, "sec-fetch-mode"), "navigate") &&
               is(http_field(h, "sec-fetch-dest"), "document");
    if (from) return strcasecmp(from, origin) == 0;
    /* no browser opens a WebSocket without an Origin, and none changes something without one */
    return !p->is_websocket || site;
}

/* ---- a request ---- */

static bool is_told_by_us(const char *name) {
    static const char *const names[] = {"host",    "cookie",    "forwarded",   "origin",
                                        "referer", "x-real-ip", "x-csrf-token"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0) return true;
    return strncmp(name, "x-forwarded-", 12) == 0;
}

/* Without a port where it is not known: one that the node picked. */
static int own_host(const struct proxy_about *about, const char *host, char *ret, size_t room) {
    return about->port ? snprintf(ret, room, "%s:%u", host, about->port) : snprintf(ret, room, "%s", host);
}

/* A page's own address, as the UI knows it. */
static void put_own(struct buf *head, const char *name, const char *value, const struct proxy_about *about) {
    size_t n = strlen(about->origin);
    if (!value || strncasecmp(value, about->origin, n) != 0 || (value[n] && value[n] != '/')) return;
    char own[32];
    own_host(about, "localhost", own, sizeof own);
    buf_printf(head, "%s: http://%s%s\r\n", name, own, value + n);
}

void proxy_request(const struct http_pass *p, const struct proxy_about *about, struct buf *head) {
    const struct http_head *h = &p->head;
    const char *host = http_field(h, "host"), *scheme_end = strstr(about->origin, "://");
    char own[32];
    own_host(about, "localhost", own, sizeof own);
    buf_printf(head, "%s %s HTTP/1.%d\r\nHost: %s\r\n", p->method, p->target, h->minor, own);
    for (unsigned i = 0; i < h->count; i++) {
        const struct http_field *f = &h->field[i];
        if (is_told_by_us(f->name) || http_pass_is_hop(h, f->name)) continue;
        if (strcmp(f->name, "authorization") == 0 && strstr(f->value, TOKEN_PREFIX)) continue; /* a token of ours */
        buf_printf(head, "%s: %s\r\n", f->name, f->value);
    }
    put_cookies(p, about, head);
    put_own(head, "Origin", http_field(h, "origin"), about);
    put_own(head, "Referer", http_field(h, "referer"), about);
    buf_printf(head, "X-Forwarded-For: %s\r\nX-Forwarded-Proto: %.*s\r\n", about->address,
               (int)(scheme_end ? scheme_end - about->origin : 4), about->origin);
    if (host) buf_printf(head, "X-Forwarded-Host: %s\r\n", host);
}

/* ---- an answer ---- */

/* What one origin says for the whole host, or for whoever comes later. */
static bool is_kept_back(const char *name, const struct proxy_about *about) {
    static const char *const always[] = {
        "clear-site-data", "strict-transport-security", "alt-svc", "report-to", "nel", "cross-origin-resource-policy",
        "public-key-pins"};
    static const char *const shared[] = {"cache-control", "expires", "pragma", "etag", "last-modified"};
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        if (strcmp(always[i], name) == 0) return true;
    for (size_t i = 0; i < ARRAY_LEN(shared) && !about->is_own_host; i++)
        if (strcmp(shared[i], name) == 0) return true;
    return false;
}

/* Where it sends the browser: to itself is a path. */
static void put_location(const char *value, const struct proxy_about *about, struct buf *head) {
    static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]", "0.0.0.0"};
    const char *rest = NULL;
    for (int tls = 0; tls < 2 && !rest; tls++)
        for (size_t i = 0; i < ARRAY_LEN(hosts) && !rest; i++) {
            char host[32], own[48];
            own_host(about, hosts[i], host, sizeof host);
            int n = snprintf(own, sizeof own, "%s://%s", tls ? "https" : "http", host);
            if (strncasecmp(value, own, (size_t)n) == 0 && (!value[n] || strchr("/?#", value[n]))) rest = value + n;
        }
    if (!rest)
        buf_printf(head, "Location: %s\r\n", value);
    else
        buf_printf(head, "Location: %s%s\r\n", *rest == '/' ? "" : "/", rest);
}

void proxy_response(const struct http_pass *p, const struct proxy_about *about, struct buf *head) {
    const struct http_head *h = &p->head;
    buf_printf(head, "HTTP/1.1 %d %s\r\n", p->status, p->phrase);
    for (unsigned i = 0; i < h->count; i++) {
        const struct http_field *f = &h->field[i];
        if (http_pass_is_hop(h, f->name) || is_kept_back(f->name, about)) continue;
        if (strcmp(f->name, "set-cookie") == 0)
            put_set_cookie(f->value, about, head);
        else if (strcmp(f->name, "location") == 0)
            put_location(f->value, about, head);
        else
            buf_printf(head, "%s: %s\r\n", f->name, f->value);
    }
    if (p->status == 101) return;
    /* besides its own policy, which stays in force */
    buf_puts(head, "Content-Security-Policy: frame-ancestors 'self'\r\nCross-Origin-Resource-Policy: same-origin\r\n");
    if (!about->is_own_host) buf_puts(head, "Cache-Control: no-store\r\n");
    if (!http_field(h, "referrer-policy")) buf_puts(head, "Referrer-Policy: same-origin\r\n");
}
