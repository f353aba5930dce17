/* A connection's bytes: whatever they are, heads and bodies are found or refused with a sentence, at the same place however
 * the bytes are cut, and what was parsed stays within them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http_parse.h"
#include "net/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_head(const struct http_head *h) {
    if (h->path[0] != '/' || strlen(h->path) > HTTP_HEAD_MAX || h->count > HTTP_FIELDS_MAX) abort();
    if (h->length < -1 || h->length > HTTP_LENGTH_MAX || h->is_chunked != (h->length == -1)) abort();
    if (h->minor > 0 && http_field_count(h, "host") != 1) abort();
    for (unsigned i = 0; i < h->count; i++)
        if (!h->field[i].name[0] || strpbrk(h->field[i].value, "\r\n")) abort();
    struct buf name = {0}, value = {0};
    struct error e = {0};
    const char *at = h->query;
    int r;
    while ((r = http_query_next(&at, &name, &value, &e)) > 0)
        if (!name.s || !value.s || strlen(name.s) > name.len || strlen(value.s) > value.len) abort();
    if (r < 0 && !e.text[0]) abort();
    buf_done(&name);
    buf_done(&value);
    http_list_has(http_field(h, "accept-encoding"), "gzip");
    struct proxies p;
    struct in6_addr from = {
        .s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 10}
    };
    bool is_tls = false;
    if (proxies_parse("10.0.0.0/8, ::1", &p, &e) < 0) abort();
    proxies_origin(&p, h, &from, &is_tls);
}

static size_t take_chunks(const char *bytes, size_t len, size_t step, struct buf *body, int *result) {
    struct http_chunks c = {0};
    struct error e = {0};
    size_t at = 0;
    long r = 0;
    while (at < len && c.state != HTTP_CHUNKS_END) {
        size_t n = len - at < step ? len - at : step;
        r = http_chunks_take(&c, bytes + at, n, 4096, body, &e);
        if (r < 0) break;
        at += (size_t)r;
    }
    if (r < 0 && !e.text[0]) abort();
    if (body->len > 4096) abort();
    *result = r < 0 ? (int)r : c.state == HTTP_CHUNKS_END;
    return r < 0 ? 0 : at;
}

static void check_chunks(const char *bytes, size_t len) {
    struct buf whole = {0}, cut = {0};
    int a, b;
    size_t at_a = take_chunks(bytes, len, len ? len : 1, &whole, &a), at_b = take_chunks(bytes, len, 3, &cut, &b);
    if (a != b || (a >= 0 && (at_a != at_b || whole.len != cut.len))) abort();
    buf_done(&whole);
    buf_done(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    struct error e = {0};
    size_t at = 0, at_cut = 0;
    long end = http_head_find((const char *)bytes, len, &at, &e), cut = 0;
    for (size_t n = 0; n <= len && cut == 0; n++) cut = http_head_find((const char *)bytes, n, &at_cut, &e);
    if (end != cut || (end < 0 && !e.text[0])) abort();
    if (end <= 0) return 0;
    char *copy = malloc((size_t)end);
    if (!copy) abort();
    memcpy(copy, bytes, (size_t)end);
    struct http_head h;
    e.text[0] = 0;
    int r = http_head_parse(copy, (size_t)end, &h, &e);
    if (r < 0 && !e.text[0]) abort();
    if (r >= 0) check_head(&h);
    if (r >= 0 && h.is_chunked) check_chunks((const char *)bytes + end, len - (size_t)end);
    free(copy);
    return 0;
}
