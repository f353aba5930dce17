#include "core/hunting.h"

#include <string.h>

#include "base/clock.h"

void hunting_begin(struct hunting *h, const struct gpu_driver *d, int64_t now_ns) {
    hunt_begin(&h->hunt, now_ns);
    h->call = -1;
    for (unsigned c = 0; c < gpu_calls(d); c++)
        if (gpu_call(d, c)->lists_processes) h->call = (int)c;
}

void hunting_arm(struct hunting *h, int64_t until_ns) {
    int64_t was = atomic_load(&h->armed_until_ns);
    while (was < until_ns && !atomic_compare_exchange_weak(&h->armed_until_ns, &was, until_ns)) {}
}

void hunting_set_base(struct hunting *h, int64_t base_ns) { atomic_store(&h->base_ns, base_ns); }

int64_t hunting_next_ns(struct hunting *h, int64_t now_ns) {
    int64_t until = atomic_load(&h->armed_until_ns);
    if (h->call < 0) return INT64_MAX;
    h->hunt.base_ns = atomic_load(&h->base_ns);
    if (until > now_ns) {
        atomic_compare_exchange_strong(&h->armed_until_ns, &until, 0);
        hunt_arm(&h->hunt, now_ns, until - now_ns);
    }
    return hunt_next_ns(&h->hunt, now_ns);
}

static bool is_known(const struct hunting *h, unsigned part, uint32_t pid) {
    for (uint32_t i = 0; i < h->known[part].count; i++)
        if (h->known[part].pid[i] == pid) return true;
    return false;
}

/* Whether one has come that was not there; *is_other: whether it is another list at all. */
static bool compare(const struct hunting *h, unsigned part, const struct ring_processes *p, bool *is_other) {
    bool has_new = false;
    for (uint32_t i = 0; i < p->count; i++) has_new |= !is_known(h, part, p->of[i].pid);
    *is_other = has_new || p->count != h->known[part].count;
    return has_new;
}

void hunting_note(struct hunting *h, unsigned part, const struct ring_processes *p) {
    bool is_other, has_new = compare(h, part, p, &is_other);
    if (has_new && clock_boot_ns() < h->hunt.until_ns) hunt_looked(&h->hunt, p->boot_ns, 0, true);
    if (!is_other) return;
    h->known[part].count = p->count;
    for (uint32_t i = 0; i < p->count; i++) h->known[part].pid[i] = p->of[i].pid;
}

bool hunting_look(struct hunting *h, const struct hunting_part *of, struct board *b) {
    struct ring_processes p;
    struct sample s;
    memset(&s, 0, sizeof s);
    memset(&p, 0, sizeof p);
    s.boot_ns = clock_boot_ns();
    int64_t cpu_ns = clock_thread_cpu_ns();
    int r = gpu_read(of->gpu, (unsigned)h->call, &s, &p);
    bool is_other = false, has_new = r >= 0 && compare(h, of->part, &p, &is_other);
    hunt_looked(&h->hunt, clock_boot_ns(), clock_thread_cpu_ns() - cpu_ns, has_new);
    if (is_other) hunting_note(h, of->part, &p);
    board_looked(b, of->device, is_other ? &p : NULL);
    return r >= 0;
}
