/* The words that anyone on the machine can send to gpusim: no line may do more than be refused. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sim/commands.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct machine m;
    if (m.gpu_count == 0) {
        m.air_c = 27;
        m.generation = 1;
        for (size_t i = 0; i < model_count; i++) machine_add(&m, &models[i], true);
    }
    char line[512] = {0};
    memcpy(line, bytes, n < sizeof line ? n : sizeof line - 1);
    AUTO(buf_done) struct buf out = {0};
    commands_run(&m, NULL, true, line, &out);
    machine_advance(&m, 0.05);
    return 0;
}
