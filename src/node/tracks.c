#include "node/tracks.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/ends.h"
#include "node/owners.h"
#include "node/process.h"

#define NO_SLOT UINT32_MAX
#define LATE_NS (50 * NS_PER_MS)   /* one that is found dead within this ended then, near enough */
#define STARTED_NS (15 * NS_PER_S) /* a container that started so lately is why we looked */

struct tracker tracker = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- tracks ---- */

static struct track **place(int32_t pid) {
    struct track **at = &tracker.bucket[(uint32_t)pid % TRACKS_BUCKETS];
    while (*at && (*at)->pid != pid) at = &(*at)->next;
    return at;
}

struct track *track_find(int32_t pid) {
    return *place(pid);
}

bool track_is_listed(const struct track *t) {
    uint64_t any = 0;
    for (size_t i = 0; i < ARRAY_LEN(t->listed); i++) any |= t->listed[i];
    return any != 0;
}

static void close_pidfd(struct track *t) {
    if (t->pidfd >= 0) close(t->pidfd); /* which takes it out of the set of ends */
    t->pidfd = -1;
}

void track_free(struct track *t) {
    struct track **at = place(t->pid);
    if (*at == t) *at = t->next;
    close_pidfd(t);
    if (t->slot != NO_SLOT) {
        tracker.at[t->slot] = NULL;
        tracker.is_live[t->slot] = false;
    }
    free(t);
}

void slot_put(uint32_t slot, struct gpumgr_task *k, int64_t now_ns) {
    table_put(&tracker.table, slot, k, now_ns);
    tracker.change[tracker.changes++ % TRACKS_CHANGES].mark = k->mark;
    tracker.change[(tracker.changes - 1) % TRACKS_CHANGES].slot = slot;
}

void track_put(struct track *t, int64_t now_ns) {
    struct gpumgr_task *k = &t->k;
    if (t->slot == NO_SLOT) return;
    k->state = t->task.state;
    k->source = t->task.source;
    k->verdict = t->task.verdict;
    k->flags = (k->flags & ~(uint32_t)GPUMGR_TASK_WARNED) | (t->task.is_warned ? GPUMGR_TASK_WARNED : 0);
    k->opened_ns = t->task.opened_ns;
    k->start_ns = t->task.start_ns;
    k->end_ns = t->task.end_ns;
    k->deadline_ns = t->task.deadline_ns;
    k->float_ns = t->task.state == TASK_ENDED ? t->task.float_ns : task_left_ns(&t->task, now_ns);
    k->expected_ns = t->task.expected_ns;
    k->periods = t->group ? t->group->period.judged : k->periods;
    k->periods_kept = t->group ? t->group->period.kept : k->periods_kept;
    slot_put(t->slot, k, now_ns);
}

void tracker_event(int severity, const char *kind, int device, int32_t pid, const char *fmt, ...) {
    struct event ev = {
        .boot_ns = clock_boot_ns(), .real_ns = clock_real_ns(), .severity = severity, .device = device, .pid = pid};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ev.text, sizeof ev.text, fmt, ap);
    va_end(ap);
    snprintf(ev.kind, sizeof ev.kind, "%s", kind);
    table_put_event(&tracker.table, &ev, ev.boot_ns);
    log_line(severity >= EVENT_ERROR     ? LOG_ERROR
             : severity == EVENT_WARNING ? LOG_WARN
                                         : LOG_INFO,
             kind, -1, "%s", ev.text);
}

int tracker_device(const struct track *t) {
    for (int d = 0; d < tracker.rings.devices; d++)
        if (tracker.bit[d] >= 0 && gpumgr_task_is_on(&t->k, (uint32_t)tracker.bit[d])) return d;
    return -1;
}

/* "trainer (python3, process 4711)" */
static const char *words_of(const struct track *t) {
    static char words[128];
    const char *name = t->k.container[0] ? t->k.container : t->k.container_id;
    if (*name)
        snprintf(words, sizeof words, "%.40s (%.16s, process %d)", name, t->k.comm, t->pid);
    else
        snprintf(words, sizeof words, "%.16s, process %d", t->k.comm, t->pid);
    return words;
}

static struct task_past *past_of(const struct track *t, int64_t now_ns) {
    return groups_past(&tracker.groups, t->group, t->k.comm, t->k.uid, now_ns);
}

/* ---- deadlines ---- */

static void say_news(struct track *t, enum task_news news, int64_t now_ns) {
    if (news == TASK_NOTHING) return;
    double s = (double)t->task.deadline_ns / 1e9;
    if (news == TASK_MISSED) {
        slack_miss(&tracker.slack, now_ns);
        if (t->group) {
            slack_miss(&t->group->slack, now_ns);
            t->group->version++;
        }
        tracker_event(EVENT_WARNING, "task_overdue", tracker_device(t), t->pid,
                      "%s: its deadline of %.4g s has passed and it still runs", words_of(t), s);
    } else {
        tracker_event(EVENT_WARNING, "task_will_miss", tracker_device(t), t->pid,
                      "%s: will miss its deadline of %.4g s: its like took %.4g s", words_of(t), s,
                      (double)t->task.expected_ns / 1e9);
    }
    track_put(t, now_ns);
}

void track_tick(struct track *t, int64_t now_ns) {
    const struct task_past *past = past_of(t, now_ns);
    while (t->wake_ns <= now_ns) {
        int64_t was_ns = t->wake_ns;
        say_news(t, task_tick(&t->task, past, now_ns), now_ns);
        t->wake_ns = task_wake_ns(&t->task, past);
        if (t->wake_ns == was_ns) t->wake_ns = now_ns + NS_PER_MS; /* never twice for one moment */
    }
}

static void plan(struct track *t, int64_t now_ns) {
    t->wake_ns = task_wake_ns(&t->task, past_of(t, now_ns));
    if (t->is_live && t->wake_ns <= now_ns) track_tick(t, now_ns);
}

static bool is_expected(const struct engine_facts *f) {
    if (f->state == ENGINE_PAUSED || f->state == ENGINE_EXITED || f->state == ENGINE_REMOVED) return false;
    return f->pid <= 0 || process_has_number("/proc", f->pid); /* its engine may not be there to say so */
}

void tracker_periods(int64_t now_ns) {
    tracker.period_ns = INT64_MAX;
    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        struct group *g = &tracker.groups.of[i];
        if (!g->id[0] || task_period_wake_ns(&g->period) == INT64_MAX) continue;
        int64_t ago_ns = now_ns - g->period.begun_ns;
        bool is_over = now_ns >= task_period_wake_ns(&g->period);
        if (is_over && !is_expected(&g->facts)) {
            task_period_stop(&g->period);
            continue;
        }
        g->version += is_over;
        if (task_period_tick(&g->period, now_ns))
            tracker_event(EVENT_WARNING, "period_missed", -1, g->facts.pid,
                          "%.60s: no task began within its period of %.4g s: the last began %.4g s ago%s",
                          g->facts.name, (double)g->period.period_ns / 1e9, (double)ago_ns / 1e9,
                          g->running ? " and still runs" : "");
        if (task_period_wake_ns(&g->period) < tracker.period_ns) tracker.period_ns = task_period_wake_ns(&g->period);
    }
}

/* ---- the end ---- */

static int64_t real_of(int64_t boot_ns) { return clock_real_ns() - (clock_boot_ns() - boot_ns); }

static void count_end(struct track *t, bool is_new) {
    const struct task *k = &t->task;
    slack_end(&tracker.slack, k->deadline_ns, k->float_ns, !is_new, k->end_ns);
    if (t->group) slack_end(&t->group->slack, k->deadline_ns, k->float_ns, !is_new, k->end_ns);
    if (!(t->k.flags & GPUMGR_TASK_FOUND_LATE)) task_past_add(past_of(t, k->end_ns), k->end_ns - k->start_ns);
    if (k->verdict != TASK_MISS || !is_new) return;
    tracker_event(EVENT_WARNING, "task_missed", tracker_device(t), t->pid,
                  "%s: missed its deadline of %.4g s by %.4g s", words_of(t), (double)k->deadline_ns / 1e9,
                  (double)-k->float_ns / 1e9);
}

void track_end(struct track *t, int64_t end_ns, bool is_known) {
    bool is_new, was_missed = t->task.verdict == TASK_MISS;
    if (!t->is_live) return;
    if (is_known) tracker_settle(t, end_ns);
    track_name(t, end_ns);
    enum task_verdict verdict = task_end(&t->task, end_ns, &is_new);
    t->is_live = false;
    tracker.live--;
    if (is_known) {
        count_end(t, is_new);
    } else { /* it may have ended long before it was found: a hit is certain, a miss is not */
        t->k.flags |= GPUMGR_TASK_END_UNKNOWN;
        t->task.float_ns = 0;
        if (verdict == TASK_MISS && !was_missed) t->task.verdict = TASK_PENDING;
    }
    t->k.end_real_ns = real_of(t->task.end_ns);
    if (t->group) {
        t->group->running--;
        t->group->version++;
        t->group->used_ns = end_ns;
    }
    track_put(t, clock_boot_ns());
}

/* It is forgotten when it is in no list any more, too: else the next look would take it for a new one. */
void track_exit(uint32_t slot, int64_t now_ns) {
    struct track *t = slot < TABLE_SLOTS ? tracker.at[slot] : NULL;
    struct pollfd p = {.fd = t ? t->pidfd : -1, .events = POLLIN};
    if (!t || t->pidfd < 0 || poll(&p, 1, 0) <= 0) return; /* of the one before it in this slot */
    track_end(t, now_ns, true);
    close_pidfd(t);
    t->gone_ns = now_ns;
    if (!track_is_listed(t)) track_free(t);
}

/* ---- the beginning ---- */

static bool has_slot(struct track *t, bool is_wanted) {
    int32_t slot = is_wanted ? table_take(&tracker.table, tracker.is_live) : -1;
    t->slot = slot < 0 ? NO_SLOT : (uint32_t)slot;
    if (slot < 0) return false;
    tracker.at[slot] = t;
    tracker.is_live[slot] = true;
    free(tracker.said[slot].user);
    free(tracker.said[slot].command);
    tracker.said[slot].user = tracker.said[slot].command = NULL;
    return true;
}

static void follow(struct track *t) {
    if (t->pidfd >= 0 && !ends_add(t->pidfd, t->slot)) close_pidfd(t);
}

static void describe(struct track *t, const struct process *p) {
    struct gpumgr_task *k = &t->k;
    k->ticks = p->ticks;
    k->ns_pid = p->ns_pid;
    k->uid = p->uid;
    k->kind = (uint8_t)p->whose.kind;
    k->slurm_job = p->whose.slurm_job;
    memcpy(k->comm, p->comm, sizeof k->comm);
    memcpy(k->container_id, p->whose.id, sizeof k->container_id);
    memcpy(k->pod, p->whose.pod, sizeof k->pod);
}

static bool is_contained(const struct process *p) {
    return p->whose.kind >= BELONGS_TO_CONTAINERD && p->whose.kind <= BELONGS_TO_DOCKER;
}

/* A process of a run of ours is the job's, wherever its cgroup lies. */
static void join_run(struct track *t, struct process *p) {
    struct owner e;
    if (is_contained(p) || !owners_of_process(t->pid, &e)) return;
    p->whose.kind = BELONGS_TO_JOB;
    snprintf(p->whose.id, sizeof p->whose.id, "%s", e.name);
    snprintf(t->k.container, sizeof t->k.container, "%.70s", e.title);
}

/* A job's container is known by its name, which another user's engine could give to one of its own. */
static bool is_usurped(const struct engine_facts *f) {
    return f->uid != 0 && f->uid != geteuid() && strncmp(f->name, "gpumgr-", strlen("gpumgr-")) == 0;
}

static void name_by_facts(struct track *t) {
    if (!t->group || !t->group->has_facts) return;
    if (is_usurped(&t->group->facts))
        snprintf(t->k.container, sizeof t->k.container, "%.12s", t->group->facts.id);
    else
        memcpy(t->k.container, t->group->facts.name, sizeof t->k.container);
    memcpy(t->k.image, t->group->facts.image, sizeof t->k.image);
    t->k.period_ns = t->group->facts.period_ns;
    task_period_set(&t->group->period, t->k.period_ns);
}

static void ask_engine(struct group *g) {
    struct engine_facts f;
    if (!g || g->has_facts || !tracker.engine || !engine_facts(tracker.engine, g->id, &f)) return;
    g->facts = f;
    g->has_facts = true;
    g->version++;
}

static int64_t opened_of(const struct process *p, const struct sighting *s) {
    struct opener who = {.pid = s->pid, .tag = s->minor, .born_ns = process_born_ns(p), .start_ns = s->at_ns};
    int64_t at_ns = openers_find(&tracker.opens.openers, &who);
    if (at_ns || !tracker.engine || !is_contained(p)) return at_ns;
    return engine_opened_ns(tracker.engine, &who, p->whose.id, s->minor);
}

static void start_task(struct track *t, const struct process *p, const struct sighting *s, int64_t now_ns) {
    t->group = groups_of(&tracker.groups, &p->whose, now_ns);
    ask_engine(t->group);
    name_by_facts(t);
    const struct engine_facts *f = t->group && t->group->has_facts ? &t->group->facts : NULL;
    int64_t opened_ns = opened_of(p, s);
    int64_t told_ns = tracker.engine && is_contained(p) ? engine_announced_ns(tracker.engine) : 0;
    bool is_by_start = told_ns && s->at_ns - told_ns < STARTED_NS;
    enum task_source source = opened_ns ? TASK_BY_OPEN : is_by_start ? TASK_BY_CONTAINER : TASK_BY_LIST;
    task_begin(&t->task, (struct task_key){s->pid, p->ticks}, opened_ns, s->at_ns, f ? f->deadline_ns : 0, source,
               past_of(t, now_ns));
    t->k.opened_real_ns = opened_ns ? real_of(opened_ns) : 0;
    t->k.start_real_ns = real_of(s->at_ns);
    t->k.flags = tracker.is_first ? GPUMGR_TASK_FOUND_LATE : 0;
    t->is_live = true;
    t->used_ns = now_ns;
    tracker.live++;
    if (t->group) {
        task_period_begin(&t->group->period, s->at_ns);
        if (t->group->period.period_ns) tracker.period_ns = now_ns; /* looked at anew */
        t->group->running++;
        t->group->version++;
        if (f && f->bad_label[0] && !t->group->is_bad_said) {
            t->group->is_bad_said = true;
            tracker_event(EVENT_WARNING, "bad_deadline_label", tracker_device(t), t->pid, "%s: %s", words_of(t),
                          f->bad_label);
        }
    }
}

static struct track *track_new(const struct sighting *s) {
    struct track *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    *t = (struct track){
        .pid = s->pid,
        .pidfd = -1,
        .slot = NO_SLOT,
        .sm_now = NAN,
        .k = {.pid = s->pid, .uid = UINT32_MAX, .slurm_job = -1}
    };
    struct track **at = place(s->pid);
    t->next = *at;
    *at = t;
    return t;
}

static void set_bit(uint64_t *bits, int bit) { bits[bit / 64] |= BIT(bit % 64); }

/* The driver showed a process that was not there before. It may have ended since; one that was already dead when we began is
 * no task, but what it holds is of interest. */
static void begin(const struct sighting *s, uint32_t again, int64_t now_ns) {
    struct process p;
    struct track *t = track_new(s);
    if (!t) return;
    set_bit(t->listed, s->list_bit);
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)s->pid, 0);
    bool is_alive = process_read("/proc", s->pid, &p);
    if (!is_alive && pidfd >= 0) close(pidfd);
    t->pidfd = is_alive ? pidfd : -1;
    t->gone_ns = is_alive ? 0 : now_ns;
    if (!has_slot(t, is_alive || !tracker.is_first)) return;
    if (is_alive) join_run(t, &p);
    describe(t, &p);
    t->k.again = again;
    set_bit(t->k.gpus, s->bit);
    start_task(t, &p, s, now_ns);
    follow(t);
    track_name(t, now_ns); /* asked for now: it may be over before the next round */
    if (is_alive)
        track_put(t, now_ns);
    else
        track_end(t, now_ns, now_ns - s->at_ns < LATE_NS);
    if (is_alive) plan(t, now_ns);
}

/* Its process ended while it was listed, and the number belongs to another one by now, which is listed in its place. */
static bool is_used_again(const struct track *t) {
    struct process p;
    return !t->is_live && t->gone_ns && process_read("/proc", t->pid, &p) && p.ticks != t->k.ticks;
}

void track_sight(const struct sighting *s, int64_t now_ns) {
    struct track *t = track_find(s->pid);
    if (t && is_used_again(t)) {
        track_free(t);
        t = NULL;
    }
    if (t && !t->is_live && t->pidfd >= 0 && !track_is_listed(t)) { /* it had left and is back: a task of its own */
        uint32_t again = t->k.again + 1;
        track_free(t);
        begin(s, again, now_ns);
        return;
    }
    if (!t) {
        begin(s, 0, now_ns);
        return;
    }
    set_bit(t->listed, s->list_bit);
    t->unlisted_ns = 0;
    if (!t->is_live || gpumgr_task_is_on(&t->k, (uint32_t)s->bit)) return;
    set_bit(t->k.gpus, s->bit);
    track_put(t, now_ns);
}

/* ---- containers ---- */

void tracker_facts(const struct engine_facts *f, int64_t now_ns) {
    struct group *g = groups_find(&tracker.groups, f->id);
    if (!g && (f->deadline_ns || f->bad_label[0])) {
        struct belonging whose = {.kind = f->engine == ENGINE_PODMAN ? BELONGS_TO_PODMAN : BELONGS_TO_DOCKER};
        memcpy(whose.id, f->id, sizeof f->id);
        g = groups_of(&tracker.groups, &whose, now_ns);
    }
    if (!g) return;
    g->facts = *f;
    g->has_facts = true;
    g->version++;
    task_period_set(&g->period, f->period_ns);
    if (f->period_ns) tracker.period_ns = now_ns;
    if (f->bad_label[0] && !g->is_bad_said) {
        g->is_bad_said = true;
        tracker_event(EVENT_WARNING, "bad_deadline_label", -1, f->pid, "%.60s: %s", f->name, f->bad_label);
    }
    for (uint32_t i = 0; i < TABLE_SLOTS; i++) {
        struct track *t = tracker.at[i];
        if (!t || !t->is_live || t->group != g) continue;
        name_by_facts(t);
        task_set_deadline(&t->task, f->deadline_ns, now_ns);
        track_put(t, now_ns);
        plan(t, now_ns);
    }
}

/* ---- what the one before us left ---- */

/* A task that the one before us began. Alive: it goes on. Else it ended while nobody watched. */
void track_adopt(uint32_t slot, const struct gpumgr_task *k, int64_t now_ns) {
    struct process p;
    struct sighting s = {.pid = k->pid};
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)k->pid, 0);
    bool is_same =
        pidfd >= 0 && k->ticks && process_is_there("/proc", k->pid, k->ticks) && process_read("/proc", k->pid, &p);
    struct track *t = track_find(k->pid) ? NULL : track_new(&s);
    if (!is_same && pidfd >= 0) close(pidfd);
    if (!t) return;
    t->slot = slot;
    t->k = *k;
    t->pidfd = is_same ? pidfd : -1;
    t->task = (struct task){
        .key = {k->pid, k->ticks},
        .state = k->state,
        .source = k->source,
        .verdict = k->verdict,
        .is_warned = (k->flags & GPUMGR_TASK_WARNED) != 0,
        .opened_ns = k->opened_ns,
        .start_ns = k->start_ns,
        .deadline_ns = k->deadline_ns,
        .expected_ns = k->expected_ns
    };
    tracker.at[slot] = t;
    tracker.is_live[slot] = t->is_live = true;
    tracker.live++;
    t->used_ns = now_ns;
    if (is_same && k->kind == BELONGS_TO_JOB) { /* its shim may have ended since; whose it is does not change */
        p.whose.kind = BELONGS_TO_JOB;
        memcpy(p.whose.id, k->container_id, sizeof p.whose.id);
    }
    if (is_same && (t->group = groups_of(&tracker.groups, &p.whose, now_ns))) {
        t->group->running++;
        task_period_begin(&t->group->period, now_ns); /* what began meanwhile, nobody saw */
    }
    follow(t);
    if (t->pidfd >= 0) {
        t->unlisted_ns = now_ns;
        plan(t, now_ns);
        return;
    }
    track_end(t, now_ns, false);
    track_free(t);
}
