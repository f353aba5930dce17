#include "net/http_client.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define MOST_PRESET (16u << 20)
#define CONNECT_MS 5000
#define TOTAL_MS 30000

struct call {
    const struct http_ask *ask;
    struct http_answer *answer;
    CURL *curl;
    size_t most;
    int result;      /* of the piece callback, or -EMSGSIZE */
    bool is_refused; /* an address that must not be asked */
};

void http_answer_done(struct http_answer *a) {
    buf_done(&a->body);
    *a = (struct http_answer){0};
}

int http_client_start(struct error *e) {
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : fail(e, -ENOMEM, "libcurl does not start");
}

static void easy_done(CURL **c) { curl_easy_cleanup(*c); }
static void list_done(struct curl_slist **l) { curl_slist_free_all(*l); }

/* "host:port" of a URL for messages: paths, queries and user names of webhooks are secrets. */
static void host_of(const char *url, char *ret, size_t room) {
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t n = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', n);
    if (at) {
        n -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    snprintf(ret, room, "%.*s", (int)n, host);
}

static const struct {
    CURLcode code;
    int errnum;
    const char *words;
} reasons[] = {
    {CURLE_COULDNT_CONNECT,          ECONNREFUSED, "no connection"                                         },
    {CURLE_COULDNT_RESOLVE_HOST,     EHOSTUNREACH, "the name is not known"                                 },
    {CURLE_OPERATION_TIMEDOUT,       ETIMEDOUT,    "no answer in time"                                     },
    {CURLE_URL_MALFORMAT,            EINVAL,       "not a URL"                                             },
    {CURLE_UNSUPPORTED_PROTOCOL,     EINVAL,       "not a URL of http, https, smtp or smtps"               },
    {CURLE_PEER_FAILED_VERIFICATION, EPERM,        "its certificate is not trusted"                        },
    {CURLE_SSL_CONNECT_ERROR,        EPROTO,       "TLS failed"                                            },
    {CURLE_GOT_NOTHING,              ECONNRESET,   "the connection was closed without an answer"           },
    {CURLE_RECV_ERROR,               ECONNRESET,   "the connection broke"                                  },
    {CURLE_SEND_ERROR,               ECONNRESET,   "the connection broke"                                  },
    {CURLE_USE_SSL_FAILED,           EPROTO,       "it offers no TLS"                                      },
    {CURLE_SSL_CACERT_BADFILE,       EINVAL,       "the file with its certificate authority cannot be read"},
    {CURLE_LOGIN_DENIED,             EACCES,       "user or password was refused"                          },
    {CURLE_OUT_OF_MEMORY,            ENOMEM,       "out of memory"                                         },
};

static int translate(CURLcode code, const char *url, const char *unix_path, struct error *e) {
    char host[128];
    if (unix_path)
        snprintf(host, sizeof host, "%.120s", unix_path);
    else
        host_of(url, host, sizeof host);
    /* libcurl's word for an answer that is none, too. */
    if (code == CURLE_UNSUPPORTED_PROTOCOL && strncmp(url, "http", 4) == 0)
        return fail(e, -EPROTO, "%s: does not speak HTTP", host);
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].code == code) return fail(e, -reasons[i].errnum, "%s: %s", host, reasons[i].words);
    return fail(e, -EIO, "%s: %s", host, curl_easy_strerror(code));
}

static int status_of(const struct call *c) {
    long status = 0;
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static size_t take(char *bytes, size_t size, size_t count, void *ctx) {
    struct call *c = ctx;
    size_t n = size * count;
    int status = status_of(c);
    if (c->ask->piece && status >= 200 && status < 300) {
        c->result = c->ask->piece(c->ask->ctx, bytes, n);
        return c->result < 0 ? 0 : n;
    }
    if (c->answer->body.len + n > c->most) {
        c->result = -EMSGSIZE;
        return 0;
    }
    buf_add(&c->answer->body, bytes, n);
    return n;
}

static void field_copy(const char *value, size_t n, char *ret, size_t room) {
    while (n && (*value == ' ' || *value == '\t')) value++, n--;
    while (n && (value[n - 1] == '\r' || value[n - 1] == '\n' || value[n - 1] == ' ')) n--;
    snprintf(ret, room, "%.*s", (int)n, value);
}

static size_t take_header(char *bytes, size_t size, size_t count, void *ctx) {
    struct call *c = ctx;
    size_t n = size * count;
    const char *colon = memchr(bytes, ':', n);
    if (!colon) return n;
    size_t name = (size_t)(colon - bytes), rest = n - name - 1;
    if (name == 12 && strncasecmp(bytes, "Content-Type", name) == 0)
        field_copy(colon + 1, rest, c->answer->type, sizeof c->answer->type);
    if (name == 8 && strncasecmp(bytes, "Location", name) == 0)
        field_copy(colon + 1, rest, c->answer->location, sizeof c->answer->location);
    for (size_t i = 0; i < c->ask->wanted_count; i++) {
        struct http_wanted *w = &c->ask->wanted[i];
        if (name == strlen(w->name) && strncasecmp(bytes, w->name, name) == 0)
            field_copy(colon + 1, rest, w->value, sizeof w->value);
    }
    return n;
}

static int progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t x, curl_off_t y) {
    struct call *c = ctx;
    return c->ask->is_over && c->ask->is_over(c->ask->ctx);
}

static void set_times(CURL *curl, int connect_ms, int total_ms) {
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_ms ? connect_ms : CONNECT_MS));
    if (total_ms >= 0)
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(total_ms ? total_ms : TOTAL_MS));
    else
        curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
}

static void set_request(CURL *curl, const struct http_ask *ask, struct curl_slist *headers) {
    curl_easy_setopt(curl, CURLOPT_URL, ask->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (ask->unix_path) curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, ask->unix_path);
    if (ask->ca_file) curl_easy_setopt(curl, CURLOPT_CAINFO, ask->ca_file);
    if (ask->unix_path) curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (ask->body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->body_len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, ask->body);
    }
    if (ask->method && strcmp(ask->method, "GET") != 0) curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, ask->method);
    if (ask->method && strcmp(ask->method, "HEAD") == 0) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    set_times(curl, ask->connect_ms, ask->total_ms);
}

static bool is_link_local(const struct sockaddr *to) {
    struct in6_addr six;
    uint32_t four = 0;
    if (to->sa_family == AF_INET) {
        four = ntohl(((const struct sockaddr_in *)(const void *)to)->sin_addr.s_addr);
    } else if (to->sa_family == AF_INET6) {
        six = ((const struct sockaddr_in6 *)(const void *)to)->sin6_addr;
        if (IN6_IS_ADDR_LINKLOCAL(&six)) return true;
        if (!IN6_IS_ADDR_V4MAPPED(&six)) return false;
        memcpy(&four, &six.s6_addr[12], sizeof four);
        four = ntohl(four);
    }
    return four >> 16 == 0xa9fe;
}

/* After the name was looked up: what a name leads to is anybody's to say. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to) {
    struct call *c = ctx;
    bool is_bad = is_link_local(&to->addr);
    c->is_refused |= is_bad;
    return is_bad ? CURL_SOCKET_BAD : socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static void set_callbacks(CURL *curl, struct call *c) {
    if (c->ask->no_link_local) {
        curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
        curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, c);
    }
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, c);
    if (!c->ask->is_over) return;
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, c);
}

int http_ask(const struct http_ask *ask, struct http_answer *ret, struct error *e) {
    AUTO(easy_done) CURL *curl = curl_easy_init();
    AUTO(list_done) struct curl_slist *headers = NULL;
    AUTO(http_answer_done) struct http_answer answer = {0};
    struct call c = {.ask = ask, .answer = &answer, .curl = curl, .most = ask->most ? ask->most : MOST_PRESET};
    if (!curl) return fail(e, -ENOMEM, "libcurl: out of memory");
    for (int i = 0; i < HTTP_CLIENT_HEADERS_MAX && ask->headers[i]; i++)
        headers = curl_slist_append(headers, ask->headers[i]);
    headers = curl_slist_append(headers, "Expect:"); /* no round trip before a body */
    set_request(curl, ask, headers);
    set_callbacks(curl, &c);
    CURLcode code = curl_easy_perform(curl);
    if (c.result == -EMSGSIZE) return fail(e, -EMSGSIZE, "the answer is larger than %zu bytes", c.most);
    if (c.result < 0) return fail(e, c.result, "the stream was ended");
    if (code != CURLE_OK && c.is_refused)
        return fail(e, -EPERM, "that is a link-local address, to which nothing is sent for users");
    if (code == CURLE_ABORTED_BY_CALLBACK) return fail(e, -ECANCELED, "cancelled");
    if (code != CURLE_OK) return translate(code, ask->url, ask->unix_path, e);
    answer.status = status_of(&c);
    *ret = TAKE_STRUCT(answer);
    return 0;
}

struct upload {
    const char *text;
    size_t left;
};

static size_t give(char *into, size_t size, size_t count, void *ctx) {
    struct upload *u = ctx;
    size_t n = size * count < u->left ? size * count : u->left;
    memcpy(into, u->text, n);
    u->text += n;
    u->left -= n;
    return n;
}

static struct curl_slist *addresses(const char *to) {
    struct curl_slist *list = NULL;
    while (*to) {
        char one[256];
        size_t n = strcspn(to, ", ");
        if (n > 0 && n < sizeof one) {
            snprintf(one, sizeof one, "%.*s", (int)n, to);
            list = curl_slist_append(list, one);
        }
        to += n + (to[n] != 0);
    }
    return list;
}

int mail_send(const struct mail *m, struct error *e) {
    AUTO(easy_done) CURL *curl = curl_easy_init();
    AUTO(list_done) struct curl_slist *to = addresses(m->to);
    struct upload upload = {m->message, m->len};
    if (!curl) return fail(e, -ENOMEM, "libcurl: out of memory");
    curl_easy_setopt(curl, CURLOPT_URL, m->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    bool has_user = m->user && *m->user, has_ca = m->ca_file && *m->ca_file;
    bool is_loose = !has_user && !has_ca && strncasecmp(m->url, "smtp://", 7) == 0;
    curl_easy_setopt(curl, CURLOPT_USE_SSL, (long)(has_user || has_ca ? CURLUSESSL_ALL : CURLUSESSL_TRY));
    if (has_ca) curl_easy_setopt(curl, CURLOPT_CAINFO, m->ca_file);
    if (is_loose) { /* plain text would do as well: a relay's own certificate is better than that */
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    curl_easy_setopt(curl, CURLOPT_MAIL_FROM, m->from);
    curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, to);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, give);
    curl_easy_setopt(curl, CURLOPT_READDATA, &upload);
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    if (has_user) {
        curl_easy_setopt(curl, CURLOPT_USERNAME, m->user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, m->password ? m->password : "");
    }
    set_times(curl, 0, m->total_ms);
    CURLcode code = curl_easy_perform(curl);
    return code == CURLE_OK ? 0 : translate(code, m->url, NULL, e);
}
