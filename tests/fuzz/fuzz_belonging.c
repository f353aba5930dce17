/* /proc/PID/cgroup: who makes cgroups chooses their names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/belonging.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct belonging b;
    char *text = malloc(n + 1);
    if (!text) return 0;
    memcpy(text, bytes, n);
    text[n] = 0;
    belonging_parse(text, &b);
    if ((unsigned)b.kind >= BELONGING_KINDS || strlen(b.id) >= sizeof b.id || strlen(b.pod) >= sizeof b.pod)
        __builtin_trap();
    if (b.kind >= BELONGS_TO_CONTAINERD && strspn(b.id, "0123456789abcdef") != BELONGING_ID_HEX) __builtin_trap();
    free(text);
    return 0;
}
