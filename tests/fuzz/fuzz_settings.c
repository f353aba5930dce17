/* The lines of key=value that gpumgr hands to gpumgr-core: whatever the bytes, decoding ends, and what it takes must
 * survive being written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    AUTO(buf_done) struct buf text = {0}, once = {0}, twice = {0};
    buf_add(&text, (const char *)bytes, len);
    buf_puts(&text, "");

    struct settings s, again;
    struct error e = {0};
    settings_init(&s);
    if (settings_decode(&s, text.s, &e) < 0) {
        if (!e.text[0]) abort(); /* a refusal has a sentence */
        return 0;
    }
    settings_encode(&s, &once);
    settings_init(&again);
    if (settings_decode(&again, once.s, &e) < 0) abort();
    settings_encode(&again, &twice);
    if (strcmp(once.s, twice.s) != 0) abort();
    return 0;
}
