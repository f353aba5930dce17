/* Tasks as frames for the server: what changed since the mark that it has, in the order of the changes. */
#include <string.h>

#include "base/clock.h"
#include "model/wire_device.h"
#include "model/wire_task.h"
#include "node/names.h"
#include "node/tasks.h"
#include "node/tracks.h"

void tasks_welcome(int64_t task_mark, int64_t event_mark) {
    pthread_mutex_lock(&tracker.lock);
    tracker.task_sent = task_mark;
    tracker.event_sent = event_mark;
    tracker_index();
    tracker.change_next = 0;
    memset(tracker.group_told, 0, sizeof tracker.group_told);
    pthread_mutex_unlock(&tracker.lock);
}

static void put_gpus(const struct gpumgr_task *k, struct wire_task *w) {
    for (uint32_t bit = 0; bit < tracker.table.head->gpu_count && w->gpus < WIRE_TASK_GPUS_MAX; bit++) {
        if (!gpumgr_task_is_on(k, bit)) continue;
        const struct gpumgr_gpu *g = gpumgr_task_gpu(tracker.table.head, bit);
        memcpy(w->gpu[w->gpus].uuid, g->uuid, sizeof g->uuid);
        w->gpu[w->gpus].gi = g->gi;
        w->gpu[w->gpus++].ci = g->ci;
    }
}

static void put_text(char *to, size_t room, const char *from) {
    size_t n = from ? strlen(from) : 0; /* texts of the table end: table_get */
    if (n >= room) n = room - 1;
    if (n) memcpy(to, from, n);
    to[n] = 0;
}

/* A short task has ended before anybody could ask who it was: but whose it was is known. */
static void put_user(uint32_t slot, const struct gpumgr_task *k, struct wire_task *w) {
    put_text(w->user, sizeof w->user, tracker.said[slot].user);
    if (w->user[0] || k->uid == UINT32_MAX || names_user(k->uid, w->user, sizeof w->user)) return;
    if (tracker.unnamed_count < TRACKS_UNNAMED) tracker.unnamed[tracker.unnamed_count++] = slot;
}

static void frame_of(uint32_t slot, const struct gpumgr_task *k, struct wire_task *w) {
    memset(w, 0, sizeof *w);
    w->mark = k->mark;
    w->task = (struct task){
        .key = {k->pid, k->ticks},
        .state = k->state,
        .source = k->source,
        .verdict = k->verdict,
        .is_warned = (k->flags & GPUMGR_TASK_WARNED) != 0,
        .opened_ns = k->opened_ns,
        .start_ns = k->start_ns,
        .end_ns = k->end_ns,
        .deadline_ns = k->deadline_ns,
        .float_ns = k->float_ns,
        .expected_ns = k->expected_ns
    };
    w->flags = k->flags & (WIRE_TASK_END_UNKNOWN | WIRE_TASK_FOUND_LATE);
    w->opened_real_ns = k->opened_real_ns;
    w->start_real_ns = k->start_real_ns;
    w->end_real_ns = k->end_real_ns;
    w->period_ns = k->period_ns;
    w->periods = k->periods;
    w->period_hit = k->periods_kept;
    w->again = k->again;
    w->ns_pid = k->ns_pid;
    w->uid = k->uid;
    w->whose = (struct belonging){.kind = (enum belonging_kind)k->kind, .uid = -1, .slurm_job = k->slurm_job};
    put_text(w->whose.id, sizeof w->whose.id, k->container_id);
    put_text(w->whose.pod, sizeof w->whose.pod, k->pod);
    put_text(w->comm, sizeof w->comm, k->comm);
    put_text(w->name, sizeof w->name, k->container);
    put_text(w->image, sizeof w->image, k->image);
    put_user(slot, k, w);
    put_text(w->command, sizeof w->command, tracker.said[slot].command);
    w->gpu_seconds = k->gpu_seconds;
    w->energy_joules = k->energy_joules;
    w->memory_bytes = k->memory_bytes;
    w->memory_peak_bytes = k->memory_peak_bytes;
    put_gpus(k, w);
}

static void put_tasks(struct uplink *u, size_t most_bytes) {
    static struct wire_task w;
    struct gpumgr_task k;
    if (tracker.changes - tracker.change_next > TRACKS_CHANGES) { /* too far behind: the table has what is left of it */
        tracker_index();
        tracker.change_next = 0;
    }
    for (; tracker.change_next < tracker.changes && uplink_queued(u) < most_bytes; tracker.change_next++) {
        uint64_t i = tracker.change_next % TRACKS_CHANGES;
        int64_t mark = tracker.change[i].mark;
        uint32_t slot = tracker.change[i].slot;
        if (mark <= tracker.task_sent || !table_get(&tracker.table, slot, &k) || k.mark != mark) continue;
        frame_of(slot, &k, &w);
        wire_put_task(&u->out, &w);
        tracker.task_sent = mark;
    }
}

void tasks_put_prompt(struct uplink *u, uint16_t source, size_t most_bytes) {
    struct event ev;
    int64_t mark;
    pthread_mutex_lock(&tracker.lock);
    put_tasks(u, most_bytes);
    while (uplink_queued(u) < most_bytes && table_event(&tracker.table, tracker.event_sent, &mark, &ev)) {
        wire_put_event(&u->out, source, mark, &ev);
        tracker.event_sent = mark;
    }
    pthread_mutex_unlock(&tracker.lock);
}

static void put_containers(struct uplink *u, size_t most_bytes) {
    static struct wire_container c;
    for (unsigned i = 0; i < GROUPS_MAX && uplink_queued(u) < most_bytes; i++) {
        const struct group *g = &tracker.groups.of[i];
        if (!g->id[0] || g->version == tracker.group_told[i]) continue;
        tracker.group_told[i] = g->version;
        group_frame(g, &c);
        _Static_assert(sizeof c.labels >= ENGINE_LABELS_MAX, "labels fit");
        if (tracker.engine) engine_labels(tracker.engine, g->id, c.labels);
        wire_put_container(&u->out, &c);
    }
}

static void put_uses(struct uplink *u) {
    struct wire_uses list = {.boot_ns = clock_boot_ns()};
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (const struct track *t = tracker.bucket[b]; t; t = t->next)
            list.count = (uint16_t)(list.count + (t->is_live && list.count < WIRE_USES_MAX));
    if (!list.count) return;
    size_t from = wire_begin_uses(&u->out, &list);
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (const struct track *t = tracker.bucket[b]; t; t = t->next) {
            if (!t->is_live || !list.count) continue;
            struct wire_use use = {.key = t->task.key,
                                   .gpu_seconds = t->k.gpu_seconds,
                                   .energy_joules = t->k.energy_joules,
                                   .memory_bytes = t->k.memory_bytes,
                                   .memory_peak_bytes = t->k.memory_peak_bytes,
                                   .sm_share = t->sm_now};
            wire_add_use(&u->out, &use);
            list.count--;
        }
    wire_end(&u->out, from);
}

void tasks_put_round(struct uplink *u, size_t most_bytes) {
    struct wire_node n = {0};
    pthread_mutex_lock(&tracker.lock);
    put_containers(u, most_bytes);
    put_uses(u);
    n.state = tracker.state;
    n.slack = tracker.slack;
    pthread_mutex_unlock(&tracker.lock);
    node_state_words(&n.state, n.reasons, sizeof n.reasons);
    wire_put_node(&u->out, &n);
}
