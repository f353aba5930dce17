#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "client/ps.h"
#include "client/task_table.h"
#include "client/top_proc.h"
#include "model/task_json.h"

#define CMDLINE_MAX 511

/* ---- a slot as the task that the server would be told of ---- */

static void take_user(struct wire_task *t) {
    static uid_t last = (uid_t)-1;
    static char name[sizeof t->user];
    if (t->uid == UINT32_MAX) return;
    if (t->uid != last) {
        const struct passwd *who = getpwuid(t->uid);
        snprintf(name, sizeof name, "%s", who ? who->pw_name : "");
        if (!who) snprintf(name, sizeof name, "%u", t->uid);
        last = t->uid;
    }
    snprintf(t->user, sizeof t->user, "%s", name);
}

/* Of a process that still is the one; others keep their short name. */
static void take_command(struct wire_task *t) {
    char path[40];
    AUTO(buf_done) struct buf line = {0};
    struct error ignored;
    if (t->task.state == TASK_ENDED || top_proc_start((uint32_t)t->task.key.pid) != t->task.key.ticks) return;
    snprintf(path, sizeof path, "/proc/%d/cmdline", t->task.key.pid);
    if (file_read(path, 1 << 20, &line, &ignored) < 0 || !line.len) return;
    size_t n = line.len < CMDLINE_MAX ? line.len : CMDLINE_MAX;
    for (size_t i = 0; i < n; i++) t->command[i] = line.s[i] ? line.s[i] : ' ';
    while (n && t->command[n - 1] == ' ') n--;
    t->command[n] = 0;
}

static void take_gpus(const struct gpumgr_tasks *head, const struct gpumgr_task *k, struct wire_task *t) {
    for (uint32_t i = 0; i < head->gpu_count && i < GPUMGR_TASKS_GPUS_MAX && t->gpus < WIRE_TASK_GPUS_MAX; i++) {
        if (!gpumgr_task_is_on(k, i)) continue;
        const struct gpumgr_gpu *gpu = gpumgr_task_gpu(head, i);
        snprintf(t->gpu[t->gpus].uuid, sizeof t->gpu[0].uuid, "%.*s", (int)sizeof gpu->uuid - 1, gpu->uuid);
        t->gpu[t->gpus].gi = gpu->gi;
        t->gpu[t->gpus++].ci = gpu->ci;
    }
}

static void task_from(const struct gpumgr_tasks *head, const struct gpumgr_task *k, struct wire_task *t) {
    memset(t, 0, sizeof *t);
    t->mark = k->mark;
    t->task = (struct task){
        .key = {k->pid, k->ticks},
        .state = k->state,
        .source = k->source,
        .verdict = k->verdict,
        .opened_ns = k->opened_ns,
        .start_ns = k->start_ns,
        .end_ns = k->end_ns,
        .deadline_ns = k->deadline_ns,
        .float_ns = k->float_ns,
        .expected_ns = k->expected_ns
    };
    t->flags = k->flags;
    t->again = k->again;
    t->opened_real_ns = k->opened_real_ns;
    t->start_real_ns = k->start_real_ns;
    t->end_real_ns = k->end_real_ns;
    t->period_ns = k->period_ns;
    t->periods = k->periods;
    t->period_hit = k->periods_kept;
    t->uid = k->uid;
    t->gpu_seconds = k->gpu_seconds;
    t->energy_joules = k->energy_joules;
    t->memory_bytes = k->memory_bytes;
    t->memory_peak_bytes = k->memory_peak_bytes;
    t->whose.kind = k->kind < BELONGING_KINDS ? (enum belonging_kind)k->kind : BELONGS_TO_NONE;
    t->whose.uid = -1;
    t->whose.slurm_job = k->slurm_job;
    snprintf(t->whose.id, sizeof t->whose.id, "%.*s", (int)sizeof k->container_id - 1, k->container_id);
    snprintf(t->whose.pod, sizeof t->whose.pod, "%.*s", (int)sizeof k->pod - 1, k->pod);
    snprintf(t->comm, sizeof t->comm, "%.*s", (int)sizeof k->comm - 1, k->comm);
    snprintf(t->name, sizeof t->name, "%.*s", (int)sizeof k->container - 1, k->container);
    snprintf(t->image, sizeof t->image, "%.*s", (int)sizeof k->image - 1, k->image);
    take_user(t);
    take_command(t);
    take_gpus(head, k, t);
}

/* ---- all of them ---- */

struct gathering {
    struct wire_task *task; /* oldest first */
    size_t count;
    struct wire_container *container;
    size_t containers;
    int64_t now_ns;
};

static void gathering_done(struct gathering *g) {
    free(g->task);
    free(g->container);
}

static struct wire_container *container_of(struct gathering *g, const struct wire_task *t) {
    for (size_t i = 0; i < g->containers; i++)
        if (strcmp(g->container[i].id, t->whose.id) == 0) return &g->container[i];
    g->container = realloc(g->container, (g->containers + 1) * sizeof *g->container);
    if (!g->container) abort();
    struct wire_container *c = &g->container[g->containers++];
    *c = (struct wire_container){.kind = (uint8_t)t->whose.kind, .priority = INT32_MIN};
    snprintf(c->id, sizeof c->id, "%s", t->whose.id);
    slack_init(&c->slack);
    return c;
}

/* A container as its tasks in the table know it. */
static void container_add(struct gathering *g, const struct wire_task *t) {
    struct wire_container *c = container_of(g, t);
    const struct task *k = &t->task;
    bool is_ended = k->state == TASK_ENDED, is_known = !(t->flags & WIRE_TASK_END_UNKNOWN);
    if (t->name[0]) memcpy(c->name, t->name, sizeof c->name);
    if (t->image[0]) memcpy(c->image, t->image, sizeof c->image);
    if (k->deadline_ns) c->deadline_ns = k->deadline_ns;
    if (t->period_ns) c->period_ns = t->period_ns;
    if (t->periods > c->periods) {
        c->periods = t->periods;
        c->period_hit = t->period_hit;
    }
    c->gpu_seconds += t->gpu_seconds;
    c->energy_joules += t->energy_joules;
    if (is_ended && is_known) {
        slack_end(&c->slack, k->deadline_ns, k->float_ns, false, k->end_ns);
    } else if (!is_ended) {
        c->running++;
        c->memory_bytes += t->memory_bytes;
        if (k->deadline_ns && task_left_ns(k, g->now_ns) < 0) slack_miss(&c->slack, k->start_ns + k->deadline_ns);
    }
    c->state = c->running ? CONTAINER_RUNNING : CONTAINER_UNKNOWN;
}

static int by_start(const void *a, const void *b) {
    const struct task *x = &((const struct wire_task *)a)->task, *y = &((const struct wire_task *)b)->task;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void gather(const struct gpumgr_tasks *head, struct gathering *g) {
    size_t room = 0;
    for (uint32_t i = 0; i < head->slot_count; i++) {
        struct gpumgr_task k;
        if (!gpumgr_task_read(head, i, &k)) continue;
        if (g->count == room) {
            room = room ? 2 * room : 64;
            g->task = realloc(g->task, room * sizeof *g->task);
            if (!g->task) abort();
        }
        task_from(head, &k, &g->task[g->count++]);
    }
    if (g->count) qsort(g->task, g->count, sizeof *g->task, by_start);
    for (size_t i = 0; i < g->count; i++)
        if (task_has_container(&g->task[i])) container_add(g, &g->task[i]);
}

static void put_document(const struct gathering *g, const char *boot_id, bool all, struct buf *b) {
    char node[64] = "";
    int64_t ahead_ns = clock_real_ns() - clock_boot_ns();
    gethostname(node, sizeof node - 1);
    json_open(b, '{');
    json_key(b, "containers");
    json_open(b, '[');
    for (size_t i = 0; i < g->containers; i++) {
        if (!all && !g->container[i].running) continue;
        json_open(b, '{');
        container_json_pairs(b, &g->container[i], node, ahead_ns);
        json_close(b, '}');
    }
    json_close(b, ']');
    json_key(b, "tasks");
    json_open(b, '[');
    for (size_t i = g->count; i > 0; i--)
        if (all || g->task[i - 1].task.state != TASK_ENDED) task_json(b, &g->task[i - 1], node, boot_id, g->now_ns);
    json_close(b, ']');
    json_close(b, '}');
}

int ps_local(const struct instance *i, bool all, struct buf *ret, struct error *e) {
    char boot_id[40];
    AUTO(task_table_close) struct task_table table = {0};
    AUTO(gathering_done) struct gathering g = {.now_ns = clock_boot_ns()};
    int r = task_table_open(&table, i, e);
    if (r < 0) return r;
    const struct gpumgr_tasks *head = task_table_head(&table);
    snprintf(boot_id, sizeof boot_id, "%.*s", (int)sizeof head->boot_id - 1, head->boot_id);
    gather(head, &g);
    put_document(&g, boot_id, all, ret);
    return 0;
}
