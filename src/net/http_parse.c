#include "net/http_parse.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

static const char *const method_names[HTTP_METHODS] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"};

const char *http_method_name(enum http_method m) { return (unsigned)m < HTTP_METHODS ? method_names[m] : "?"; }

/* ---- characters ---- */

/* token of RFC 9110: what a method or a field's name is made of */
static bool is_token(unsigned char c) { return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c)); }

/* What may stand in a field's value: visible ASCII, blank, tab. Bytes above 127 have no meaning that all share. */
static bool is_value(unsigned char c) { return c == '\t' || (c >= 0x20 && c < 0x7f); }

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static int hex_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* ---- the end of a head ---- */

long http_head_find(const char *bytes, size_t len, size_t *at, struct error *e) {
    size_t i = *at;
    for (; i < len && i < HTTP_HEAD_MAX; i++) {
        char c = bytes[i];
        if (c == '\r') {
            if (i + 1 == len) break; /* its line feed has not come yet */
            if (bytes[i + 1] != '\n') return fail(e, -EINVAL, "a carriage return without a line feed in the header");
        } else if (c == '\n') {
            if (i == 0 || bytes[i - 1] != '\r')
                return fail(e, -EINVAL, "a line feed without a carriage return in the header");
            if (i >= 3 && bytes[i - 2] == '\n') return *at = i + 1, (long)(i + 1);
        } else if ((unsigned char)c < 0x20 && c != '\t') {
            return fail(e, -EINVAL, "a control character in the header");
        }
    }
    *at = i;
    if (i >= HTTP_HEAD_MAX) return fail(e, -E2BIG, "the header is larger than %d bytes", HTTP_HEAD_MAX);
    return 0;
}

/* ---- percent encoding ---- */

static int check_text(const struct buf *b, size_t from, struct error *e) {
    for (const char *s = b->s + from; s < b->s + b->len;) {
        size_t n = json_utf8_len(s);
        if (!n || s + n > b->s + b->len) return fail(e, -EINVAL, "the address is not valid UTF-8");
        if ((unsigned char)*s < 0x20 || *s == 0x7f) return fail(e, -EINVAL, "a control character in the address");
        s += n;
    }
    return 0;
}

int http_decode(const char *text, size_t len, bool is_query, struct buf *ret, struct error *e) {
    size_t from = ret->len;
    buf_reserve(ret, len + 1);
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < len ? hex_of(text[i + 1]) : -1, low = i + 2 < len ? hex_of(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return fail(e, -EINVAL, "a percent sign in the address without two hexadecimal digits");
            c = (char)(high << 4 | low);
            i += 2;
        } else if (is_query && c == '+') {
            c = ' ';
        }
        buf_putc(ret, c);
    }
    if (!ret->s) buf_puts(ret, "");
    return check_text(ret, from, e);
}

int http_query_next(const char **at, struct buf *name, struct buf *value, struct error *e) {
    buf_clear(name);
    buf_clear(value);
    while (**at == '&') (*at)++;
    if (!**at) return 0;
    size_t n = strcspn(*at, "&"), split = strcspn(*at, "=&");
    const char *text = *at;
    *at += n;
    int r = http_decode(text, split, true, name, e);
    if (r >= 0) r = http_decode(text + split + (split < n), n - split - (split < n), true, value, e);
    return r < 0 ? r : 1;
}

/* ---- the request line ---- */

/* `.` and `..` mean nothing to us and much to a proxy; an encoded slash would make two paths of one. */
static int check_segments(const char *path, struct error *e) {
    for (const char *s = path; *s; s += strcspn(s, "/")) {
        s++;
        size_t n = strcspn(s, "/");
        if ((n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return fail(e, -EINVAL, "a path with a dot as a segment");
    }
    return 0;
}

static int parse_target(char *target, struct http_head *h, struct error *e) {
    if (*target != '/') return fail(e, -EINVAL, "the target must be a path that begins with a slash");
    for (const char *s = target; *s; s++)
        if ((unsigned char)*s <= 0x20 || (unsigned char)*s >= 0x7f || strchr("#\"<>\\^`{|}", *s))
            return fail(e, -EINVAL, "a character in the address that must be encoded");
    char *query = strchr(target, '?');
    if (query) *query++ = 0;
    h->query = query ? query : "";
    if (strcasestr(target, "%2f")) return fail(e, -EINVAL, "an encoded slash in the path");
    AUTO(buf_done) struct buf path = {0};
    int r = http_decode(target, strlen(target), false, &path, e);
    if (r < 0) return r;
    memcpy(target, path.s, path.len + 1); /* decoding never makes it longer */
    h->path = target;
    return check_segments(target, e);
}

int http_version_parse(const char *text, struct http_head *h, struct error *e) {
    if (strlen(text) != 8 || strncmp(text, "HTTP/", 5) != 0 || !isdigit((unsigned char)text[5]) || text[6] != '.' ||
        !isdigit((unsigned char)text[7]))
        return fail(e, -EINVAL, "the request line does not end with a version of HTTP");
    if (text[5] != '1') return fail(e, -EPROTONOSUPPORT, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    h->minor = text[7] == '0' ? 0 : 1;
    return 0;
}

static int parse_request_line(char *line, struct http_head *h, struct error *e) {
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version || strchr(version + 1, ' ')) return fail(e, -EINVAL, "the request line is not METHOD PATH HTTP/1.1");
    *target++ = 0;
    *version++ = 0;
    if (!*line) return fail(e, -EINVAL, "the request line has no method");
    for (const char *s = line; *s; s++)
        if (!is_token((unsigned char)*s))
            return fail(e, -EINVAL, "a character in the method that does not belong there");
    int r = http_version_parse(version, h, e);
    if (r < 0) return r;
    r = parse_target(target, h, e);
    if (r < 0) return r;
    for (int m = 0; m < HTTP_METHODS; m++)
        if (strcmp(line, method_names[m]) == 0) return h->method = (enum http_method)m, 0;
    return fail(e, -ENOSYS, "%.20s is no method of this server", line);
}

/* ---- fields ---- */

static int parse_field(char *line, struct http_head *h, struct error *e) {
    if (is_blank(*line)) return fail(e, -EINVAL, "a folded header line");
    char *colon = strchr(line, ':');
    if (!colon || colon == line) return fail(e, -EINVAL, "a header line without a name");
    for (char *s = line; s < colon; s++) {
        if (!is_token((unsigned char)*s))
            return fail(e, -EINVAL, "a character in the name of a header that does not belong there");
        *s = (char)tolower((unsigned char)*s);
    }
    *colon = 0;
    char *value = colon + 1, *end = value + strlen(value);
    while (is_blank(*value)) value++;
    while (end > value && is_blank(end[-1])) *--end = 0;
    for (const char *s = value; *s; s++)
        if (!is_value((unsigned char)*s))
            return fail(e, -EINVAL, "%.40s: a character that does not belong in a header", line);
    if (h->count == HTTP_FIELDS_MAX) return fail(e, -E2BIG, "more than %d header lines", HTTP_FIELDS_MAX);
    h->field[h->count++] = (struct http_field){line, value};
    return 0;
}

const char *http_field(const struct http_head *h, const char *name) {
    for (unsigned i = 0; i < h->count; i++)
        if (strcmp(h->field[i].name, name) == 0) return h->field[i].value;
    return NULL;
}

unsigned http_field_count(const struct http_head *h, const char *name) {
    unsigned n = 0;
    for (unsigned i = 0; i < h->count; i++) n += strcmp(h->field[i].name, name) == 0;
    return n;
}

/* "gzip;q=0" is a no. */
static bool is_refused(const char *item, size_t n) {
    const char *q = memmem(item, n, "q=", 2);
    if (!q) return false;
    q += 2;
    size_t left = n - (size_t)(q - item);
    return left > 0 && strspn(q, "0.") >= strcspn(q, " \t,;");
}

bool http_list_has(const char *list, const char *token) {
    size_t want = strlen(token);
    while (list && *list) {
        list += strspn(list, " \t,");
        size_t n = strcspn(list, ","), word = strcspn(list, " \t,;");
        if (word == want && strncasecmp(list, token, want) == 0) return !is_refused(list, n);
        list += n;
    }
    return false;
}

/* ---- what the fields mean for the framing ---- */

int http_length_parse(struct http_head *h, struct error *e) {
    const char *text = http_field(h, "content-length"), *coding = http_field(h, "transfer-encoding");
    if (text && coding) return fail(e, -EINVAL, "both Content-Length and Transfer-Encoding");
    if (http_field_count(h, "content-length") > 1) return fail(e, -EINVAL, "more than one Content-Length");
    if (http_field_count(h, "transfer-encoding") > 1) return fail(e, -EINVAL, "more than one Transfer-Encoding");
    if (coding) {
        if (h->minor == 0) return fail(e, -EINVAL, "Transfer-Encoding in a request of HTTP/1.0");
        if (strcasecmp(coding, "chunked") != 0)
            return fail(e, -EOPNOTSUPP, "the only transfer coding known here is chunked");
        h->is_chunked = true;
        h->length = -1;
        return 0;
    }
    if (!text) return 0;
    if (!*text) return fail(e, -EINVAL, "Content-Length is not a number");
    for (const char *s = text; *s; s++) {
        if (!isdigit((unsigned char)*s)) return fail(e, -EINVAL, "Content-Length is not a number");
        h->length = h->length * 10 + (*s - '0');
        if (h->length > HTTP_LENGTH_MAX) return fail(e, -EFBIG, "Content-Length is too large");
    }
    return 0;
}

static int parse_host(const struct http_head *h, struct error *e) {
    unsigned n = http_field_count(h, "host");
    if (n > 1) return fail(e, -EINVAL, "more than one Host");
    if (n == 0 && h->minor > 0) return fail(e, -EINVAL, "no Host");
    const char *host = http_field(h, "host");
    for (const char *s = host; s && *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr(".-_:[]%~", *s))
            return fail(e, -EINVAL, "a character in Host that does not belong there");
    return 0;
}

int http_understand(struct http_head *h, struct error *e) {
    int r = http_length_parse(h, e);
    if (r >= 0) r = parse_host(h, e);
    if (r < 0) return r;
    const char *connection = http_field(h, "connection"), *expect = http_field(h, "expect");
    h->keeps_alive = h->minor > 0 ? !http_list_has(connection, "close") : http_list_has(connection, "keep-alive");
    if (expect && strcasecmp(expect, "100-continue") != 0)
        return fail(e, -EDOM, "an expectation other than 100-continue");
    h->expects_continue = expect && h->minor > 0 && h->length != 0;
    return 0;
}

int http_fields_parse(char *line, char *stop, struct http_head *h, struct error *e) {
    while (line < stop) {
        char *next = memchr(line, '\r', (size_t)(stop - line));
        if (!next) return fail(e, -EINVAL, "the header is not whole");
        *next = 0;
        int r = parse_field(line, h, e);
        if (r < 0) return r;
        line = next + 2;
    }
    return 0;
}

int http_head_parse(char *bytes, size_t len, struct http_head *ret, struct error *e) {
    *ret = (struct http_head){0};
    size_t end = 0;
    struct error unused;
    if (http_head_find(bytes, len, &end, &unused) != (long)len) return fail(e, -EINVAL, "the header is not whole");
    char *line = bytes, *stop = bytes + len - 2; /* the empty line */
    char *first = memchr(line, '\r', (size_t)(stop - line));
    if (!first) return fail(e, -EINVAL, "the header is not whole");
    *first = 0;
    int r = parse_request_line(line, ret, e);
    if (r >= 0) r = http_fields_parse(first + 2, stop, ret, e);
    return r < 0 ? r : http_understand(ret, e);
}

/* ---- chunks ---- */

enum { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, LAST_CR, LAST_LF };

static int take_size(struct http_chunks *c, char byte, struct error *e) {
    int digit = hex_of(byte);
    if (digit >= 0) {
        if (++c->digits > 8) return fail(e, -EFBIG, "a chunk is too large");
        c->left = c->left << 4 | (unsigned)digit;
        return 0;
    }
    if (byte != '\r' || !c->digits) return fail(e, -EINVAL, "the size of a chunk is not a hexadecimal number");
    c->state = SIZE_LF;
    return 0;
}

/* One byte of the framing: what must stand here, and what comes after it. */
static int take_frame(struct http_chunks *c, char byte, struct error *e) {
    static const struct {
        char want;
        int next;
    } rows[] = {
        [SIZE_LF] = {'\n', DATA           },
          [DATA_CR] = {'\r', DATA_LF        },
          [DATA_LF] = {'\n', SIZE           },
        [LAST_CR] = {'\r', LAST_LF        },
          [LAST_LF] = {'\n', HTTP_CHUNKS_END},
    };
    if (c->state == SIZE) return take_size(c, byte, e);
    if (byte != rows[c->state].want)
        return fail(e, -EINVAL,
                    c->state == LAST_CR ? "a trailer after the last chunk" : "a chunk does not end with a line break");
    c->digits = 0;
    c->state = c->state == SIZE_LF && c->left == 0 ? LAST_CR : rows[c->state].next;
    return 0;
}

long http_chunks_take(struct http_chunks *c, const char *bytes, size_t len, size_t max, struct buf *body,
                      struct error *e) {
    size_t i = 0;
    while (i < len && c->state != HTTP_CHUNKS_END) {
        if (c->state == DATA) {
            size_t n = len - i < c->left ? len - i : (size_t)c->left;
            buf_add(body, bytes + i, n);
            i += n;
            c->left -= n;
            if (c->left == 0) c->state = DATA_CR;
            continue;
        }
        int r = take_frame(c, bytes[i++], e);
        if (r < 0) return r;
        if (c->state == DATA && (c->left > max || body->len > max - c->left))
            return fail(e, -EFBIG, "the body is larger than %zu bytes", max);
    }
    return (long)i;
}

/* ---- replies ---- */

static const struct {
    int code, status;
} statuses[] = {
    {E2BIG,           431},
    {EFBIG,           413},
    {ENOSYS,          405},
    {EOPNOTSUPP,      501},
    {EPROTONOSUPPORT, 505},
    {EDOM,            417},
    {ENOENT,          404},
    {EACCES,          403},
    {EPERM,           403},
    {EEXIST,          409},
    {EBUSY,           409},
    {EAGAIN,          429},
    {ETIMEDOUT,       408},
    {EUNATCH,         503},
    {ENOTCONN,        503},
    {EIO,             500},
    {ENOMEM,          500},
};

int http_status_of(int code) {
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        if (code == -statuses[i].code) return statuses[i].status;
    return 400;
}

const char *http_phrase(int status) {
    static const struct {
        int status;
        const char *phrase;
    } rows[] = {
        {200, "OK"                             },
        {201, "Created"                        },
        {202, "Accepted"                       },
        {204, "No Content"                     },
        {301, "Moved Permanently"              },
        {302, "Found"                          },
        {101, "Switching Protocols"            },
        {303, "See Other"                      },
        {304, "Not Modified"                   },
        {308, "Permanent Redirect"             },
        {400, "Bad Request"                    },
        {401, "Unauthorized"                   },
        {403, "Forbidden"                      },
        {404, "Not Found"                      },
        {405, "Method Not Allowed"             },
        {406, "Not Acceptable"                 },
        {408, "Request Timeout"                },
        {409, "Conflict"                       },
        {413, "Content Too Large"              },
        {415, "Unsupported Media Type"         },
        {417, "Expectation Failed"             },
        {429, "Too Many Requests"              },
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"          },
        {501, "Not Implemented"                },
        {502, "Bad Gateway"                    },
        {503, "Service Unavailable"            },
        {505, "HTTP Version Not Supported"     },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status) return rows[i].phrase;
    return "Unknown";
}
