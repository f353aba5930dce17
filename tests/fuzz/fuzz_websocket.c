/* A browser's frames: whatever they are, messages are found or refused with a sentence and a code, the same however the bytes are cut,
 * and nothing grows beyond its bound. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/websocket.h"

#define MOST 512

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static int hear(const uint8_t *bytes, size_t len, size_t step, struct buf *heard, int *code) {
    struct websocket w = {.max = MOST};
    struct websocket_message m;
    struct error e = {0};
    int r = 0;
    for (size_t at = 0; at < len && r >= 0;) {
        size_t taken = 0, n = len - at < step ? len - at : step;
        r = websocket_take(&w, bytes + at, n, &taken, &m, code, &e);
        if (taken > n || (r == 0 && taken != n)) abort();
        at += taken;
        if (w.message.len > MOST || w.control.len > WEBSOCKET_CONTROL_MAX) abort();
        if (r <= 0) continue;
        if (m.len > MOST) abort();
        buf_printf(heard, "%d %d %zu ", (int)m.opcode, m.code, m.len);
        buf_add(heard, m.bytes, m.len);
    }
    if (r < 0 && (!e.text[0] || *code < 1000)) abort();
    websocket_done(&w);
    return r < 0 ? r : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    struct buf whole = {0}, cut = {0};
    int a = 0, b = 0;
    int r = hear(bytes, len, len ? len : 1, &whole, &a), q = hear(bytes, len, 3, &cut, &b);
    if (r != q || a != b || whole.len != cut.len || (whole.len && memcmp(whole.s, cut.s, whole.len) != 0)) abort();
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
