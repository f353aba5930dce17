/* Heads that are passed on, from a browser and from a job: whatever they are, they are refused with a sentence or become a head that reads
 * the same, has the one Host that we say, no line break that was not there, and no cookie of gpumgr's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/proxy_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const struct proxy_about about = {.port = 8888,
                                         .prefix = "gpumgr_abcdefgh_",
                                         .cookie = "gpumgr_ui_7100",
                                         .origin = "http://box:7100",
                                         .address = "192.0.2.7"};

static void need(bool is_true) {
    if (!is_true) abort();
}

static void check_request(char *bytes, size_t len) {
    struct http_pass p, again;
    struct error e = {0};
    AUTO(buf_done) struct buf head = {0};
    if (http_pass_request(bytes, len, &p, &e) < 0) {
        need(e.text[0]);
        return;
    }
    need(p.target[0] == '/' && p.length >= -1 && p.head.count <= HTTP_FIELDS_MAX);
    (void)proxy_may_pass(&p, about.origin);
    proxy_request(&p, &about, &head);
    buf_puts(&head, "\r\n");
    if (p.head.count > HTTP_FIELDS_MAX - 8 || head.len > HTTP_HEAD_MAX) return; /* a few lines are added */
    need(http_pass_request(head.s, head.len, &again, &e) >= 0);
    need(strcmp(again.method, p.method) == 0 && strcmp(again.target, p.target) == 0 && again.length == 0);
    need(http_field_count(&again.head, "host") == 1 && strcmp(http_field(&again.head, "host"), "localhost:8888") == 0);
    need(!http_field(&again.head, "transfer-encoding") && !http_field(&again.head, "upgrade"));
    const char *cookie = http_field(&again.head, "cookie");
    need(!cookie || strncasecmp(cookie, "gpumgr_ui_7100", 14) != 0);
}

static void check_response(char *bytes, size_t len) {
    struct http_pass p, again;
    struct error e = {0};
    AUTO(buf_done) struct buf head = {0};
    if (http_pass_response(bytes, len, "GET", &p, &e) < 0) {
        need(e.text[0]);
        return;
    }
    need(p.length >= HTTP_UNTIL_CLOSE && p.status >= 100 && p.status < 600);
    proxy_response(&p, &about, &head);
    buf_puts(&head, "\r\n");
    if (p.head.count > HTTP_FIELDS_MAX - 8 || head.len > HTTP_HEAD_MAX) return;
    need(http_pass_response(head.s, head.len, "GET", &again, &e) >= 0 && again.status == p.status);
    for (unsigned i = 0; i < again.head.count; i++) {
        const struct http_field *f = &again.head.field[i];
        if (strcmp(f->name, "set-cookie") == 0)
            need(strncmp(f->value, about.prefix, strlen(about.prefix)) == 0 ||
                 !proxy_is_ours(f->value, strcspn(f->value, "=;")));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (!len || len > HTTP_HEAD_MAX) return 0;
    char *copy = malloc(len);
    if (!copy) return 0;
    memcpy(copy, bytes + 1, len - 1);
    if (bytes[0] & 1)
        check_request(copy, len - 1);
    else
        check_response(copy, len - 1);
    free(copy);
    return 0;
}
