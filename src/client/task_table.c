#include "client/task_table.h"

#include <errno.h>
#include <stdio.h>

#define SLOTS_MAX 65536

/* The file is another program's: what it says of its own sizes must fit into it. */
static bool is_sound(const struct gpumgr_tasks *h, size_t size) {
    if (h->magic != GPUMGR_TASKS_MAGIC || h->version != GPUMGR_TASKS_VERSION) return false;
    if (h->slot_bytes < sizeof(struct gpumgr_task) || h->slot_bytes % 8 || h->slots_at % 8 || h->slot_count > SLOTS_MAX)
        return false;
    return h->slots_at + (uint64_t)h->slot_count * h->slot_bytes <= size &&
           h->gpus_at + GPUMGR_TASKS_GPUS_MAX * sizeof(struct gpumgr_gpu) <= size;
}

static int map(struct task_table *t, struct error *e) {
    int r = shm_open_file(t->path, false, sizeof(struct gpumgr_tasks), &t->shm, e);
    if (r == -ENOENT) return fail(e, r, "no gpumgr has followed tasks here yet; `gpumgr up` does");
    if (r < 0) return r;
    if (t->shm.mem && is_sound(t->shm.mem, t->shm.size)) return 0;
    task_table_close(t);
    return fail(e, -EPROTO, "%s: is of another version of gpumgr", t->path);
}

int task_table_open(struct task_table *t, const struct instance *i, struct error *e) {
    *t = (struct task_table){0};
    instance_path(i, t->path, sizeof t->path, "tasks");
    return map(t, e);
}

void task_table_close(struct task_table *t) {
    shm_done(&t->shm);
    t->shm = (struct shm){0};
}

bool task_table_container(struct task_table *t, uint32_t pid, uint64_t ticks, char *ret, size_t room) {
    struct error ignored;
    if (t->shm.mem && shm_is_replaced(&t->shm, t->path)) task_table_close(t);
    if (!t->shm.mem && (!*t->path || map(t, &ignored) < 0)) return false;
    const struct gpumgr_tasks *head = task_table_head(t);
    for (uint32_t i = 0; i < head->slot_count; i++) {
        const struct gpumgr_task *at =
            (const void *)((const char *)head + head->slots_at + (uint64_t)i * head->slot_bytes);
        if (__atomic_load_n(&at->pid, __ATOMIC_RELAXED) != (int32_t)pid) continue; /* most of them: not copied */
        struct gpumgr_task k;
        if (!gpumgr_task_read(head, i, &k) || k.pid != (int32_t)pid || k.ticks != ticks || !k.container[0]) continue;
        snprintf(ret, room, "%.*s", (int)sizeof k.container - 1, k.container);
        return true;
    }
    return false;
}
