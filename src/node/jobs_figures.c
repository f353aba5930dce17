/* What runs use while they run. GPU figures are sums over the task table, which outlives us: a node that is started anew goes
 * on where it was. What was told once is never taken back, though tasks that ended long ago may have left the table. CPU,
 * memory and disk are those of the processes below a run's shim, or below a container's first process; one look at /proc serves
 * all runs, and is made less often where it is dear. What a container's cgroups count beyond that, counts. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "gpumgr/tasks.h"
#include "model/belonging.h"
#include "node/cgroup_use.h"
#include "node/jobs_own.h"
#include "node/tasks.h"
#include "run/tree.h"

#define EVERY_NS (2 * NS_PER_S)
#define LOOK_SHARE 500 /* a look at all processes takes at most this part of the time */

static struct { int64_t next_ns, look_ns; } self;

/* ---- the GPUs ---- */

static struct run *run_of(const struct gpumgr_task *k) {
    struct wire_run_key key;
    struct owner owner;
    if (k->kind == BELONGS_TO_JOB)
        return run_parse_name(k->container_id, &key) ? runs_find(&jobs_own.runs, &key) : NULL;
    if (!*k->container || !owners_of_container(k->container, &owner)) return NULL;
    return run_parse_name(owner.name, &key) ? runs_find(&jobs_own.runs, &key) : NULL;
}

static void begin_sum(struct run *run) {
    run->sum = (struct task_figures){.is_measured = tasks_sees((const char(*)[96])run->uuid, run->gpus)};
}

static void add_task(void *ctx, const struct gpumgr_task *k) {
    struct run *run = run_of(k);
    if (!run) return;
    run->sum.is_measured = true;
    run->sum.gpu_seconds += k->gpu_seconds;
    run->sum.energy_joules += k->energy_joules;
    if (k->state != GPUMGR_TASK_ENDED) run->sum.memory_bytes += k->memory_bytes;
    if (k->memory_peak_bytes > run->sum.memory_peak_bytes) run->sum.memory_peak_bytes = k->memory_peak_bytes;
}

static void at_least(uint64_t *to, uint64_t by) {
    if (by > *to) *to = by;
}

static void take_sum(struct run *run, int64_t now_ns) {
    struct wire_figures *u = &run->used;
    double run_s = (double)(now_ns - run->start_boot_ns) * 1e-9;
    u->gpu_seconds = fmax(u->gpu_seconds, run->sum.gpu_seconds);
    u->energy_joules = fmax(u->energy_joules, run->sum.energy_joules);
    u->memory_bytes = run->sum.memory_bytes;
    at_least(&u->memory_peak_bytes, run->sum.memory_peak_bytes);
    at_least(&u->memory_peak_bytes, run->said.memory_peak_bytes); /* what judging saw between two of these rounds */
    at_least(&u->memory_peak_bytes, u->memory_bytes);
    if (!u->memory_total_bytes) u->memory_total_bytes = tasks_memory_total((const char(*)[96])run->uuid, run->gpus);
    bool is_measured = run->sum.is_measured || u->gpu_seconds > 0;
    u->gpu_ratio = run->start_boot_ns && run->gpus && run_s > 0 && is_measured
                       ? fmin(1, u->gpu_seconds / (run_s * run->gpus))
                       : NAN;
    if (!tasks_knows_use((const char(*)[96])run->uuid, run->gpus)) u->gpu_ratio = u->gpu_seconds = NAN;
}

/* ---- the processes ---- */

static void more_of_container(pid_t first, const char *id, struct tree_use *use) {
    struct cgroup_use of;
    cgroup_use(first, id, &of);
    if (of.cpu_s > use->cpu_s) use->cpu_s = of.cpu_s;
    if (of.read_bytes == UINT64_MAX) return;
    if (use->read_bytes == UINT64_MAX) use->read_bytes = use->written_bytes = 0;
    at_least(&use->read_bytes, of.read_bytes);
    at_least(&use->written_bytes, of.written_bytes);
}

static void take_processes(struct run *run, struct tree *t) {
    struct tree_use use;
    char container[OWNERS_CONTAINER], id[ENGINE_ID_HEX + 1];
    pid_t first = run->shim;
    if (!run->shim) return;
    if (run->is_image) {
        owners_container(run->name, container);
        if ((first = tasks_container(container, id)) <= 0) return; /* it is being made, or goes */
    }
    for (size_t i = 0; i < t->count; i++) t->of[i].is_ours = t->of[i].pid == first;
    tree_take_below(t);
    tree_used(t, run->shim, &use);
    if (!use.processes && run->is_image) return; /* it began or ended after the look */
    if (run->is_image) more_of_container(first, id, &use);
    run->used.cpu_seconds = fmax(run->used.cpu_seconds, use.cpu_s);
    run->used.host_bytes = use.host_bytes;
    if (use.read_bytes == UINT64_MAX) return;
    if (run->used.read_bytes == UINT64_MAX) run->used.read_bytes = run->used.written_bytes = 0;
    at_least(&run->used.read_bytes, use.read_bytes);
    at_least(&run->used.written_bytes, use.written_bytes);
}

/* ---- all of them ---- */

static bool is_on(const struct run *run) {
    return run->start_boot_ns && (run->said.state == RUN_RUNNING || run->said.state == RUN_ENDING);
}

static void begin(struct run *run) {
    if (run->used.key.attempt) return;
    run->used = (struct wire_figures){.key = run->key, .cpu_seconds = NAN, .gpu_ratio = NAN};
    run->used.read_bytes = run->used.written_bytes = UINT64_MAX;
}

static void take_log(struct run *run) {
    char path[340];
    struct stat st;
    run_path(&jobs_own.runs, run->name, "log", path, sizeof path);
    if (stat(path, &st) == 0) run->used.log_bytes = (uint64_t)st.st_size;
}

#define EACH_ON(run)                                                                                                   \
    for (unsigned b_ = 0; b_ < RUNS_BUCKETS; b_++)                                                                     \
        for (struct run *run = jobs_own.runs.bucket[b_]; run; run = run->next)                                         \
            if (is_on(run))

void jobs_figures(int64_t now_ns) {
    static struct tree processes;
    uint32_t count = 0;
    if (now_ns < self.next_ns) return;
    self.next_ns = now_ns + EVERY_NS;
    EACH_ON(run) {
        begin(run);
        begin_sum(run);
        count++;
    }
    if (!count || !jobs_own.is_linked) return;
    tasks_each(add_task, NULL);
    bool looks = now_ns >= self.look_ns;
    if (looks) (void)tree_scan(&processes);
    EACH_ON(run) {
        take_sum(run, now_ns);
        take_log(run);
        if (looks) take_processes(run, &processes);
    }
    if (looks) self.look_ns = now_ns + LOOK_SHARE * (clock_boot_ns() - now_ns);
    struct buf *b = jobs_say_begin();
    size_t from = wire_begin_figures(b, count);
    EACH_ON(run) wire_add_figures(b, &run->used);
    wire_end(b, from);
    jobs_say_end();
}

void jobs_figures_now(int64_t now_ns) {
    self.next_ns = 0;
    jobs_figures(now_ns);
}

void jobs_add_figures(const struct run *run, struct wire_run *said) {
    const struct wire_figures *u = &run->used;
    if (!u->key.attempt) return;
    said->gpu_seconds = u->gpu_seconds;
    said->energy_joules = u->energy_joules;
    said->gpu_ratio = u->gpu_ratio;
    if (isfinite(u->cpu_seconds)) said->cpu_seconds = u->cpu_seconds;
    said->memory_peak_bytes = u->memory_peak_bytes;
    said->memory_total_bytes = u->memory_total_bytes;
}

void jobs_last_figures(struct run *run) {
    struct task_figures f;
    begin(run);
    tasks_figures(run->name, (const char(*)[96])run->uuid, run->gpus, &f);
    run->sum = f;
    run->sum.memory_bytes = 0;
    run->used.memory_total_bytes = f.memory_total_bytes;
    take_sum(run, clock_boot_ns());
    if (!run->is_image) run->used.cpu_seconds = NAN; /* its own records have it, exactly */
    jobs_add_figures(run, &run->said);
}
