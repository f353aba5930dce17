/* What is changed in heads on their way to a UI and back: rows of a head and what must be seen of it. */
#include "server/proxy_head.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

#define ORIGIN "http://box:7100"
#define START "GET /a HTTP/1.1\r\nHost: box:7100\r\n"

static const struct proxy_about about = {
    .port = 8888, .prefix = "gpumgr_abcdefgh_", .cookie = "gpumgr_ui_7100", .origin = ORIGIN, .address = "192.0.2.7"};

static void parse(const char *text, bool is_request, char *bytes, struct http_pass *p) {
    struct error e = {0};
    strcpy(bytes, text);
    int r = is_request ? http_pass_request(bytes, strlen(bytes), p, &e)
                       : http_pass_response(bytes, strlen(bytes), "GET", p, &e);
    if (r < 0) fail_msg("%s: %s", text, e.text);
}

static void requests(void **state) {
    static const struct {
        const char *head, *has, *has_not;
    } rows[] = {
        {START,                                                                                "GET /a HTTP/1.1\r\nHost: localhost:8888\r\n", "box"         },
        {START "Cookie: a=1; gpumgr_ui_7100=x; b=2\r\n",                                       "Cookie: a=1; b=2\r\n",                        "gpumgr_ui"   },
        {START "Cookie: __Host-gpumgr_session=x\r\n",                                          "Host: localhost:8888\r\n",                    "Cookie"      },
        {START "Cookie: gpumgr_abcdefgh_a=1; gpumgr_ijklmnop_b=2\r\n",                         "Cookie: a=1\r\n",                             "b=2"         },
        {START "Cookie: a=1\r\nCookie: GPUMGR_SESSION=2\r\n",                                  "Cookie: a=1\r\n",                             "SESSION"     },
        {START "Connection: close, X-Hop\r\nX-Hop: 1\r\nX-Stay: 2\r\n",                        "x-stay: 2\r\n",                               "x-hop"       },
        {START "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x\r\n", "Host:",                                       "h2c"         },
        {START "Origin: " ORIGIN "\r\n",                                                       "Origin: http://localhost:8888\r\n",           NULL          },
        {START "Origin: " ORIGIN "0\r\n",                                                      "Host:",                                       "Origin"      },
        {START "Referer: " ORIGIN "/lab?x\r\n",                                                "Referer: http://localhost:8888/lab?x\r\n",    NULL          },
        {START "Referer: http://elsewhere/\r\n",                                               "Host:",                                       "elsewhere"   },
        {START "Authorization: Bearer gpm_secret\r\n",                                         "Host:",                                       "gpm_"        },
        {START "Authorization: token abc\r\n",                                                 "authorization: token abc\r\n",                NULL          },
        {START "X-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nX-CSRF-Token: t\r\n",
         "X-Forwarded-For: 192.0.2.7\r\n",                                                                                                    "1.2.3.4"     },
        {START "Expect: 100-continue\r\nContent-Length: 5\r\nTE: trailers\r\n",                "Host:",                                       "100-continue"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char bytes[1024], text[1024];
        struct http_pass p;
        AUTO(buf_done) struct buf head = {0};
        snprintf(text, sizeof text, "%s\r\n", rows[i].head);
        parse(text, true, bytes, &p);
        proxy_request(&p, &about, &head);
        if (!strstr(head.s, rows[i].has) ||
            (rows[i].has_not && strcasestr(head.s + 20, rows[i].has_not) && strcmp(rows[i].has_not, "box") != 0))
            fail_msg("%s\nbecame\n%s", rows[i].head, head.s);
    }
}

static void responses(void **state) {
    static const struct {
        const char *fields, *has, *has_not;
    } rows[] = {
        {"Set-Cookie: a=1; Path=/\r\n",                                                              "Set-Cookie: a=1; Path=/\r\n",                           NULL        },
        {"Set-Cookie: a=1; path=/; httponly\r\n",                                                    "Set-Cookie: gpumgr_abcdefgh_a=1; path=/; httponly\r\n", NULL        },
        {"Set-Cookie: a=1; Domain=.example.org; Secure\r\n",                                         "Set-Cookie: a=1; Secure\r\n",                           "Domain"    },
        {"Set-Cookie: ; gpumgr_ui_7101=1\r\n",                                                       "HTTP/1.1 200",                                          "Set-Cookie"},
        {"Set-Cookie: =gpumgr_ui_7101=1; Path=/\r\n",                                                "HTTP/1.1 200",                                          "Set-Cookie"},
        {"Set-Cookie: ;; = gpumgr_ui_7101=1\r\n",                                                    "HTTP/1.1 200",                                          "Set-Cookie"},
        {"Set-Cookie: ;a=1;HttpOnly\r\n",                                                            "Set-Cookie: gpumgr_abcdefgh_a=1; HttpOnly\r\n",         NULL        },
        {"Set-Cookie: gpumgr_ui_7101=1\r\n",                                                         "HTTP/1.1 200",                                          "Set-Cookie"},
        {"Set-Cookie: __Secure-GPUMGR_session=1; HttpOnly\r\n",                                      "HTTP/1.1 200",                                          "Set-Cookie"},
        {"Location: http://localhost:8888/lab?x\r\n",                                                "Location: /lab?x\r\n",                                  NULL        },
        {"Location: http://127.0.0.1:8888\r\n",                                                      "Location: /\r\n",                                       NULL        },
        {"Location: http://localhost:88881/\r\n",                                                    "Location: http://localhost:88881/\r\n",                 NULL        },
        {"Location: https://elsewhere/\r\n",                                                         "Location: https://elsewhere/\r\n",                      NULL        },
        {"Location: /lab\r\n",                                                                       "Location: /lab\r\n",                                    NULL        },
        {"Clear-Site-Data: \"*\"\r\nStrict-Transport-Security: max-age=1\r\nAlt-Svc: h3=\":1\"\r\n", "HTTP/1.1 200",
         "max-age"                                                                                                                                                        },
        {"Cache-Control: public, max-age=99\r\nETag: \"x\"\r\n",                                     "Cache-Control: no-store\r\n",                           "public"    },
        {"Content-Security-Policy: default-src 'self'\r\n",                                          "content-security-policy: default-src 'self'\r\n",       NULL        },
        {"X: y\r\n",                                                                                 "Content-Security-Policy: frame-ancestors 'self'\r\n",   NULL        },
        {"Cross-Origin-Resource-Policy: cross-origin\r\n",                                           "Cross-Origin-Resource-Policy: same-origin\r\n",
         "cross-origin\r\n"                                                                                                                                               },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char bytes[1024], text[1024];
        struct http_pass p;
        AUTO(buf_done) struct buf head = {0};
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n%s\r\n", rows[i].fields);
        parse(text, false, bytes, &p);
        proxy_response(&p, &about, &head);
        if (!strstr(head.s, rows[i].has) || (rows[i].has_not && strstr(head.s, rows[i].has_not)))
            fail_msg("%s\nbecame\n%s", rows[i].fields, head.s);
    }
}

static void who_may(void **state) {
#define WS                                                                                                             \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "                    \
    "dGhlIHNhbXBsZSBub25jZQ==\r\n"
    static const struct {
        const char *method, *fields;
        bool may;
    } rows[] = {
        {"GET",  "",                                                                                      true },
        {"POST", "",                                                                                      true }, /* no browser */
        {"POST", "Origin: " ORIGIN "\r\n",                                                                true },
        {"POST", "Origin: http://box:7101\r\n",                                                           false},
        {"POST", "Origin: http://box:7000\r\n",                                                           false},
        {"POST", "Origin: https://box:7100\r\n",                                                          false},
        {"POST", "Origin: null\r\n",                                                                      false},
        {"POST", "Origin: " ORIGIN "\r\nOrigin: " ORIGIN "\r\n",                                          false},
        {"GET",  "Sec-Fetch-Site: same-origin\r\n",                                                       true },
        {"GET",  "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n",                                  true },
        {"GET",  "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n", true },
        {"POST", "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n", false},
        {"GET",  "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n",   false},
        {"GET",  "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n",        false},
        {"GET",  "Sec-Fetch-Site: cross-site\r\n",                                                        false},
        {"GET",  WS "Origin: " ORIGIN "\r\n",                                                             true },
        {"GET",  WS "Origin: http://box:7101\r\n",                                                        false},
        {"GET",  WS,                                                                                      false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char bytes[1024], text[1024];
        struct http_pass p;
        snprintf(text, sizeof text, "%s / HTTP/1.1\r\nHost: box:7100\r\n%s\r\n", rows[i].method, rows[i].fields);
        parse(text, true, bytes, &p);
        if (proxy_may_pass(&p, ORIGIN) != rows[i].may) fail_msg("%s %s", rows[i].method, rows[i].fields);
    }
}

static void framing(void **state) {
    static const struct {
        const char *head, *to;
        int64_t length; /* -99: refused */
        bool keeps;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",                               "GET",  5,                true },
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",                               "HEAD", 0,                true },
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",                      "GET",  -1,               true },
        {"HTTP/1.1 200\r\n\r\n",                                                       "GET",  HTTP_UNTIL_CLOSE, true },
        {"HTTP/1.0 200 OK\r\n\r\n",                                                    "GET",  HTTP_UNTIL_CLOSE, false},
        {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",                       "GET",  0,                true },
        {"HTTP/1.1 304 Not Modified\r\n\r\n",                                          "GET",  0,                true },
        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n",          "GET",  1,                false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "GET",  -99,              false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",          "GET",  -99,              false},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",                "GET",  -99,              false},
        {"HTTP/2 200\r\n\r\n",                                                         "GET",  -99,              false},
        {"HTTP/1.1 20 OK\r\n\r\n",                                                     "GET",  -99,              false},
        {"SSH-2.0-x\r\n\r\n",                                                          "GET",  -99,              false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char bytes[512];
        struct http_pass p;
        struct error e = {0};
        strcpy(bytes, rows[i].head);
        int r = http_pass_response(bytes, strlen(bytes), rows[i].to, &p, &e);
        if (rows[i].length == -99 ? r >= 0 || !e.text[0]
                                  : r < 0 || p.length != rows[i].length || p.head.keeps_alive != rows[i].keeps)
            fail_msg("%s: %d, %s", rows[i].head, r, e.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(requests), cmocka_unit_test(responses),
                                       cmocka_unit_test(who_may), cmocka_unit_test(framing)};
    return cmocka_run_group_tests_name("proxy_head", tests, NULL, NULL);
}
