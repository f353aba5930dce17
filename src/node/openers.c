#include "node/openers.h"

#include <stdbool.h>

#include "base/clock.h"

#define FORGET_NS (60 * NS_PER_S)
#define GUESS_NS                                                                                                       \
    (5 * NS_PER_S) /* CUDA takes some 0.3 s from the first open until it is listed; a busy machine longer */

void openers_keep(struct openers *o, int64_t tag, int32_t pid, int64_t now_ns) {
    uint32_t i = o->head++ % OPENERS_KEPT;
    o->of[i].at_ns = now_ns;
    o->of[i].tag = tag;
    o->of[i].pid = pid;
}

int64_t openers_find(struct openers *o, const struct opener *who) {
    uint32_t count = o->head < OPENERS_KEPT ? o->head : OPENERS_KEPT;
    for (uint32_t n = o->head - count; n != o->head; n++) {
        uint32_t i = n % OPENERS_KEPT;
        bool has_pid = o->of[i].pid > 0;
        int64_t at_ns = o->of[i].at_ns, since_ns = who->start_ns - (has_pid ? FORGET_NS : GUESS_NS);
        if (!at_ns || at_ns < since_ns || at_ns < who->born_ns) continue;
        if (has_pid ? o->of[i].pid != who->pid : o->of[i].tag != who->tag) continue;
        if (!has_pid) o->of[i].at_ns = 0;
        return at_ns < who->start_ns ? at_ns : who->start_ns; /* the sampler may be quicker than we are */
    }
    return 0;
}
