#include "node/table.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"

struct table_event {
    int64_t mark; /* 0: empty, or being written */
    struct event of;
};

_Static_assert(sizeof(struct gpumgr_task) % 8 == 0 && sizeof(struct gpumgr_gpu) % 8 == 0, "slots are whole words");
_Static_assert(sizeof(struct event) % 8 == 0, "so are events");

#define GPUS_AT sizeof(struct gpumgr_tasks)
#define SLOTS_AT (GPUS_AT + GPUMGR_TASKS_GPUS_MAX * sizeof(struct gpumgr_gpu))
#define EVENTS_AT (SLOTS_AT + TABLE_SLOTS * sizeof(struct gpumgr_task))
#define TABLE_BYTES (EVENTS_AT + TABLE_EVENTS * sizeof(struct table_event))

static char *at(const struct table *t, size_t offset) { return (char *)t->shm.mem + offset; }
static struct gpumgr_task *slot_of(const struct table *t, uint32_t i) {
    return (struct gpumgr_task *)(void *)at(t, SLOTS_AT) + i;
}
static struct gpumgr_gpu *gpus_of(const struct table *t) { return (struct gpumgr_gpu *)(void *)at(t, GPUS_AT); }
static struct table_event *events_of(const struct table *t) { return (struct table_event *)(void *)at(t, EVENTS_AT); }

static bool is_ours(const struct shm *s, const char *boot_id) {
    const struct gpumgr_tasks *h = s->mem;
    return s->size == TABLE_BYTES && h->magic == GPUMGR_TASKS_MAGIC && h->version == GPUMGR_TASKS_VERSION &&
           h->slot_bytes == sizeof(struct gpumgr_task) && h->slot_count == TABLE_SLOTS && h->slots_at == SLOTS_AT &&
           h->gpus_at == GPUS_AT && h->gpu_count <= GPUMGR_TASKS_GPUS_MAX &&
           strncmp(h->boot_id, boot_id, sizeof h->boot_id) == 0;
}

/* What a writer that was killed in the middle left is as good as nothing: that slot is empty. The next to be taken is the one
 * after the newest beginning. */
static void mend(struct table *t) {
    int64_t newest = 0;
    for (uint32_t i = 0; i < TABLE_SLOTS; i++) {
        struct gpumgr_task *k = slot_of(t, i);
        if (k->turn & 1) k->turn = 0;
        if (!k->turn) continue;
        if (k->mark > t->mark) t->mark = k->mark;
        if (k->start_ns > newest) {
            newest = k->start_ns;
            t->next = i + 1;
        }
    }
    for (uint32_t i = 0; i < TABLE_EVENTS; i++)
        if (events_of(t)[i].mark > t->mark) t->mark = events_of(t)[i].mark;
    for (uint32_t i = 0; i < t->head->gpu_count; i++) gpus_of(t)[i].uuid[sizeof gpus_of(t)[i].uuid - 1] = 0;
}

static int make(struct table *t, const char *path, const char *boot_id, struct error *e) {
    int r = shm_create(path, TABLE_BYTES, 0644, &t->shm, e);
    if (r < 0) return r;
    t->head = t->shm.mem;
    *t->head = (struct gpumgr_tasks){.magic = GPUMGR_TASKS_MAGIC,
                                     .version = GPUMGR_TASKS_VERSION,
                                     .slot_bytes = sizeof(struct gpumgr_task),
                                     .slot_count = TABLE_SLOTS,
                                     .slots_at = SLOTS_AT,
                                     .gpus_at = GPUS_AT};
    memcpy(t->head->boot_id, boot_id, strnlen(boot_id, sizeof t->head->boot_id - 1));
    return shm_publish(path, e);
}

int table_open(struct table *t, const char *path, const char *boot_id, struct error *e) {
    *t = (struct table){0};
    int r = shm_open_file(path, true, TABLE_BYTES, &t->shm, e);
    if (r >= 0 && is_ours(&t->shm, boot_id)) {
        t->head = t->shm.mem;
        mend(t);
    } else {
        shm_done(&t->shm);
        r = make(t, path, boot_id, e);
    }
    if (r < 0) return r;
    t->head->writer_pid = getpid();
    return 0;
}

void table_close(struct table *t) {
    shm_done(&t->shm);
    *t = (struct table){0};
}

bool table_get(const struct table *t, uint32_t slot, struct gpumgr_task *ret) {
    if (!gpumgr_task_read(t->head, slot, ret)) return false;
    ret->comm[sizeof ret->comm - 1] = ret->container_id[sizeof ret->container_id - 1] = 0;
    ret->container[sizeof ret->container - 1] = ret->image[sizeof ret->image - 1] = ret->pod[sizeof ret->pod - 1] = 0;
    return true;
}

static int64_t next_mark(struct table *t, int64_t now_ns) {
    t->mark = now_ns > t->mark ? now_ns : t->mark + 1;
    return t->mark;
}

void table_refresh(struct table *t, uint32_t slot, struct gpumgr_task *k) {
    uint64_t *to = (uint64_t *)(void *)slot_of(t, slot);
    const uint64_t *from = (const uint64_t *)(const void *)k;
    uint64_t turn = __atomic_load_n(to, __ATOMIC_RELAXED);
    __atomic_store_n(to, turn + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (size_t i = 1; i < sizeof *k / 8; i++) __atomic_store_n(to + i, from[i], __ATOMIC_RELAXED);
    __atomic_store_n(to, turn + 2, __ATOMIC_RELEASE);
    k->turn = turn + 2;
}

void table_put(struct table *t, uint32_t slot, struct gpumgr_task *k, int64_t now_ns) {
    k->mark = next_mark(t, now_ns);
    table_refresh(t, slot, k);
}

void table_tell(struct table *t) {
    __atomic_add_fetch(&t->head->changes, 1, __ATOMIC_RELEASE);
    shm_wake((_Atomic uint32_t *)(void *)&t->head->changes);
}

int32_t table_take(struct table *t, const bool *is_live) {
    for (uint32_t n = 0; n < TABLE_SLOTS; n++) {
        uint32_t i = (t->next + n) % TABLE_SLOTS;
        if (is_live[i]) continue;
        t->next = i + 1;
        t->dropped += slot_of(t, i)->turn != 0;
        return (int32_t)i;
    }
    return -1;
}

int table_gpu(struct table *t, const char *uuid, uint32_t gi, uint32_t ci) {
    struct gpumgr_gpu *gpus = gpus_of(t);
    uint32_t n = t->head->gpu_count;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(gpus[i].uuid, uuid) == 0) return (int)i;
    if (n >= GPUMGR_TASKS_GPUS_MAX || strlen(uuid) >= sizeof gpus[n].uuid) return -1;
    memcpy(gpus[n].uuid, uuid, strlen(uuid) + 1);
    gpus[n].gi = gi;
    gpus[n].ci = ci;
    __atomic_store_n(&t->head->gpu_count, n + 1, __ATOMIC_RELEASE);
    return (int)n;
}

void table_put_event(struct table *t, const struct event *ev, int64_t now_ns) {
    struct table_event *oldest = events_of(t);
    for (uint32_t i = 1; i < TABLE_EVENTS; i++)
        if (events_of(t)[i].mark < oldest->mark) oldest = &events_of(t)[i];
    oldest->mark = 0;
    atomic_signal_fence(memory_order_seq_cst); /* killed here, it is empty */
    oldest->of = *ev;
    atomic_signal_fence(memory_order_seq_cst);
    oldest->mark = next_mark(t, now_ns);
}

bool table_event(const struct table *t, int64_t after, int64_t *ret_mark, struct event *ret) {
    const struct table_event *best = NULL;
    for (uint32_t i = 0; i < TABLE_EVENTS; i++) {
        const struct table_event *one = &events_of(t)[i];
        if (one->mark > after && (!best || one->mark < best->mark)) best = one;
    }
    if (!best) return false;
    *ret_mark = best->mark;
    *ret = best->of;
    ret->kind[sizeof ret->kind - 1] = ret->text[sizeof ret->text - 1] = 0;
    return true;
}
