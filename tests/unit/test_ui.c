/* Where a UI is, as text and back; what will not do is refused with a sentence. */
#include "model/ui.h"

#include <string.h>

#include "tests/test.h"

static void texts(void **state) {
    static const struct {
        const char *text;
        unsigned port; /* 99999: refused */
        const char *path, *again;
    } rows[] = {
        {"8888",                    8888,  "/",            "8888"         },
        {"8888/lab",                8888,  "/lab",         "8888/lab"     },
        {"8888/",                   8888,  "/",            "8888"         },
        {"1/a?b=c&d=%20",           1,     "/a?b=c&d=%20", "1/a?b=c&d=%20"},
        {"65535",                   65535, "/",            "65535"        },
        {"auto",                    0,     "/",            "auto"         },
        {"auto/lab",                0,     "/lab",         "auto/lab"     },
        {"",                        99999, NULL,           NULL           },
        {"0",                       99999, NULL,           NULL           },
        {"08888",                   99999, NULL,           NULL           },
        {"65536",                   99999, NULL,           NULL           },
        {"123456",                  99999, NULL,           NULL           },
        {"autolab",                 99999, NULL,           NULL           },
        {"8888lab",                 99999, NULL,           NULL           },
        {"/lab",                    99999, NULL,           NULL           },
        {"-1",                      99999, NULL,           NULL           },
        {"8888//evil.example",      99999, NULL,           NULL           },
        {"8888/a b",                99999, NULL,           NULL           },
        {"8888/a\r\nSet-Cookie: x", 99999, NULL,           NULL           },
        {"8888/a#b",                99999, NULL,           NULL           },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ui u;
        struct error e = {0};
        AUTO(buf_done) struct buf b = {0};
        int r = ui_parse(rows[i].text, &u, &e);
        if ((r < 0) != (rows[i].port == 99999)) fail_msg("%s: %s", rows[i].text, e.text);
        if (r < 0) {
            assert_true(e.text[0]);
            continue;
        }
        assert_int_equal(u.port, rows[i].port);
        assert_string_equal(u.path, rows[i].path);
        ui_text(&u, &b);
        assert_string_equal(b.s, rows[i].again);
    }
    char path[400] = "8888/";
    struct ui u;
    memset(path + 5, 'a', 300);
    path[305] = 0;
    assert_true(ui_parse(path, &u, NULL) < 0);
}

static void settings(void **state) {
    static const struct {
        const char *text;
        unsigned first, last; /* 1, 0: refused */
    } ports[] = {
        {"7100-7199",  7100, 7199},
        {"7100",       7100, 7100},
        {"",           0,    0   },
        {"7199-7100",  1,    0   },
        {"0-10",       1,    0   },
        {"1-65535",    1,    0   },
        {"70000",      1,    0   },
        {"x",          1,    0   },
        {"7100-",      1,    0   },
        {"7100-7101x", 1,    0   }
    };
    static const struct {
        const char *pattern, *origin;
    } urls[] = {
        {"https://{ui}.gpu.example.org/", "https://job-17.gpu.example.org"},
        {"http://{ui}.localhost:7100",    "http://job-17.localhost:7100"  },
        {"https://gpu.example.org/{ui}/", NULL                            },
        {"https://x{ui}.example.org/",    NULL                            },
        {"ftp://{ui}.example.org/",       NULL                            },
        {"https://{ui}.example.org/path", NULL                            },
        {"https://{ui}.",                 NULL                            },
        {"{ui}",                          NULL                            },
    };
    struct error e;
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        unsigned first, last;
        int r = ui_ports(ports[i].text, &first, &last, &e);
        assert_int_equal(r >= 0, ports[i].first != 1);
        if (r >= 0) assert_true(first == ports[i].first && last == ports[i].last);
    }
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        AUTO(buf_done) struct buf b = {0};
        int r = ui_origin(urls[i].pattern, "job-17", &b, &e);
        assert_int_equal(r >= 0, urls[i].origin != NULL);
        if (r >= 0) assert_string_equal(b.s, urls[i].origin);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(settings)};
    return cmocka_run_group_tests_name("ui", tests, NULL, NULL);
}
