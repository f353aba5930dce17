/* GPUs without memory of their own (GB10, Jetson): the driver does not tell device memory, because it is the machine's.
 * Known by name, so that a card that has lost its memory is never taken for one of these. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "gpu/nvml.h"

#define MEMINFO_MAX 65536

bool nvml_is_integrated(const char *name) {
    static const char *const products[] = {"GB10", "Thor", "Orin", "Xavier", "Tegra"};
    for (size_t i = 0; i < ARRAY_LEN(products); i++) {
        const char *at = strstr(name, products[i]);
        bool begins = at && (at == name || !isalnum((unsigned char)at[-1]));
        if (begins && !isalnum((unsigned char)at[strlen(products[i])])) return true;
    }
    return false;
}

static bool kib_of(const char *text, const char *key, double *ret) {
    const char *at = strstr(text, key);
    unsigned long long kib;
    if (!at || sscanf(at + strlen(key), "%llu", &kib) != 1) return false;
    *ret = (double)kib * 1024;
    return true;
}

int nvml_system_memory_read(struct sample *s) {
    AUTO(buf_done) struct buf text = {0};
    struct error ignored;
    double total, available;
    if (file_read("/proc/meminfo", MEMINFO_MAX, &text, &ignored) < 0) return -EAGAIN;
    if (!kib_of(text.s, "MemTotal:", &total) || !kib_of(text.s, "MemAvailable:", &available)) return -EAGAIN;
    sample_put(s, METRIC_MEMORY_TOTAL, total);
    sample_put(s, METRIC_MEMORY_FREE, available);
    sample_put(s, METRIC_MEMORY_USED, total - available);
    return 0;
}
