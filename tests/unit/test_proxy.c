/* Trusted proxies: which addresses they are, and how far back their word reaches. */
#include "net/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/http_server.h"
#include "tests/test.h"

static struct in6_addr address_of(const char *text) {
    struct in6_addr a;
    assert_true(proxies_address(text, strlen(text), &a));
    return a;
}

static void lists(void **state) {
    static const struct {
        const char *list, *address;
        bool want;
    } rows[] = {
        {"",                    "127.0.0.1",        false},
        {"127.0.0.1",           "127.0.0.1",        true },
        {"127.0.0.1",           "127.0.0.2",        false},
        {"10.0.0.0/8",          "10.255.0.1",       true },
        {"10.0.0.0/8",          "11.0.0.1",         false},
        {"192.0.2.128/25",      "192.0.2.127",      false},
        {"192.0.2.128/25",      "192.0.2.200",      true },
        {"0.0.0.0/0",           "203.0.113.9",      true },
        {"0.0.0.0/0",           "2001:db8::1",      false},
        {"::1, 2001:db8::/32",  "2001:db8:ffff::1", true },
        {"::1,2001:db8::/32",   "2001:db9::1",      false},
        {"10.0.0.1 , 10.0.0.2", "10.0.0.2",         true },
        {"::/0",                "10.0.0.2",         true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct proxies p;
        struct error e;
        struct in6_addr a = address_of(rows[i].address);
        assert_int_equal(proxies_parse(rows[i].list, &p, &e), 0);
        if (proxies_trust(&p, &a) != rows[i].want) print_error("%s in %s\n", rows[i].address, rows[i].list);
        assert_int_equal(proxies_trust(&p, &a), rows[i].want);
    }
    static const char *const bad[] = {"x",           "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                                      "10.0.0.0/ 8", "1.2.3",       "::1/129",   "10.0.0.1:80"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct proxies p;
        struct error e = {0};
        assert_int_equal(proxies_parse(bad[i], &p, &e), -EINVAL);
        assert_non_null(strstr(e.text, "trusted_proxies"));
    }
}

static void origins(void **state) {
    static const struct {
        const char *name, *peer, *first, *second, *proto, *want;
        bool want_tls;
    } rows[] = {
        {"not trusted",     "203.0.113.5", "198.51.100.1",            NULL,           "https", "203.0.113.5",  false},
        {"says nothing",    "10.0.0.1",    NULL,                      NULL,           NULL,    "10.0.0.1",     false},
        {"one",             "10.0.0.1",    "198.51.100.1",            NULL,           "https", "198.51.100.1", true },
        {"with a port",     "10.0.0.1",    "198.51.100.1:555",        NULL,           "http",  "198.51.100.1", false},
        {"v6",              "10.0.0.1",    "[2001:db8::7]:80",        NULL,           NULL,    "2001:db8::7",  false},
        {"two proxies",     "10.0.0.1",    "198.51.100.1, 10.0.0.2",  NULL,           NULL,    "198.51.100.1", false},
        {"a lie before",    "10.0.0.1",    "127.0.0.1, 198.51.100.1", NULL,           NULL,    "198.51.100.1", false},
        {"two lines",       "10.0.0.1",    "127.0.0.1",               "198.51.100.1", NULL,    "198.51.100.1", false},
        {"nonsense",        "10.0.0.1",    "unknown",                 NULL,           NULL,    "10.0.0.1",     false},
        {"nonsense before", "10.0.0.1",    "unknown, 10.0.0.2",       NULL,           NULL,    "10.0.0.2",     false},
        {"empty",           "10.0.0.1",    "",                        NULL,           NULL,    "10.0.0.1",     false},
    };
    struct proxies p;
    struct error e;
    assert_int_equal(proxies_parse("10.0.0.0/8", &p, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_head h = {0};
        struct in6_addr a = address_of(rows[i].peer);
        bool is_tls = false;
        char text[64];
        if (rows[i].first) h.field[h.count++] = (struct http_field){"x-forwarded-for", rows[i].first};
        if (rows[i].second) h.field[h.count++] = (struct http_field){"x-forwarded-for", rows[i].second};
        if (rows[i].proto) h.field[h.count++] = (struct http_field){"x-forwarded-proto", rows[i].proto};
        proxies_origin(&p, &h, &a, &is_tls);
        http_address_text(&a, text, sizeof text);
        if (strcmp(text, rows[i].want) != 0) print_error("%s: %s\n", rows[i].name, text);
        assert_string_equal(text, rows[i].want);
        assert_int_equal(is_tls, rows[i].want_tls);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(origins)};
    return cmocka_run_group_tests_name("proxy", tests, NULL, NULL);
}
