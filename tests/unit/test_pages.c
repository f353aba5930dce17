/* The dashboard's files as they are embedded: found by name, packed copies that fit, a page that knows its base path. */
#include "server/pages.h"

#include <string.h>

#include "base/auto.h"
#include "tests/test.h"

static void assets(void **state) {
    assert_true(page_asset_count > 0);
    for (size_t i = 0; i < page_asset_count; i++) {
        const struct page_asset *a = &page_assets[i];
        assert_true(a->size > 0);
        assert_non_null(strchr(a->type, '/'));
        assert_int_equal(a->etag[0], '"');
        assert_true(a->path[0] != '/');
        if (a->gzip) {
            assert_true(a->gzip_size > 18);
            assert_memory_equal(a->gzip, "\x1f\x8b", 2);
        }
        if (strcmp(a->path, "index.html") == 0)
            assert_null(pages_find(a->path));
        else
            assert_ptr_equal(pages_find(a->path), a);
    }
    assert_null(pages_find("assets/../index.html"));
    assert_null(pages_find(""));
}

static void base_path(void **state) {
    static const struct {
        const char *path, *want;
    } rows[] = {
        {"/",            "<base href=\"/\">"                  },
        {"/lab/gpus/",   "<base href=\"/lab/gpus/\">"         },
        {"/\"><script>", "<base href=\"/&quot;>&lt;script>\">"},
        {"/a&b/",        "<base href=\"/a&amp;b/\">"          },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        pages_index(rows[i].path, &b);
        buf_putc(&b, '\0');
        assert_non_null(strstr(b.s, rows[i].want));
        assert_non_null(strstr(b.s, "</html>"));
        for (size_t k = 0; k < page_asset_count; k++)
            if (page_assets[k].is_forever && strstr(page_assets[k].path, "app-"))
                assert_non_null(strstr(b.s, page_assets[k].path));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(assets), cmocka_unit_test(base_path)};
    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
