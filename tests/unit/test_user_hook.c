/* Where a user's web hook may go. */
#include "tests/test.h"

#include <stdbool.h>
#include <string.h>

#include "model/user_hook.h"

static void urls(void **state) {
    static const char list[] = "https://hooks.example.org/gpu/,https://chat.example.org,http://10.0.0.5:8080/a";
    static const struct {
        const char *setting, *url;
        bool want;
    } rows[] = {
        {"yes", "http://127.0.0.1:1/",                        true },
        {"no",  "https://hooks.example.org/gpu/x",            false},
        {list,  "https://hooks.example.org/gpu/x?y#z",        true },
        {list,  "https://hooks.example.org/gpu/",             true },
        {list,  "https://hooks.example.org/gpu",              false},
        {list,  "https://hooks.example.org/other",            false},
        {list,  "http://hooks.example.org/gpu/x",             false},
        {list,  "https://chat.example.org",                   true },
        {list,  "https://chat.example.org/any/where",         true },
        {list,  "https://chat.example.org?room=1",            true },
        {list,  "https://chat.example.org.evil.example/",     false},
        {list,  "https://chat.example.org:8443/",             false},
        {list,  "https://chat.example.org@evil.example/",     false},
        {list,  "https://chat.example.org:pw@evil.example/",  false},
        {list,  "https://chat.example.org/@me",               true },
        {list,  "https://chat.example.org\\@evil.example/",   false},
        {list,  "https://hooks.example.org/gpu/../other",     false},
        {list,  "https://hooks.example.org/gpu/%2E%2e/other", false},
        {list,  "https://hooks.example.org/gpu/ x",           false},
        {list,  "http://10.0.0.5:8080/a/b",                   true },
        {list,  "http://10.0.0.5:8080/ab",                    false},
        {list,  "http://10.0.0.5:80801/a",                    false},
        {list,  "ftp://chat.example.org",                     false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error e = {0};
        int r = user_hook_check(rows[i].setting, rows[i].url, &e);
        if ((r >= 0) != rows[i].want) fail_msg("%s: %d %s", rows[i].url, r, e.text);
        if (r < 0) assert_non_null(strstr(e.text, "tell.user_webhooks"));
    }
}

static void settings(void **state) {
    static const struct {
        const char *text;
        bool want;
    } rows[] = {
        {"yes",                            true },
        {"no",                             true },
        {"https://a.example",              true },
        {"http://a.example/x,https://b:8", true },
        {"",                               false},
        {"maybe",                          false},
        {"a.example",                      false},
        {"https://",                       false},
        {"https:///x",                     false},
        {"https://a.example,",             false},
        {"https://a.example, https://b",   false},
        {"yes,https://a.example",          false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error e = {0};
        if ((user_hook_check_setting(rows[i].text, &e) >= 0) != rows[i].want) fail_msg("%s: %s", rows[i].text, e.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(urls), cmocka_unit_test(settings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
