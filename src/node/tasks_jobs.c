/* What the tasks of a run did. The task table has all of them, also those that ended before this node began. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "model/belonging.h"
#include "node/owners.h"
#include "node/tasks.h"
#include "node/tracks.h"

bool track_is_ours(const struct track *t) {
    struct owner e;
    return t->k.kind == BELONGS_TO_JOB || owners_of_container(t->k.container, &e);
}

/* A card that is cut is given to nobody: its instances are. */
bool track_is_stray(const struct track *t, const struct inventory *device, char run[OWNERS_NAME]) {
    struct owner e;
    if (device->mig_mode == 1) return false;
    if (t->k.kind == BELONGS_TO_JOB)
        snprintf(e.name, sizeof e.name, "%.47s", t->k.container_id);
    else if (!owners_of_container(t->k.container, &e))
        return false;
    if (run) memcpy(run, e.name, OWNERS_NAME);
    return !owners_gives(e.name, device->uuid);
}

static int stray_of(const struct track *t) {
    for (unsigned i = 0; i < tracker.rings.count; i++) {
        const struct rings_one *one = &tracker.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++) {
            int bit = tracker.bit[one->first + d];
            const struct inventory *inv = ring_inventory(&one->ring, d);
            bool is_on = bit >= 0 && t->listed[bit / 64] >> (bit % 64) & 1;
            if (is_on && track_is_stray(t, inv, NULL)) return inv->index;
        }
    }
    return -1;
}

static bool is_of(const struct gpumgr_task *k, const char *run) {
    if (k->kind == BELONGS_TO_JOB) return strcmp(k->container_id, run) == 0;
    char name[OWNERS_CONTAINER];
    owners_container(run, name);
    return strcmp(k->container, name) == 0;
}

static void add_live(const char *run, struct task_figures *ret) {
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (const struct track *t = tracker.bucket[b]; t; t = t->next) {
            if (!t->is_live || !is_of(&t->k, run)) continue;
            ret->memory_bytes += t->memory_now;
            if (t->used_ns > ret->used_ns) ret->used_ns = t->used_ns;
        }
}

static uint64_t memory_of(const char *uuid, int64_t now_ns) {
    static struct latest latest; /* large; under the lock */
    for (unsigned i = 0; i < tracker.rings.count; i++) {
        const struct rings_one *one = &tracker.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++)
            if (strcmp(ring_inventory(&one->ring, d)->uuid, uuid) == 0 && ring_latest(&one->ring, d, &latest) &&
                latest_has(&latest, METRIC_MEMORY_TOTAL, now_ns))
                return (uint64_t)latest.of[METRIC_MEMORY_TOTAL].value;
    }
    return 0;
}

uint64_t tasks_memory_total(const char (*uuids)[96], unsigned gpus) {
    uint64_t bytes = 0;
    pthread_mutex_lock(&tracker.lock);
    for (unsigned g = 0; g < gpus; g++) bytes += memory_of(uuids[g], clock_boot_ns());
    pthread_mutex_unlock(&tracker.lock);
    return bytes;
}

bool tasks_knows_use(const char (*uuids)[96], unsigned gpus) {
    static struct latest latest; /* large; under the lock */
    bool knows = true;
    pthread_mutex_lock(&tracker.lock);
    for (unsigned i = 0; i < tracker.rings.count; i++) {
        const struct rings_one *one = &tracker.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++) {
            const struct inventory *inv = ring_inventory(&one->ring, d);
            for (unsigned g = 0; g < gpus && inv->parent >= 0; g++)
                if (strcmp(inv->uuid, uuids[g]) == 0 && ring_latest(&one->ring, d, &latest))
                    knows &= latest_has(&latest, METRIC_ACTIVE_GRAPHICS, clock_boot_ns());
        }
    }
    pthread_mutex_unlock(&tracker.lock);
    return knows;
}

static bool has_list(const char *uuid) {
    for (uint32_t bit = 0; bit < tracker.table.head->gpu_count && bit < TRACKS_GPUS; bit++)
        if (strcmp(gpumgr_task_gpu(tracker.table.head, bit)->uuid, uuid) == 0) return tracker.gpu[bit].has_list;
    return false;
}

bool tasks_sees(const char (*uuids)[96], unsigned gpus) {
    unsigned seen = 0;
    pthread_mutex_lock(&tracker.lock);
    for (unsigned g = 0; g < gpus && tracker.knows_pids; g++) seen += has_list(uuids[g]);
    pthread_mutex_unlock(&tracker.lock);
    return gpus && seen == gpus;
}

void tasks_now(const char *run, struct task_figures *ret) {
    *ret = (struct task_figures){0};
    pthread_mutex_lock(&tracker.lock);
    add_live(run, ret);
    pthread_mutex_unlock(&tracker.lock);
}

int tasks_stray(const char *run) {
    int index = -1;
    pthread_mutex_lock(&tracker.lock);
    for (unsigned b = 0; b < TRACKS_BUCKETS && index < 0; b++)
        for (const struct track *t = tracker.bucket[b]; t && index < 0; t = t->next)
            if (t->is_live && !t->gone_ns && is_of(&t->k, run)) index = stray_of(t);
    pthread_mutex_unlock(&tracker.lock);
    return index;
}

void tasks_of_container(const char *id, struct task_figures *ret) {
    *ret = (struct task_figures){0};
    pthread_mutex_lock(&tracker.lock);
    ret->is_measured = groups_find(&tracker.groups, id) != NULL;
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (const struct track *t = tracker.bucket[b]; t; t = t->next) {
            if (!t->is_live || strcmp(t->k.container_id, id) != 0) continue;
            ret->running++;
            ret->memory_bytes += t->memory_now;
            if (t->used_ns > ret->used_ns) ret->used_ns = t->used_ns;
        }
    pthread_mutex_unlock(&tracker.lock);
}

void tasks_figures(const char *run, const char (*uuids)[96], unsigned gpus, struct task_figures *ret) {
    struct gpumgr_task k;
    *ret = (struct task_figures){.is_measured = tasks_sees(uuids, gpus)};
    pthread_mutex_lock(&tracker.lock);
    add_live(run, ret);
    for (uint32_t i = 0; i < TABLE_SLOTS; i++) {
        if (!table_get(&tracker.table, i, &k) || !is_of(&k, run)) continue;
        ret->is_measured = true;
        ret->gpu_seconds += k.gpu_seconds;
        ret->energy_joules += k.energy_joules;
        if (k.memory_peak_bytes > ret->memory_peak_bytes) ret->memory_peak_bytes = k.memory_peak_bytes;
    }
    pthread_mutex_unlock(&tracker.lock);
    ret->memory_total_bytes = tasks_memory_total(uuids, gpus);
}

void tasks_each(void (*each)(void *ctx, const struct gpumgr_task *k), void *ctx) {
    struct gpumgr_task k;
    for (uint32_t i = 0; i < TABLE_SLOTS; i++)
        if (table_get(&tracker.table, i, &k)) each(ctx, &k);
}

struct first_of {
    const char *container;
    pid_t pid;
    char id[ENGINE_ID_HEX + 1];
};

static void on_run(void *ctx, const struct engine_facts *f, const char *labels) {
    struct first_of *w = ctx;
    if (strcmp(f->name, w->container) != 0) return;
    w->pid = f->pid;
    memcpy(w->id, f->id, sizeof f->id);
}

pid_t tasks_container(const char *container, char ret_id[ENGINE_ID_HEX + 1]) {
    struct first_of w = {.container = container};
    pthread_mutex_lock(&tracker.lock);
    if (tracker.engine) engine_each_with(tracker.engine, ENGINE_RUN_LABEL, on_run, &w);
    pthread_mutex_unlock(&tracker.lock);
    memcpy(ret_id, w.id, sizeof w.id);
    return w.pid;
}

void tasks_gpu_event(int severity, const char *kind, int device, int32_t pid, const char *text) {
    pthread_mutex_lock(&tracker.lock);
    tracker_event(severity, kind, device, pid, "%s", text);
    pthread_mutex_unlock(&tracker.lock);
}

void tasks_event(int severity, const char *kind, int32_t pid, const char *text) {
    tasks_gpu_event(severity, kind, -1, pid, text);
}
