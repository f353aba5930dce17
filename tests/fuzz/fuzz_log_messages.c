/* Bytes of a container engine's answer, in any pieces: the pieces change nothing, and no more comes out than went in. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "node/log_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void need(bool is_true) {
    if (!is_true) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (len < 2) return 0;
    size_t piece = 1 + bytes[1] % 64;
    struct log_messages whole = {.is_tty = bytes[0] & 1}, cut = whole;
    AUTO(buf_done) struct buf a = {0}, b = {0};
    bytes += 2;
    len -= 2;
    log_messages_take(&whole, (const char *)bytes, len, &a);
    for (size_t at = 0; at < len; at += piece)
        log_messages_take(&cut, (const char *)bytes + at, len - at < piece ? len - at : piece, &b);
    need(a.len == b.len && a.len <= len && (!a.len || memcmp(a.s, b.s, a.len) == 0));
    need(whole.newest_ns == cut.newest_ns && whole.has_news == (a.len > 0));
    log_messages_again(&whole);
    log_messages_take(&whole, (const char *)bytes, len, &a);
    need(a.len <= 2 * len);
    return 0;
}
