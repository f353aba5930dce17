#include "core/hunting.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"

void hunting_init(struct hunting *h) { pthread_mutex_init(&h->lock, NULL); }

void hunting_begin(struct hunting *h, const struct gpu_driver *d, int64_t now_ns) {
    hunt_begin(&h->hunt, now_ns);
    h->call = -1;
    for (unsigned c = 0; c < gpu_calls(d); c++)
        if (gpu_call(d, c)->lists_processes) h->call = (int)c;
}

void hunting_arm(struct hunting *h, bool is_opening, int64_t until_ns) {
    _Atomic int64_t *until = is_opening ? &h->opened_until_ns : &h->armed_until_ns;
    int64_t was = atomic_load(until);
    while (was < until_ns && !atomic_compare_exchange_weak(until, &was, until_ns)) {}
}

/* Too many at once: then somebody comes, whoever it is. */
void hunting_expect(struct hunting *h, uint32_t pid, int64_t at_ns, int64_t until_ns) {
    pthread_mutex_lock(&h->lock);
    bool has_room = h->told_count < HUNTING_TOLD;
    if (has_room) {
        h->told[h->told_count].pid = pid;
        h->told[h->told_count].at_ns = at_ns;
        h->told[h->told_count++].until_ns = until_ns;
    }
    pthread_mutex_unlock(&h->lock);
    if (!has_room) hunting_arm(h, true, until_ns);
}

void hunting_set_base(struct hunting *h, int64_t base_ns) { atomic_store(&h->base_ns, base_ns); }

static bool is_known(const struct hunting *h, unsigned part, uint32_t pid) {
    for (uint32_t i = 0; i < h->known[part].count; i++)
        if (h->known[part].pid[i] == pid) return true;
    return false;
}

/* One that is listed goes on opening files: that announces nobody. */
static void take_told(struct hunting *h) {
    pthread_mutex_lock(&h->lock);
    for (unsigned i = 0; i < h->told_count; i++) {
        bool is_listed = false;
        for (unsigned part = 0; part < ARRAY_LEN(h->known); part++) is_listed |= is_known(h, part, h->told[i].pid);
        if (!is_listed) hunt_expect(&h->hunt, h->told[i].pid, h->told[i].at_ns, h->told[i].until_ns - h->told[i].at_ns);
    }
    h->told_count = 0;
    pthread_mutex_unlock(&h->lock);
}

/* Nobody looks for those who have ended meanwhile. */
static void drop_gone(struct hunt *h) {
    for (unsigned i = 0; i < HUNT_COMERS; i++) {
        uint32_t pid = h->comer[i].pid;
        if (pid && kill((pid_t)pid, 0) < 0 && errno == ESRCH) hunt_gone(h, pid);
    }
}

int64_t hunting_next_ns(struct hunting *h, int64_t now_ns) {
    if (h->call < 0) return INT64_MAX;
    h->hunt.base_ns = atomic_load(&h->base_ns);
    take_told(h);
    drop_gone(&h->hunt);
    int64_t opened_ns = atomic_exchange(&h->opened_until_ns, 0), armed_ns = atomic_exchange(&h->armed_until_ns, 0);
    if (opened_ns > now_ns) hunt_arm(&h->hunt, true, now_ns, opened_ns - now_ns);
    if (armed_ns > now_ns) hunt_arm(&h->hunt, false, now_ns, armed_ns - now_ns);
    return hunt_next_ns(&h->hunt, now_ns);
}

/* Whether one has come that was not there; *is_other: whether it is another list at all. */
static bool compare(const struct hunting *h, unsigned part, const struct ring_processes *p, bool *is_other) {
    bool has_new = false;
    for (uint32_t i = 0; i < p->count; i++) has_new |= !is_known(h, part, p->of[i].pid);
    *is_other = has_new || p->count != h->known[part].count;
    return has_new;
}

static bool take_list(struct hunting *h, unsigned part, const struct ring_processes *p, int64_t now_ns) {
    bool is_other, has_new = compare(h, part, p, &is_other);
    for (uint32_t i = 0; has_new && i < p->count; i++)
        if (!is_known(h, part, p->of[i].pid)) hunt_found(&h->hunt, p->of[i].pid, now_ns);
    if (!is_other) return false;
    h->known[part].count = p->count;
    for (uint32_t i = 0; i < p->count; i++) h->known[part].pid[i] = p->of[i].pid;
    return has_new;
}

void hunting_note(struct hunting *h, unsigned part, const struct ring_processes *p) {
    int64_t now_ns = clock_boot_ns();
    take_told(h);
    if (take_list(h, part, p, now_ns)) hunt_looked(&h->hunt, now_ns, 0, true);
}

bool hunting_look(struct hunting *h, const struct hunting_part *of, struct board *b) {
    struct ring_processes p;
    struct sample s;
    memset(&s, 0, sizeof s);
    memset(&p, 0, sizeof p);
    s.boot_ns = clock_boot_ns();
    int64_t cpu_ns = clock_thread_cpu_ns();
    int r = gpu_read(of->gpu, (unsigned)h->call, &s, &p);
    bool is_other = false;
    if (r >= 0) (void)compare(h, of->part, &p, &is_other);
    int64_t now_ns = clock_boot_ns();
    bool has_new = is_other && take_list(h, of->part, &p, now_ns);
    hunt_looked(&h->hunt, now_ns, clock_thread_cpu_ns() - cpu_ns, has_new);
    board_looked(b, of->device, is_other ? &p : NULL);
    return r >= 0;
}
