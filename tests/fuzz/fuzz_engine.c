/* What a container engine may answer: its bytes through the reader of answers, cut anywhere, and its bodies through every
 * parser of theirs. The limits hold, what comes out is whole and printable, and what jansson takes the walk takes too. */
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/json_tree.h"
#include "net/http_reader.h"
#include "node/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX 4096

static void check_text(const char *s, size_t room) {
    size_t n = strnlen(s, room);
    if (n >= room) abort();
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f) abort();
}

static void check_said(const struct container_said *said) {
    const struct engine_facts *f = &said->facts;
    if (!container_is_id(f->id)) abort();
    check_text(f->name, sizeof f->name);
    check_text(f->image, sizeof f->image);
    check_text(f->tenant, sizeof f->tenant);
    check_text(f->bad_label, sizeof f->bad_label);
    if (f->deadline_ns < 0 || f->period_ns < 0 || f->pid < 0 || said->device_count > CONTAINER_DEVICES_MAX) abort();
}

static void each(void *ctx, const struct container_said *said) { check_said(said); }

static void deepest(void *ctx, const struct json_scan_value *v) {
    if (v->depth > JSON_SCAN_DEPTH || strlen(v->text) > JSON_SCAN_TEXT) abort();
    if (v->len < strlen(v->text)) abort();
}

static void parse(const char *text, size_t len) {
    struct container_said said;
    enum container_action action;
    struct json_tree *tree = NULL;
    struct error e = {0};
    if (container_event(text, len, &action, &said, &e) >= 0) check_said(&said);
    if (container_inspect(text, len, &said, &e) >= 0) check_said(&said);
    (void)!container_list(text, len, each, NULL, &e);
    bool is_taken = json_scan(text, len, deepest, NULL, &e) >= 0;
    bool is_deep = strstr(e.text, "deeper") != NULL;
    bool has_nul = memchr(text, 0, len) != NULL; /* jansson passes over one after a number */
    if (json_tree_parse(text, len, &tree, &e) >= 0 && !is_taken && !is_deep && !has_nul) abort();
    json_tree_free(tree);
}

/* In one piece and in two the same must come out. */
static void answer(const char *text, size_t len, size_t cut) {
    struct http_reader a = {0}, b = {0};
    struct buf whole = {0}, parts = {0};
    struct error e;
    long n = http_reader_take(&a, text, len, MAX, &whole, &e);
    long m = http_reader_take(&b, text, cut, MAX, &parts, &e);
    if (m >= 0 && b.stage != HTTP_READER_WHOLE) {
        long more = http_reader_take(&b, text + cut, len - cut, MAX, &parts, &e);
        m = more < 0 ? more : m + more;
    }
    if (whole.len > MAX || parts.len > MAX) abort();
    if ((n < 0) != (m < 0) || (n >= 0 && n != m)) abort();
    if (n >= 0 && (whole.len != parts.len || a.stage != b.stage || a.status != b.status)) abort();
    if (n >= 0 && whole.len && memcmp(whole.s, parts.s, whole.len) != 0) abort();
    if (n >= 0 && whole.len) parse(whole.s, whole.len);
    buf_done(&whole);
    buf_done(&parts);
    http_reader_done(&a);
    http_reader_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    const char *text = (const char *)data + 1;
    parse(text, size - 1);
    answer(text, size - 1, (size_t)data[0] % size);
    return 0;
}
