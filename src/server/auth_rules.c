#include "server/auth_rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

static bool is_cookie_octet(unsigned char c) {
    return c > 0x20 && c < 0x7f && c != '"' && c != ',' && c != ';' && c != '\\';
}

/* One "name=value" of the header: value and its length, or NULL when it has another name or is malformed. */
static const char *pair_value(const char *pair, size_t len, const char *name, size_t *ret_len) {
    size_t n = strlen(name);
    if (len <= n || memcmp(pair, name, n) != 0 || pair[n] != '=') return NULL;
    for (size_t i = n + 1; i < len; i++)
        if (!is_cookie_octet((unsigned char)pair[i])) return NULL;
    *ret_len = len - n - 1;
    return pair + n + 1;
}

bool rules_cookie(const char *header, const char *name, int n, char *ret, size_t room) {
    for (const char *at = header; at && *at;) {
        size_t len = strcspn(at, ";"), value_len = 0;
        const char *next = at[len] ? at + len + 1 : at + len;
        while (len && (*at == ' ' || *at == '\t')) at++, len--;
        while (len && (at[len - 1] == ' ' || at[len - 1] == '\t')) len--;
        const char *value = pair_value(at, len, name, &value_len);
        if (value && n-- == 0) {
            if (value_len >= room) return false;
            memcpy(ret, value, value_len);
            ret[value_len] = 0;
            return true;
        }
        at = next;
    }
    return false;
}

void rules_cookie_name(bool is_tls, const char *base_path, const char *host, char ret[RULES_COOKIE_NAME]) {
    bool has_base = base_path && *base_path && strcmp(base_path, "/") != 0;
    const char *prefix = !is_tls ? "" : has_base ? "__Secure-" : "__Host-";
    const char *colon = host ? strrchr(host, ':') : NULL, *port = colon ? colon + 1 : "";
    size_t n = strspn(port, "0123456789");
    bool has_port = n > 0 && n <= 5 && !port[n]; /* not so behind the last colon of "[::1]" */
    snprintf(ret, RULES_COOKIE_NAME, "%sgpumgr_session%s%s", prefix, has_port ? "_" : "", has_port ? port : "");
}

static bool is_base64url(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool rules_is_bearer(const char *header) {
    return header && strncasecmp(header, "Bearer", 6) == 0 && (!header[6] || header[6] == ' ');
}

bool rules_bearer(const char *header, char *ret, size_t room) {
    if (!rules_is_bearer(header)) return false;
    header += 6;
    header += strspn(header, " ");
    size_t n = 0;
    while (is_base64url(header[n])) n++;
    if (n == 0 || header[n + strspn(header + n, " ")] || n >= room) return false;
    memcpy(ret, header, n);
    ret[n] = 0;
    return true;
}

bool rules_is_secret(const char *s) {
    size_t n = 0;
    while (is_base64url(s[n])) n++;
    return n == SECRETS_TEXT - 1 && !s[n];
}

bool rules_is_token(const char *s) {
    return strncmp(s, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) == 0 && rules_is_secret(s + strlen(TOKEN_PREFIX));
}

/* scheme://host[:port] of an URL, in small letters, without the port that the scheme implies and without a path. */
static bool origin_text(const char *url, char *ret, size_t room) {
    const char *rest;
    bool is_tls = strncasecmp(url, "https://", 8) == 0;
    if (!is_tls && strncasecmp(url, "http://", 7) != 0) return false;
    rest = url + (is_tls ? 8 : 7);
    size_t n = strcspn(rest, "/?#");
    const char *port = is_tls ? ":443" : ":80";
    if (n > strlen(port) && memcmp(rest + n - strlen(port), port, strlen(port)) == 0) n -= strlen(port);
    if (n == 0 || memchr(rest, '@', n)) return false;
    int w = snprintf(ret, room, "%s://%.*s", is_tls ? "https" : "http", (int)n, rest);
    if (w < 0 || (size_t)w >= room) return false;
    for (char *c = ret; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + 32);
    return true;
}

static bool same_origin_text(const char *a, const char *b) {
    char x[300], y[300];
    return origin_text(a, x, sizeof x) && origin_text(b, y, sizeof y) && strcmp(x, y) == 0;
}

bool rules_is_same_origin(const struct rules_origin *o) {
    char ours[300];
    if (o->fetch_site && strcmp(o->fetch_site, "same-origin") != 0) return false;
    if (!o->origin) return o->fetch_site != NULL;
    if (o->public_url && *o->public_url && same_origin_text(o->origin, o->public_url)) return true;
    if (!o->host) return false;
    int n = snprintf(ours, sizeof ours, "%s://%s", o->is_tls ? "https" : "http", o->host);
    return n > 0 && (size_t)n < sizeof ours && same_origin_text(o->origin, ours);
}

static bool is_port(const char *s) { return *s == ':' && s[1] && !s[1 + strspn(s + 1, "0123456789")]; }

bool rules_is_local_host(const char *host) {
    if (!host) return false;
    if (strncasecmp(host, "localhost", 9) == 0) return !host[9] || is_port(host + 9);
    if (strncmp(host, "[::1]", 5) == 0) return !host[5] || is_port(host + 5);
    if (strncmp(host, "127.", 4) != 0) return false;
    size_t n = strspn(host, "0123456789.");
    unsigned a, b, c, d;
    char end;
    char text[16];
    if (n >= sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", (int)n, host);
    if (sscanf(text, "%3u.%3u.%3u.%3u%c", &a, &b, &c, &d, &end) != 4 || a > 255 || b > 255 || c > 255 || d > 255)
        return false;
    return !host[n] || is_port(host + n);
}

bool rules_is_json(const char *content_type) {
    static const char json[] = "application/json";
    if (!content_type || strncasecmp(content_type, json, sizeof json - 1) != 0) return false;
    content_type += sizeof json - 1;
    content_type += strspn(content_type, " \t");
    return !*content_type || *content_type == ';';
}

static bool is_name_char(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '@';
}

int rules_check_name(const char *what, const char *name, struct error *e) {
    size_t n = strlen(name);
    if (n == 0) return fail(e, -EINVAL, "%s: a name is missing", what);
    if (n >= RULES_NAME) return fail(e, -EINVAL, "%s: a name has at most %d characters", what, RULES_NAME - 1);
    bool is_good = name[0] != '-' && name[0] != '.';
    for (size_t i = 0; i < n; i++) is_good = is_good && is_name_char(name[i]);
    if (is_good) return 0;
    return fail(e, -EINVAL, "%s: a name is made of letters, digits and . _ - @, and begins with none of . and -", what);
}

int rules_check_label(const char *what, const char *label, struct error *e) {
    size_t n = strlen(label);
    if (n == 0) return fail(e, -EINVAL, "%s: a name is missing", what);
    if (n > 100) return fail(e, -EINVAL, "%s: a name has at most 100 bytes", what);
    for (const char *at = label; *at;) {
        size_t len = json_utf8_len(at);
        if (len == 0 || (unsigned char)*at < 0x20 || *at == 0x7f)
            return fail(e, -EINVAL, "%s: a name holds no control characters", what);
        at += len;
    }
    return 0;
}

int rules_check_password(const char *password, struct error *e) {
    size_t n = strlen(password);
    if (n < RULES_PASSWORD_MIN || n > RULES_PASSWORD_MAX)
        return fail(e, -EINVAL, "password: it must have from %d to %d bytes", RULES_PASSWORD_MIN, RULES_PASSWORD_MAX);
    return 0;
}

void rules_unix_name(const char *unix_name, char ret[RULES_NAME]) {
    size_t n = 0;
    for (; unix_name[n] && n < RULES_NAME - 1; n++) ret[n] = is_name_char(unix_name[n]) ? unix_name[n] : '_';
    ret[n] = 0;
    if (ret[0] == '-' || ret[0] == '.') ret[0] = '_';
    if (n == 0) snprintf(ret, RULES_NAME, "_");
}

void rules_numbered_name(const char *name, int64_t uid, char ret[RULES_NAME]) {
    snprintf(ret, RULES_NAME, "%.40s-%lld", name, (long long)uid);
}

bool rules_is_name_of(const char *account, const char *name, int64_t uid) {
    char numbered[RULES_NAME];
    rules_numbered_name(name, uid, numbered);
    return strcmp(account, name) == 0 || strcmp(account, numbered) == 0;
}
