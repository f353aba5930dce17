#include "server/auth_rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static void cookies(void **state) {
    static const struct {
        const char *header, *name;
        int n;
        const char *want; /* NULL: none */
    } rows[] = {
        {"a=1",            "a", 0, "1"      },
        {"a=1; b=2",       "b", 0, "2"      },
        {"a=1;b=2",        "b", 0, "2"      },
        {" a=1 ; b=2 ",    "b", 0, "2"      },
        {"a=1; a=2",       "a", 0, "1"      },
        {"a=1; a=2",       "a", 1, "2"      },
        {"a=1; a=2",       "a", 2, NULL     },
        {"aa=1",           "a", 0, NULL     },
        {"a",              "a", 0, NULL     },
        {"a=",             "a", 0, ""       },
        {"",               "a", 0, NULL     },
        {";;;",            "a", 0, NULL     },
        {"A=1",            "a", 0, NULL     },
        {"x=\"a=1\"; a=2", "a", 0, "2"      },
        {"a=x y",          "a", 0, NULL     },
        {"a=\"1\"",        "a", 0, NULL     },
        {"a=1,2",          "a", 0, NULL     },
        {"a=1234567",      "a", 0, "1234567"},
        {"a=12345678",     "a", 0, NULL     }, /* does not fit */
        {NULL,             "a", 0, NULL     },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[8] = "?";
        bool is_there = rules_cookie(rows[i].header, rows[i].name, rows[i].n, got, sizeof got);
        if (is_there != (rows[i].want != NULL) || (is_there && strcmp(got, rows[i].want) != 0))
            fail_msg("cookie \"%s\": %d, %s", rows[i].header ? rows[i].header : "NULL", is_there, got);
    }
    static const struct {
        bool is_tls;
        const char *base, *host, *want;
    } names[] = {
        {false, "/",     "lab:7000",      "gpumgr_session_7000"      },
        {false, "/",     "lab:7001",      "gpumgr_session_7001"      },
        {false, "/",     "lab",           "gpumgr_session"           },
        {false, "/",     NULL,            "gpumgr_session"           },
        {false, "/",     "[::1]:7000",    "gpumgr_session_7000"      },
        {false, "/",     "[::1]",         "gpumgr_session"           },
        {false, "/",     "lab:7000;x=y",  "gpumgr_session"           },
        {false, "/",     "lab:700000",    "gpumgr_session"           },
        {true,  "/",     "lab.example",   "__Host-gpumgr_session"    },
        {true,  "/gpus", "lab.example:1", "__Secure-gpumgr_session_1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char got[RULES_COOKIE_NAME];
        rules_cookie_name(names[i].is_tls, names[i].base, names[i].host, got);
        assert_string_equal(got, names[i].want);
    }
}

#define SECRET "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO_-"

static void tokens(void **state) {
    static const struct {
        const char *header, *want;
    } rows[] = {
        {"Bearer gpm_x",           "gpm_x"},
        {"bearer gpm_x",           "gpm_x"},
        {"Bearer  gpm_x ",         "gpm_x"},
        {"Bearer",                 NULL   },
        {"Bearer ",                NULL   },
        {"Basic gpm_x",            NULL   },
        {"Bearer gpm x",           NULL   },
        {"Bearer gpm_x, Bearer y", NULL   },
        {"Bearer gpm_x\xc3\xa4",   NULL   },
        {NULL,                     NULL   },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[16] = "?";
        bool is_there = rules_bearer(rows[i].header, got, sizeof got);
        if (is_there != (rows[i].want != NULL) || (is_there && strcmp(got, rows[i].want) != 0))
            fail_msg("authorization \"%s\": %d, %s", rows[i].header ? rows[i].header : "NULL", is_there, got);
    }
    assert_true(rules_is_token("gpm_" SECRET));
    assert_false(rules_is_token(SECRET));
    assert_false(rules_is_token("gpm_" SECRET "x"));
    assert_false(rules_is_token("gpm_"));
    assert_false(rules_is_token("GPM_" SECRET));
    assert_true(rules_is_secret(SECRET));
    assert_false(rules_is_secret("abc=" SECRET));
    char made[SECRETS_TEXT], again[SECRETS_TEXT];
    secrets_make(made);
    secrets_make(again);
    assert_true(rules_is_secret(made) && rules_is_secret(again));
    assert_string_not_equal(made, again);
}

static void origins(void **state) {
    static const struct {
        const char *origin, *site, *host, *url;
        bool is_tls, want;
    } rows[] = {
        {"http://127.0.0.1:7000",    "same-origin", "127.0.0.1:7000",   "",                           false, true },
        {"http://127.0.0.1:7000",    NULL,          "127.0.0.1:7000",   "",                           false, true },
        {NULL,                       "same-origin", "127.0.0.1:7000",   "",                           false, true },
        {NULL,                       NULL,          "127.0.0.1:7000",   "",                           false, false},
        {"http://127.0.0.1:7001",    NULL,          "127.0.0.1:7000",   "",                           false, false},
        {"http://localhost:7000",    NULL,          "127.0.0.1:7000",   "",                           false, false},
        {"http://evil.example",      "cross-site",  "127.0.0.1:7000",   "",                           false, false},
        {"http://127.0.0.1:7000",    "cross-site",  "127.0.0.1:7000",   "",                           false, false},
        {"http://127.0.0.1:7000",    "same-site",   "127.0.0.1:7000",   "",                           false, false},
        {"http://127.0.0.1:7000",    "none",        "127.0.0.1:7000",   "",                           false, false},
        {"null",                     NULL,          "127.0.0.1:7000",   "",                           false, false},
        {"null",                     "same-origin", "127.0.0.1:7000",   "",                           false, false},
        {"https://127.0.0.1:7000",   NULL,          "127.0.0.1:7000",   "",                           false, false},
        {"https://gpu.example",      NULL,          "gpu.example",      "",                           true,  true },
        {"https://gpu.example",      NULL,          "gpu.example:443",  "",                           true,  true },
        {"https://GPU.example",      NULL,          "gpu.Example",      "",                           true,  true },
        {"http://gpu.example",       NULL,          "gpu.example:80",   "",                           false, true },
        {"https://gpu.example",      NULL,          "10.0.0.1:7000",    "https://gpu.example/gpumgr", false, true },
        {"https://gpu.example.evil", NULL,          "10.0.0.1:7000",    "https://gpu.example/gpumgr", false, false},
        {"https://gpu.example",      NULL,          NULL,               "",                           true,  false},
        {"http://a@127.0.0.1:7000",  NULL,          "a@127.0.0.1:7000", "",                           false, false},
        {"",                         NULL,          "",                 "",                           false, false},
        {"http://",                  NULL,          "",                 "",                           false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct rules_origin o = {rows[i].origin, rows[i].site, rows[i].host, rows[i].url, rows[i].is_tls};
        if (rules_is_same_origin(&o) != rows[i].want)
            fail_msg("row %zu: %s, %s", i, rows[i].origin ? rows[i].origin : "-", rows[i].site ? rows[i].site : "-");
    }
}

static void hosts_and_types(void **state) {
    static const struct {
        const char *host;
        bool want;
    } rows[] = {
        {"localhost",      true },
        {"localhost:7000", true },
        {"LOCALHOST:1",    true },
        {"127.0.0.1",      true },
        {"127.0.0.1:7000", true },
        {"127.3.2.1:70",   true },
        {"[::1]:7000",     true },
        {"[::1]",          true },
        {"localhost.evil", false},
        {"127.0.0.1.evil", false},
        {"127.0.0.1:",     false},
        {"127.0.0",        false},
        {"127.0.0.999",    false},
        {"evil:7000",      false},
        {"[::2]:7000",     false},
        {"localhost:x",    false},
        {"",               false},
        {NULL,             false},
        {"127.0.0.1:70x",  false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rules_is_local_host(rows[i].host) != rows[i].want)
            fail_msg("host %s", rows[i].host ? rows[i].host : "NULL");
    assert_true(rules_is_json("application/json"));
    assert_true(rules_is_json("Application/JSON; charset=utf-8"));
    assert_false(rules_is_json("application/jsonp"));
    assert_false(rules_is_json("text/plain"));
    assert_false(rules_is_json(NULL));
}

static void names(void **state) {
    struct error e;
    char got[RULES_NAME], long_name[RULES_NAME + 1];
    static const char *const bad[] = {"", "a b", "-a", ".", "../x", "a/b", "a\nb", "\xc3\xa4", "a'b"};
    static const char *const good[] = {"a", "alice", "Alice.B-2", "_x", "a@example.org"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (rules_check_name("user", bad[i], &e) != -EINVAL) fail_msg("\"%s\" is a name", bad[i]);
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (rules_check_name("user", good[i], &e) != 0) fail_msg("\"%s\" is no name", good[i]);
    memset(long_name, 'a', RULES_NAME);
    long_name[RULES_NAME] = 0;
    assert_int_equal(rules_check_name("user", long_name, &e), -EINVAL);
    assert_int_equal(rules_check_name("user", long_name + 1, &e), 0);
    rules_unix_name("DOM\\alice b", got);
    assert_string_equal(got, "DOM_alice_b");
    rules_unix_name("-x", got);
    assert_string_equal(got, "_x");
    rules_unix_name("", got);
    assert_string_equal(got, "_");
    assert_true(rules_is_name_of("alice", "alice", 7));
    assert_true(rules_is_name_of("admin-7", "admin", 7));
    assert_false(rules_is_name_of("admin-8", "admin", 7));
    assert_int_equal(rules_check_password("1234567", &e), -EINVAL);
    assert_int_equal(rules_check_password("12345678", &e), 0);
    assert_int_equal(rules_check_label("token", "for Grafana", &e), 0);
    assert_int_equal(rules_check_label("token", "a\tb", &e), -EINVAL);
    assert_int_equal(rules_check_label("token", "", &e), -EINVAL);
}

static int start(void **state) {
    struct error e;
    return secrets_start(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cookies),         cmocka_unit_test(tokens), cmocka_unit_test(origins),
        cmocka_unit_test(hosts_and_types), cmocka_unit_test(names),
    };
    return cmocka_run_group_tests_name("auth_rules", tests, start, NULL);
}
