/* The marks that lie beside the history: whatever the bytes, they are refused with a sentence or written back as they were
 * meant, and read again to the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/marks.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    struct marks_list first = {0}, second = {0};
    struct buf once = {0}, twice = {0};
    struct error e = {0};
    int r = marks_decode(&first, (const char *)bytes, len, &e);
    if (r < 0 && !e.text[0]) abort();
    marks_encode(&first, &once);
    if (marks_decode(&second, once.s, once.len, &e) < 0) abort();
    marks_encode(&second, &twice);
    if (once.len != twice.len || memcmp(once.s, twice.s, once.len) != 0) abort();
    marks_list_done(&first);
    marks_list_done(&second);
    buf_done(&once);
    buf_done(&twice);
    return 0;
}
