#include "model/baseline.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void baseline_encode(const struct baseline *b, struct buf *out) {
    buf_printf(out, "gpumgr-baseline 1\nuuid %s\nlever %u\nvalue %.3f\nmemory %.3f\ntaken %" PRId64 "\nend\n", b->uuid,
               b->lever, b->value, b->memory_mhz, b->real_ns);
}

int baseline_decode(struct baseline *b, const char *text, struct error *e) {
    struct baseline got = {0};
    int end = 0;
    int n =
        sscanf(text, "gpumgr-baseline 1\nuuid %95s\nlever %" SCNu32 "\nvalue %lf\nmemory %lf\ntaken %" SCNd64 "\nend%n",
               got.uuid, &got.lever, &got.value, &got.memory_mhz, &got.real_ns, &end);
    if (n != 5 || end == 0 || strcmp(text + end, "\n") != 0) return fail(e, -EINVAL, "not a whole baseline record");
    if (got.lever < 1 || got.lever > 3 || !isfinite(got.value) || got.value <= 0 || got.value > 1e6)
        return fail(e, -EINVAL, "a baseline record with impossible values");
    *b = got;
    return 0;
}
