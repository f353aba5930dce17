/* Bytes of a time zone: a file of any package. Whatever is taken answers, and its answers hold together. */
#include <stdint.h>

#include "base/auto.h"
#include "model/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void look(const struct zone *z, int64_t local_s) {
    int64_t moments[2], next;
    int count = zone_moments(z, local_s, moments);
    for (int i = 0; i < count; i++)
        if (moments[i] + zone_offset_s(z, moments[i]) != local_s) __builtin_trap();
    if (count == 2 && moments[0] >= moments[1]) __builtin_trap();
    if (zone_next_change(z, local_s, &next) && next <= local_s) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    AUTO(zone_done) struct zone z = {0};
    struct error e;
    if (zone_parse(bytes, n, &z, &e) < 0) return 0;
    for (int64_t t = 0; t < 7258118400; t += 97654321) look(&z, t);
    for (size_t i = 0; i < z.count && i < 50; i++)
        if (z.at[i] > 0 && z.at[i] < 7258118400)
            for (int64_t d = -7200; d <= 7200; d += 1800) look(&z, z.at[i] + d);
    return 0;
}
