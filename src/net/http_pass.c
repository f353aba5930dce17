#include "net/http_pass.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/websocket.h"

/* The first line, with an end; *ret_rest is what follows it. */
static char *first_line(char *bytes, size_t len, char **ret_rest, struct error *e) {
    size_t end = 0;
    struct error unused;
    char *cr = memchr(bytes, '\r', len);
    if (!cr || http_head_find(bytes, len, &end, &unused) != (long)len) {
        fail(e, -EINVAL, "the header is not whole");
        return NULL;
    }
    *cr = 0;
    *ret_rest = cr + 2;
    return bytes;
}

static int request_line(char *line, struct http_pass *p, struct error *e) {
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version || strchr(version + 1, ' ')) return fail(e, -EINVAL, "the request line is not METHOD PATH HTTP/1.1");
    *target++ = 0;
    *version++ = 0;
    p->method = line;
    p->target = target;
    size_t n = strlen(line);
    if (!n || n > 20 || strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != n || strcmp(line, "CONNECT") == 0)
        return fail(e, -EINVAL, "a method that is not passed on");
    if (*target != '/') return fail(e, -EINVAL, "the target must be a path that begins with a slash");
    for (const char *s = target; *s; s++)
        if ((unsigned char)*s <= 0x20 || (unsigned char)*s == 0x7f)
            return fail(e, -EINVAL, "a character in the address that must be encoded");
    return http_version_parse(version, &p->head, e);
}

int http_pass_request(char *bytes, size_t len, struct http_pass *ret, struct error *e) {
    char *rest, *line = first_line(bytes, len, &rest, e);
    *ret = (struct http_pass){0};
    if (!line) return e->code;
    int r = request_line(line, ret, e);
    if (r >= 0) r = http_fields_parse(rest, bytes + len - 2, &ret->head, e);
    if (r >= 0) r = http_understand(&ret->head, e);
    if (r < 0) return r;
    struct error unused;
    ret->length = ret->head.length;
    ret->head.method = strcmp(ret->method, "GET") == 0 ? HTTP_GET : HTTP_POST; /* what matters here of it */
    ret->is_websocket = websocket_asked(&ret->head, &unused) >= 0 && ret->length == 0;
    return 0;
}

static int status_line(char *line, struct http_pass *p, struct error *e) {
    char *status = strchr(line, ' '), *phrase;
    if (!status) return fail(e, -EPROTO, "the answer is not HTTP");
    *status++ = 0;
    p->status = (int)strtol(status, &phrase, 10);
    if (phrase != status + 3 || p->status < 100 || p->status > 599 || (*phrase && *phrase != ' '))
        return fail(e, -EPROTO, "the answer has no status");
    p->phrase = *phrase ? phrase + 1 : "";
    return http_version_parse(line, &p->head, e);
}

int http_pass_response(char *bytes, size_t len, const char *to, struct http_pass *ret, struct error *e) {
    char *rest, *line = first_line(bytes, len, &rest, e);
    *ret = (struct http_pass){0};
    if (!line) return e->code;
    int r = status_line(line, ret, e);
    if (r >= 0) r = http_fields_parse(rest, bytes + len - 2, &ret->head, e);
    if (r >= 0) r = http_length_parse(&ret->head, e);
    if (r < 0) return r;
    const char *connection = http_field(&ret->head, "connection");
    bool is_long = http_field(&ret->head, "content-length") || ret->head.is_chunked;
    ret->head.keeps_alive =
        ret->head.minor > 0 ? !http_list_has(connection, "close") : http_list_has(connection, "keep-alive");
    ret->length = is_long ? ret->head.length : HTTP_UNTIL_CLOSE;
    if (ret->status < 200 || ret->status == 204 || ret->status == 304 || strcmp(to, "HEAD") == 0) ret->length = 0;
    return 0;
}

bool http_pass_is_hop(const struct http_head *h, const char *name) {
    static const char *const names[] = {"connection",
                                        "keep-alive",
                                        "te",
                                        "trailer",
                                        "upgrade",
                                        "transfer-encoding",
                                        "expect",
                                        "proxy-connection",
                                        "proxy-authorization",
                                        "proxy-authenticate",
                                        "content-length"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0) return true;
    return http_list_has(http_field(h, "connection"), name);
}
