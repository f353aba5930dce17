/* A container's record, from a peer: taken, it says the same again byte for byte. Frames about containers. And any JSON that json_scan
 * takes can be walked as slices, whose pieces are JSON again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/json_slice.h"
#include "model/container_spec.h"
#include "model/wire_container_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void need(bool is_true) {
    if (!is_true) abort();
}

static void nothing(void *ctx, const struct json_scan_value *v) {}

static void walk(struct json_slice of, int depth) {
    AUTO(buf_done) struct buf text = {0};
    struct json_slice key, value;
    struct error e;
    json_slice_text(of, &text);
    for (size_t at = 0, before = 0; depth < 8 && json_slice_next(of, &at, &key, &value); before = at) {
        need(at > before && value.s >= of.s && value.s + value.len <= of.s + of.len);
        need(json_scan(value.s, value.len, nothing, NULL, &e) >= 0);
        if (key.len) need(json_scan(key.s, key.len, nothing, NULL, &e) >= 0);
        walk(value, depth + 1);
    }
}

static bool is_one_word(const char *s) {
    while (*s && (unsigned char)*s > ' ' && *s != 0x7f) s++;
    return !*s;
}

static void frame(const uint8_t *bytes, size_t n) {
    struct wire_container_call call;
    struct wire_container_answer answer;
    struct error e = {0};
    struct wire_frame f = {.type = WIRE_CONTAINER_CALL, .version = WIRE_VERSION, .body = bytes, .len = n};
    if (wire_get_container_call(&f, &call, &e) >= 0)
        need(strnlen(call.of, sizeof call.of) < sizeof call.of && call.record_len <= n);
    f.type = WIRE_CONTAINER_ANSWER;
    if (wire_get_container_answer(&f, &answer, &e) >= 0)
        need(strnlen(answer.text, sizeof answer.text) < sizeof answer.text && answer.len <= n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    AUTO(buf_done) struct buf again = {0}, copy = {0};
    struct container_spec s;
    struct error e = {0};
    frame(bytes, n);
    buf_add(&copy, bytes, n);
    if (n && json_scan(copy.s, copy.len, nothing, NULL, &e) >= 0) walk((struct json_slice){copy.s, copy.len}, 0);
    if (container_spec_decode(bytes, n, &s, &e) < 0) return 0;
    need(is_one_word(s.name) && is_one_word(s.image)); /* they are part of requests to an engine */
    container_spec_encode(&s, &again);
    need(again.len == n && memcmp(again.s, bytes, n) == 0);
    return 0;
}
