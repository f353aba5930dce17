#include "server/pages.h"

#include <string.h>

#define INDEX "index.html"
#define BASE_MARK "<base href=\"/\">"

static const struct page_asset *find(const char *path) {
    for (size_t i = 0; i < page_asset_count; i++)
        if (strcmp(page_assets[i].path, path) == 0) return &page_assets[i];
    return NULL;
}

const struct page_asset *pages_find(const char *path) { return strcmp(path, INDEX) == 0 ? NULL : find(path); }

/* A base path comes from the configuration, which an administrator writes; still it must not end the attribute. */
static void put_attribute(struct buf *b, const char *text) {
    for (; *text; text++) {
        if (*text == '"')
            buf_puts(b, "&quot;");
        else if (*text == '&')
            buf_puts(b, "&amp;");
        else if (*text == '<')
            buf_puts(b, "&lt;");
        else
            buf_putc(b, *text);
    }
}

void pages_index(const char *base_path, struct buf *b) {
    const struct page_asset *index = find(INDEX);
    if (!index) return;
    const char *body = (const char *)index->body, *end = body + index->size;
    const char *mark = memmem(body, index->size, BASE_MARK, strlen(BASE_MARK));
    if (!mark) {
        buf_add(b, body, index->size);
        return;
    }
    buf_add(b, body, (size_t)(mark - body));
    buf_puts(b, "<base href=\"");
    put_attribute(b, base_path);
    buf_puts(b, "\">");
    const char *rest = mark + strlen(BASE_MARK);
    buf_add(b, rest, (size_t)(end - rest));
}
