/* The state of a run, as it may lie on a disk after a crash, and an order for a shim. */
#include <stdint.h>
#include <stdlib.h>

#include "run/order.h"
#include "run/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct record_state s;
    struct order o;
    record_scan(data, size, &s);
    for (int kind = 0; kind < RECORD_KINDS; kind++)
        if (s.has[kind] && !record_is_sound(&s.of[kind])) abort();
    if (order_decode(data, size, &o, NULL) < 0) return 0;
    char **argv = order_vector(&o.argv), **env = order_vector(&o.env);
    for (unsigned i = 0; i < o.groups; i++) (void)order_group(&o, i);
    free(argv);
    free(env);
    return 0;
}
