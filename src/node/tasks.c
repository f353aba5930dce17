#include "node/tasks.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "node/bells.h"
#include "node/ends.h"
#include "node/frees.h"
#include "node/tracks.h"

#define STACK_BYTES (256 * 1024)
#define EVENTS_MAX 64
#define FACTS_AT_ONCE 64
#define ON_TIME_SLACK_NS (50 * NS_PER_US)

enum { AT_BELL, AT_TIMER, AT_OPENS, AT_ENGINE, AT_ENDS };

/* ---- lists ---- */

static bool has_pid(const struct ring_processes *p, int32_t pid) {
    for (uint32_t i = 0; i < p->count; i++)
        if ((int32_t)p->of[i].pid == pid) return true;
    return false;
}

static void unlist(int bit, const struct ring_processes *p) {
    if (p->total > p->count) return; /* the rest is there and not told */
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (struct track *t = tracker.bucket[b], *next; t; t = next) {
            next = t->next;
            if (!(t->listed[bit / 64] & BIT(bit % 64)) || has_pid(p, t->pid)) continue;
            t->listed[bit / 64] &= ~BIT(bit % 64);
            if (track_is_listed(t)) continue;
            t->unlisted_ns = p->boot_ns;
            if (t->pidfd < 0 && !t->is_live) track_free(t);
        }
}

/* A process of a MIG instance may be told by its card: it is on the instance. */
static int bit_of(const struct rings_one *one, uint32_t d, const struct ring_process *p) {
    int own = tracker.bit[one->first + d];
    if (p->gi == UINT32_MAX) return own;
    for (uint32_t i = 0; i < ring_devices(&one->ring); i++) {
        const struct inventory *inv = ring_inventory(&one->ring, i);
        if (inv->parent == (int32_t)d && (uint32_t)inv->gi == p->gi && (uint32_t)inv->ci == p->ci)
            return tracker.bit[one->first + i];
    }
    return own;
}

static void take_list(const struct rings_one *one, uint32_t d, int64_t now_ns) {
    int bit = tracker.bit[one->first + d];
    if (bit < 0) return;
    struct tracked_gpu *g = &tracker.gpu[bit];
    static struct ring_processes p; /* large; under the lock */
    if (!ring_processes(&one->ring, d, &p) || !p.boot_ns || p.boot_ns == g->list_ns) return;
    const struct inventory *inv = ring_inventory(&one->ring, d);
    g->has_list = true;
    g->list_ns = p.boot_ns;
    g->processes = p;
    unlist(bit, &p);
    for (uint32_t i = 0; i < p.count; i++) {
        struct sighting s = {.pid = (int32_t)p.of[i].pid, .minor = inv->minor, .list_bit = bit, .at_ns = p.boot_ns};
        s.bit = bit_of(one, d, &p.of[i]);
        if (s.pid <= 0 || s.bit < 0) continue;
        track_sight(&s, now_ns);
        struct track *t = track_find(s.pid); /* one that ends before the next round had memory, too */
        uint64_t bytes = p.of[i].memory_bytes;
        if (t && bytes != PROCESS_NO_MEMORY && bytes > t->k.memory_peak_bytes) t->k.memory_peak_bytes = bytes;
    }
}

static void take_lists(int64_t now_ns) {
    uint64_t ring;
    bool has_any = false;
    if (read(tracker.bell, &ring, sizeof ring) < 0 && errno != EAGAIN) return;
    if (rings_are_stale(&tracker.rings)) {
        (void)rings_renew(&tracker.rings);
        for (int i = 0; i < WIRE_DEVICES_MAX; i++) tracker.bit[i] = -1;
        for (unsigned i = 0; i < tracker.rings.count; i++) {
            const struct rings_one *one = &tracker.rings.of[i];
            for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++) {
                const struct inventory *inv = ring_inventory(&one->ring, d);
                bool is_mig = inv->parent >= 0;
                tracker.bit[one->first + d] =
                    (int16_t)table_gpu(&tracker.table, inv->uuid, is_mig ? (uint32_t)inv->gi : UINT32_MAX,
                                       is_mig ? (uint32_t)inv->ci : UINT32_MAX);
            }
        }
    }
    for (unsigned i = 0; i < tracker.rings.count; i++) {
        const struct rings_one *one = &tracker.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++) {
            take_list(one, d, now_ns);
            int bit = tracker.bit[one->first + d];
            has_any |= bit >= 0 && tracker.gpu[bit].has_list;
        }
    }
    if (has_any) tracker.is_first = false;
    frees_judge(now_ns);
}

/* ---- containers ---- */

static void take_facts(int64_t now_ns) {
    enum engine_news news;
    struct engine_facts f;
    char id[ENGINE_ID_HEX + 1];
    /* What is left stays readable: an engine that never stops talking keeps nobody from lists and deadlines. */
    for (int n = 0; n < FACTS_AT_ONCE && engine_next(tracker.engine, &news, id); n++) {
        if (news != ENGINE_MANY && engine_facts(tracker.engine, id, &f)) tracker_facts(&f, now_ns);
        for (unsigned i = 0; news == ENGINE_MANY && i < GROUPS_MAX; i++)
            if (tracker.groups.of[i].id[0] && engine_facts(tracker.engine, tracker.groups.of[i].id, &f))
                tracker_facts(&f, now_ns);
    }
}

/* ---- time ---- */

static void arm_timer(void) {
    int64_t next_ns = tracker.round_ns < tracker.period_ns ? tracker.round_ns : tracker.period_ns;
    if (frees_next_ns() < next_ns) next_ns = frees_next_ns();
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (const struct track *t = tracker.bucket[b]; t; t = t->next)
            if (t->is_live && t->wake_ns < next_ns) next_ns = t->wake_ns;
    if (next_ns == tracker.timer_ns) return;
    tracker.timer_ns = next_ns;
    struct itimerspec at = {
        .it_value = {.tv_sec = next_ns / NS_PER_S, .tv_nsec = next_ns % NS_PER_S}
    };
    timerfd_settime(tracker.timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void on_timer(int64_t now_ns) {
    uint64_t times;
    if (read(tracker.timer, &times, sizeof times) < 0) return;
    tracker.timer_ns = 0;
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (struct track *t = tracker.bucket[b]; t; t = t->next)
            if (t->is_live && t->wake_ns <= now_ns) track_tick(t, now_ns);
    if (now_ns >= tracker.period_ns) tracker_periods(now_ns);
    if (now_ns >= frees_next_ns()) frees_judge(now_ns);
    if (now_ns < tracker.round_ns) return;
    tracker.round_ns = (now_ns / NS_PER_S + 1) * NS_PER_S;
    take_lists(now_ns);
    tracker_round(now_ns);
}

static bool take_ends(void) {
    uint64_t times;
    uint32_t slot;
    int64_t end_ns;
    bool has_any = false;
    if (read(tracker.ended, &times, sizeof times) < 0 && errno != EAGAIN) return false;
    for (; ends_take(&slot, &end_ns); has_any = true) track_exit(slot, end_ns);
    return has_any;
}

/* Ends come before lists: a number that is used again in the same moment is another process. */
static void on_events(const struct epoll_event *ev, int n, int64_t now_ns) {
    uint64_t woken = 0;
    for (int i = 0; i < n; i++) woken |= BIT(ev[i].data.u64);
    /* Openings before lists: one that is listed may have opened its file after we were woken for something else. */
    if (woken & (BIT(AT_OPENS) | BIT(AT_BELL))) opens_read(&tracker.opens, now_ns);
    if (take_ends() && !(woken & BIT(AT_BELL))) frees_judge(now_ns);
    if (woken & BIT(AT_ENGINE) && tracker.engine) take_facts(now_ns);
    if (woken & BIT(AT_BELL)) take_lists(now_ns);
    if (woken & BIT(AT_TIMER)) on_timer(now_ns);
}

static void *run(void *arg) {
    struct epoll_event ev[EVENTS_MAX];
    pthread_setname_np(pthread_self(), "tasks");
    prctl(PR_SET_TIMERSLACK, ON_TIME_SLACK_NS);
    clock_be_prompt();
    for (;;) {
        int n = epoll_wait(tracker.epoll, ev, EVENTS_MAX, -1);
        int64_t now_ns = clock_boot_ns();
        pthread_mutex_lock(&tracker.lock);
        uint64_t before = tracker.changes;
        if (n > 0) on_events(ev, n, now_ns);
        arm_timer();
        if (tracker.changes != before) table_tell(&tracker.table);
        pthread_mutex_unlock(&tracker.lock);
    }
    return NULL;
}

/* ---- the start ---- */

static int by_mark(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void tracker_index(void) {
    struct gpumgr_task k;
    tracker.changes = 0;
    for (uint32_t i = 0; i < TABLE_SLOTS; i++)
        if (table_get(&tracker.table, i, &k)) {
            tracker.change[tracker.changes].mark = k.mark;
            tracker.change[tracker.changes++].slot = i;
        }
    qsort(tracker.change, tracker.changes, sizeof tracker.change[0], by_mark);
}

static void take_up(int64_t now_ns) {
    struct gpumgr_task k;
    tracker_index();
    for (uint32_t i = 0; i < TABLE_SLOTS; i++)
        if (table_get(&tracker.table, i, &k) && k.state != GPUMGR_TASK_ENDED && k.pid > 0) track_adopt(i, &k, now_ns);
}

static int watch_fd(int fd, uint64_t at, struct error *e) {
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = at};
    if (fd < 0 || epoll_ctl(tracker.epoll, EPOLL_CTL_ADD, fd, &ev) < 0) return fail_errno(e, errno, "watch for tasks");
    return 0;
}

static int open_all(const struct instance *where, struct error *e) {
    AUTO(buf_done) struct buf boot_id = {0};
    char path[256];
    if (file_read("/proc/sys/kernel/random/boot_id", 64, &boot_id, e) < 0) buf_puts(&boot_id, "unknown");
    boot_id.s[strcspn(boot_id.s, "\n")] = 0;
    instance_path(where, path, sizeof path, "tasks");
    int r = table_open(&tracker.table, path, boot_id.s, e);
    if (r < 0) return r;
    tracker.epoll = epoll_create1(EPOLL_CLOEXEC);
    tracker.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    tracker.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tracker.ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = watch_fd(tracker.timer, AT_TIMER, e);
    if (r >= 0) r = watch_fd(tracker.ended, AT_ENDS, e);
    if (r >= 0) r = ends_start(tracker.ended, e);
    if (r >= 0) r = watch_fd(tracker.bell, AT_BELL, e);
    opens_begin(&tracker.opens, tracker.settings.gpu_devices);
    if (r >= 0 && tracker.engine) r = watch_fd(engine_fd(tracker.engine), AT_ENGINE, e);
    if (r >= 0 && tracker.opens.files.fd >= 0) r = watch_fd(tracker.opens.files.fd, AT_OPENS, e);
    return r;
}

static int start_thread(struct error *e) { return thread_start(run, NULL, STACK_BYTES, "tasks", e); }

/* In a container without the host's pids those of the driver are somebody else's here. */
static bool knows_pids(const struct settings *s) {
    char ns[64] = "";
    ssize_t n = readlink("/proc/self/ns/pid", ns, sizeof ns - 1);
    return s->sim || *s->gpu_library || (n > 0 && strcmp(ns, "pid:[4026531836]") == 0);
}

int tasks_start(const struct instance *where, const struct settings *s, struct engine *containers, struct error *e) {
    struct rlimit files;
    int64_t now_ns = clock_boot_ns();
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* a descriptor a task */
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    tracker.settings = *s;
    tracker.engine = containers;
    tracker.is_first = true;
    tracker.knows_pids = knows_pids(s);
    tracker.round_ns = (now_ns / NS_PER_S + 1) * NS_PER_S;
    tracker.period_ns = INT64_MAX;
    slack_init(&tracker.slack);
    for (int i = 0; i < WIRE_DEVICES_MAX; i++) tracker.bit[i] = -1;
    for (int i = 0; i < TRACKS_GPUS; i++) tracker.gpu[i].energy_j = tracker.gpu[i].idle_w = NAN;
    rings_init(&tracker.rings, where, (unsigned)s->workers);
    frees_begin(where);
    int r = open_all(where, e);
    if (r < 0) return r;
    take_up(now_ns);
    arm_timer();
    bells_start(where, (unsigned)s->workers, tracker.bell);
    return start_thread(e);
}

void tasks_stop(void) { pthread_mutex_lock(&tracker.lock); }

/* The old one's descriptor leaves the set when it is closed. */
int tasks_engine(struct engine *containers, struct error *e) {
    pthread_mutex_lock(&tracker.lock);
    int r = watch_fd(engine_fd(containers), AT_ENGINE, e);
    if (r >= 0) tracker.engine = containers;
    pthread_mutex_unlock(&tracker.lock);
    return r;
}

void tasks_reload(const struct settings *s) {
    pthread_mutex_lock(&tracker.lock);
    tracker.settings = *s;
    pthread_mutex_unlock(&tracker.lock);
}
