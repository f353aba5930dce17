/* Lines of the kernel log: whoever can write there must not be able to do more than be misread. */
#include <stdint.h>
#include <string.h>

#include "model/xid.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct xid_line x;
    struct xid_count c = {0};
    if (!xid_parse((const char *)bytes, n, &x)) return 0;
    if (strlen(x.pci) >= sizeof x.pci || strlen(x.process) >= sizeof x.process || x.pid < 0 || x.code == 0)
        __builtin_trap();
    (void)xid_is_at(x.pci, "00000000:3B:00.0");
    (void)xid_take(&c, x.code, XID_FROM_LOG, 1);
    (void)xid_find(x.code);
    return 0;
}
