#include "node/rings.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "model/wire.h"

void rings_init(struct rings *r, const struct instance *where, unsigned workers) {
    memset(r, 0, sizeof *r);
    r->count = workers < RINGS_MAX ? workers : RINGS_MAX;
    for (unsigned i = 0; i < r->count; i++) instance_path(where, r->of[i].path, sizeof r->of[i].path, "ring.%u", i);
}

static void let_go(struct rings_one *one) {
    shm_done(&one->shm);
    one->ring = (struct ring){0};
    one->is_open = false;
}

void rings_done(struct rings *r) {
    for (unsigned i = 0; i < r->count; i++) let_go(&r->of[i]);
    r->devices = 0;
}

bool rings_are_stale(const struct rings *r) {
    for (unsigned i = 0; i < r->count; i++) {
        const struct rings_one *one = &r->of[i];
        if (shm_is_replaced(&one->shm, one->path) && (one->is_open || access(one->path, F_OK) == 0)) return true;
    }
    return false;
}

/* A file that cannot be read is said once: it may be a later version's, and stays there. */
static void take_up(struct rings_one *one) {
    struct error e;
    int r = shm_open_file(one->path, false, 4096, &one->shm, &e);
    if (r >= 0) r = ring_attach(&one->ring, one->shm.mem, one->shm.size, &e);
    one->is_open = r >= 0;
    if (r >= 0 || r == -ENOENT) {
        one->is_said = false;
        return;
    }
    if (!one->is_said) log_line(LOG_WARN, "ring", -1, "%s: %s", one->path, e.text);
    one->is_said = true;
}

bool rings_renew(struct rings *r) {
    uint32_t next = 0;
    bool is_changed = false;
    for (unsigned i = 0; i < r->count; i++) {
        struct rings_one *one = &r->of[i];
        if (shm_is_replaced(&one->shm, one->path)) {
            is_changed |= one->is_open;
            let_go(one);
            take_up(one);
            is_changed |= one->is_open;
        }
        one->first = (uint16_t)next;
        if (one->is_open) next += ring_devices(&one->ring);
        if (next <= WIRE_DEVICES_MAX) continue;
        log_line(LOG_ERROR, "ring", -1, "%s: more than %d devices; those beyond are left out", one->path,
                 WIRE_DEVICES_MAX);
        next -= ring_devices(&one->ring);
        one->ring = (struct ring){0};
        one->is_open = false; /* the file stays mapped, so that it is not tried again and again */
    }
    r->devices = (uint16_t)next;
    return is_changed;
}

const struct rings_one *rings_find(const struct rings *r, uint16_t number, uint32_t *device) {
    for (unsigned i = 0; i < r->count; i++) {
        const struct rings_one *one = &r->of[i];
        if (!one->is_open || number < one->first || number - one->first >= (int)ring_devices(&one->ring)) continue;
        *device = (uint32_t)(number - one->first);
        return one;
    }
    return NULL;
}
