#include "core/sampler.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/heart.h"
#include "base/log.h"
#include "core/budgeting.h"
#include "core/control.h"
#include "core/inspect.h"
#include "core/opens.h"
#include "core/records.h"
#include "core/watch.h"
#include "core/xids.h"
#include "model/settings.h"

#define OPEN_PATIENCE_NS (1500 * NS_PER_MS) /* for all GPUs to be opened; the board is then laid out without the rest */
#define OPEN_LONGEST_NS (10 * NS_PER_S)
#define COUNT_LOOK_NS (10 * NS_PER_S)
/* The ring is the spool between sampler and server: it outlasts a server's last flush (5 s), its restart, and the node's
 * pause between two tries. A card near its target is read ten times a second whatever the pace, slow readings come on
 * top: hence the least. */
#define RING_KEEPS_NS (30 * NS_PER_S)
#define RING_SLOTS_LEAST 256
#define RING_SLOTS_MOST 4096
#define SETTINGS_MAX 65536
#define LEAVE_NS (2500 * NS_PER_MS)  /* less than the supervisor waits after SIGTERM */
#define SETTLE_NS (1200 * NS_PER_MS) /* of that, to take the cards that a predecessor left throttled */
#define BUDGET_NS (200 * NS_PER_MS)

static struct sampler {
    struct settings settings; /* the main thread's; they change when they are read anew */
    struct settings first;    /* as they were at the start, for all threads */
    int worker;
    char run_dir[200], ring_path[256];
    struct heart *heart;
    struct board board;
    struct watch_common common;
    struct watch watch[GPU_MAX];
    _Atomic unsigned watch_count;
    struct xids xids;
    struct opens opens;
    struct inspect inspect;
    struct inventory inventory[DEVICE_MAX];
    pthread_t driver_thread;
    _Atomic int gpu_total; /* GPUs of all workers */
    struct budgeting budget;
} self;

/* ---- settings ---- */

static int settings_read(struct error *e) {
    char path[256];
    AUTO(buf_done) struct buf text = {0};
    snprintf(path, sizeof path, "%s/settings", self.run_dir);
    int r = file_read(path, SETTINGS_MAX, &text, e);
    if (r < 0) return r;
    struct settings fresh;
    r = settings_decode(&fresh, text.s, e);
    if (r < 0) return r;
    pthread_mutex_lock(&self.common.lock); /* the guards read them */
    self.settings = fresh;
    pthread_mutex_unlock(&self.common.lock);
    return 0;
}

/* Of a core, for the slow calls of one GPU: few GPUs share what eight may cost, each of more has an eighth of it. */
static double slow_share(const struct settings *s) {
    int n = self.gpu_total < 1 ? 8 : self.gpu_total > 8 ? 8 : self.gpu_total;
    return s->slow_percent / 100 / n * 1000 / s->wait_ms;
}

/* What can change while it runs; the rest takes a new process, which the supervisor sees to. */
static void settings_apply(void) {
    const struct settings *s = &self.settings;
    self.common.base_ns = (int64_t)s->wait_ms * NS_PER_MS;
    self.common.slow_share = slow_share(s);
    self.board.answer_ns = (int64_t)s->answer_ms * NS_PER_MS;
    self.board.lost_ns = (int64_t)s->lost_ms * NS_PER_MS;
    log_set_level((enum log_level)s->log_level);
    atomic_fetch_add(&self.common.settings_version, 1);
    for (unsigned i = 0; i < self.watch_count; i++) watch_look(&self.watch[i]);
}

static int settings_reload(struct error *e) {
    int r = settings_read(e);
    if (r < 0) return r;
    settings_apply();
    log_line(LOG_INFO, "reload", -1, "settings read anew: every %d ms", self.settings.wait_ms);
    return 0;
}

/* ---- laying out ---- */

static bool is_listed(const char *list, int index, const char *uuid) {
    char number[16];
    snprintf(number, sizeof number, "%d", index);
    if (strcmp(list, "all") == 0) return true;
    for (const char *p = list;; p++) {
        size_t n = strcspn(p, ",");
        if ((strlen(number) == n && strncmp(p, number, n) == 0) ||
            (*uuid && strlen(uuid) == n && strncmp(p, uuid, n) == 0))
            return true;
        p += n;
        if (!*p) return false;
    }
}

/* A GPU that did not open in time: what the last ring knew of it, or just its number. */
static unsigned absent_inventory(const struct watch *w, struct inventory *at, unsigned room) {
    unsigned n = board_remembered(self.ring_path, (int)w->index, at, room);
    if (n) return n;
    inventory_init(at, (int32_t)w->index);
    snprintf(at->name, sizeof at->name, "GPU %u", w->index);
    return 1;
}

static unsigned opened_inventory(const struct watch *w, struct inventory *at, unsigned room) {
    unsigned n = 0;
    at[n++] = *gpu_inventory(w->gpu);
    for (unsigned i = 0; i < gpu_instances(w->gpu) && n < room; i++) at[n++] = *gpu_inventory(gpu_instance(w->gpu, i));
    return n;
}

/* Fills the inventory of all devices and tells each watch its place. */
static unsigned devices_number(int *place, const enum watch_stage *stage) {
    unsigned count = 0;
    for (unsigned i = 0; i < self.watch_count; i++) {
        struct watch *w = &self.watch[i];
        bool is_open = stage[i] == WATCH_OPENED;
        struct inventory *at = &self.inventory[count];
        unsigned room = DEVICE_MAX - count;
        place[i] = -1;
        if (room <= MIG_MAX) break;
        unsigned n = is_open ? opened_inventory(w, at, room) : absent_inventory(w, at, room);
        if (!is_listed(self.first.gpus, at->index, at->uuid)) continue;
        for (unsigned k = 1; k < n; k++) at[k].parent = (int)count;
        place[i] = (int)count;
        count += n;
    }
    return count;
}

static void greet(unsigned place) {
    const struct inventory *inv = &self.inventory[place];
    log_line(LOG_INFO, "gpu_found", inv->index, "%s %s%s", inv->name, inv->uuid, inv->mig_count > 0 ? " (MIG)" : "");
}

static int board_make(unsigned count, struct error *e) {
    int64_t slots = RING_KEEPS_NS / self.common.base_ns;
    struct ring_spec spec = {.devices = count,
                             .slots = (uint32_t)(slots < RING_SLOTS_LEAST  ? RING_SLOTS_LEAST
                                                 : slots > RING_SLOTS_MOST ? RING_SLOTS_MOST
                                                                           : slots),
                             .inventory = self.inventory};
    pthread_mutex_lock(&self.common.lock); /* the main thread beats on a board of before */
    int r = board_open(&self.board, self.ring_path, &spec, e);
    if (r >= 0) board_driver(&self.board, DRIVER_OK, gpu_driver_version(self.common.driver));
    pthread_mutex_unlock(&self.common.lock);
    return r;
}

/* A GPU that is on the board but not open: what keeps it is its state. */
static void show_absent(struct watch *w, enum watch_stage stage, int place) {
    char why[sizeof w->trouble];
    pthread_mutex_lock(&self.common.lock);
    w->device = place;
    bool is_open_by_now = w->stage == WATCH_OPENED;
    snprintf(why, sizeof why, "%s", w->trouble);
    pthread_mutex_unlock(&self.common.lock);
    if (is_open_by_now) watch_again(&self.common, "a GPU answers that did not");
    if (stage == WATCH_FENCED) board_fence(&self.board, (unsigned)place, true, why);
    if (stage == WATCH_FORBIDDEN) board_forbid(&self.board, (unsigned)place, why);
    if (stage == WATCH_FAILED) board_end(&self.board, (unsigned)place, NULL, NULL, true, why);
}

static int lay_out(struct error *e) {
    int place[GPU_MAX] = {0};
    enum watch_stage stage[GPU_MAX] = {WATCH_OPENING};
    pthread_mutex_lock(&self.common.lock);
    for (unsigned i = 0; i < self.watch_count; i++) stage[i] = self.watch[i].stage;
    pthread_mutex_unlock(&self.common.lock);
    int r = board_make(devices_number(place, stage), e);
    if (r < 0) return r;
    for (unsigned i = 0; i < self.watch_count; i++) {
        if (stage[i] == WATCH_OPENED) watch_go(&self.watch[i], place[i]);
        if (place[i] < 0) continue;
        greet((unsigned)place[i]);
        if (stage[i] != WATCH_OPENED) show_absent(&self.watch[i], stage[i], place[i]);
    }
    return 0;
}

/* ---- the driver's own thread: opening it can take seconds, or for ever ---- */

static bool all_opened(void) {
    for (unsigned i = 0; i < self.watch_count; i++)
        if (self.watch[i].stage == WATCH_OPENING) return false;
    return true;
}

/* A GPU that came too late for the last process gets more time in this one, else it would be late for ever; but one
 * that hangs is waited for only once, because the others wait with it. */
static int64_t open_patience_ns(void) {
    int64_t ns = 2 * atomic_exchange(&self.heart->open_ns, 0);
    return ns < OPEN_PATIENCE_NS ? OPEN_PATIENCE_NS : ns > OPEN_LONGEST_NS ? OPEN_LONGEST_NS : ns;
}

static void watches_wait(void) {
    struct timespec until;
    int64_t began_ns = clock_boot_ns(), patience_ns = open_patience_ns();
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += patience_ns % NS_PER_S;
    until.tv_sec += patience_ns / NS_PER_S + until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    pthread_mutex_lock(&self.common.lock);
    while (!all_opened() && !self.common.end)
        if (pthread_cond_timedwait(&self.common.moved, &self.common.lock, &until) == ETIMEDOUT) break;
    if (all_opened()) self.heart->open_ns = clock_boot_ns() - began_ns;
    pthread_mutex_unlock(&self.common.lock);
}

/* How many GPUs the driver has. */
static int watches_start(struct error *e) {
    int count = gpu_count(self.common.driver, e);
    self.gpu_total = count;
    self.common.slow_share = slow_share(&self.first);
    for (int i = 0; i < count; i++) {
        if (i % self.first.workers != self.worker) continue;
        if (!strpbrk(self.first.gpus, "-") && !is_listed(self.first.gpus, i, "")) continue;
        int r = watch_start(&self.watch[self.watch_count], &self.common, (unsigned)i, e);
        if (r < 0) return r;
        self.watch_count++;
    }
    if (self.watch_count) watches_wait();
    return count;
}

/* Tries until the driver answers, saying why not when the reason changes. */
static void driver_wait(void) {
    struct error e, said = {0};
    int64_t pause_ns = 100 * NS_PER_MS;
    while (gpu_driver_open(self.first.gpu_library, &self.common.driver, &e) < 0) {
        if (strcmp(e.text, said.text) != 0) {
            log_line(LOG_WARN, "driver_absent", -1, "%s; trying again", e.text);
            pthread_mutex_lock(&self.common.lock);
            struct error ignored;
            if (board_open_absent(&self.board, self.ring_path, e.text, &ignored) < 0)
                log_line(LOG_ERROR, "ring", -1, "%s", ignored.text);
            pthread_mutex_unlock(&self.common.lock);
            said = e;
        }
        clock_sleep_until(clock_boot_ns() + pause_ns);
        if (pause_ns < 5 * NS_PER_S) pause_ns = pause_ns * 3 / 2;
    }
}

/* A GPU that is put in, or a driver that had none, is worth a new start. Costs the driver nothing: it keeps the number
 * in memory. One worker looks for all. */
static void count_watch(int had) {
    struct error e;
    while (self.worker == 0 || had == 0) {
        clock_sleep_until(clock_boot_ns() + COUNT_LOOK_NS);
        int count = gpu_count(self.common.driver, &e);
        if (count >= 0 && count != had) watch_again(&self.common, "the driver has another number of GPUs than before");
        if (count == -ENXIO) watch_again(&self.common, "the driver went away");
    }
}

static void *driver_main(void *arg) {
    struct error e;
    driver_wait();
    log_line(LOG_INFO, "driver", -1, "driver %s, %s", gpu_driver_version(self.common.driver),
             gpu_library_path(self.common.driver));
    xids_open(&self.xids, self.first.kmsg);
    int count = watches_start(&e);
    if (count < 0) {
        watch_again(&self.common, e.text);
        return NULL;
    }
    if (lay_out(&e) < 0) {
        watch_end(&self.common, 1, e.text);
        return NULL;
    }
    if (count == 0)
        log_line(LOG_WARN, "no_gpus", -1, "the driver answers, but it has no GPU");
    else if (self.board.count == 0)
        log_line(LOG_INFO, "no_gpus", -1, "none of the %d GPUs is for this sampler", count);
    self.xids.common = &self.common;
    self.xids.watches = self.watch;
    self.xids.count = self.watch_count;
    xids_start(&self.xids);
    self.opens = (struct opens){.watches = self.watch, .count = self.watch_count};
    snprintf(self.opens.dir, sizeof self.opens.dir, "%s", self.first.gpu_devices);
    if (self.watch_count && *self.opens.dir) opens_start(&self.opens);
    self.inspect = (struct inspect){
        .common = &self.common, .watches = self.watch, .count = self.watch_count, .worker = (unsigned)self.worker};
    snprintf(self.inspect.dir, sizeof self.inspect.dir, "%s", self.first.dir);
    if (self.watch_count) inspect_start(&self.inspect);
    self.heart->ready_ns = clock_boot_ns();
    count_watch(count);
    return NULL;
}

/* ---- control ---- */

static void on_ping(void *ctx, const struct control_request *q, struct control_reply *a) { a->value = getpid(); }

static void on_look(void *ctx, const struct control_request *q, struct control_reply *a) {
    for (unsigned i = 0; i < self.watch_count; i++) watch_look(&self.watch[i]);
    a->value = self.watch_count;
}

#define HUNT_MOST_MS 10000
#define HUNT_BASE_LEAST_MS 10

static void on_hunt(void *ctx, const struct control_request *q, struct control_reply *a) {
    int64_t for_ms = q->argument[1], base_ms = q->argument[2], pid = q->argument[3], now_ns = clock_boot_ns();
    if (pid < 0 || pid > INT32_MAX || for_ms < 0 || for_ms > HUNT_MOST_MS || base_ms < -1 || base_ms > HUNT_MOST_MS ||
        (base_ms > 0 && base_ms < HUNT_BASE_LEAST_MS)) {
        a->result = -ERANGE;
        snprintf(a->text, sizeof a->text, "out of range: at most %d ms, and looks at least %d ms apart", HUNT_MOST_MS,
                 HUNT_BASE_LEAST_MS);
        return;
    }
    for (unsigned i = 0; i < self.watch_count; i++) {
        struct watch *w = &self.watch[i];
        if (q->argument[0] >= 0 && (int64_t)w->index != q->argument[0]) continue;
        if (q->argument[4] && opens_minor(&self.opens, i) + 1 != q->argument[4]) continue;
        if (base_ms >= 0) watch_hunt_base(w, base_ms * NS_PER_MS);
        if (for_ms) watch_hunt(w, (uint32_t)pid, now_ns, now_ns + for_ms * NS_PER_MS);
    }
}

static void on_reload(void *ctx, const struct control_request *q, struct control_reply *a) {
    struct error e;
    a->result = settings_reload(&e);
    if (a->result < 0) snprintf(a->text, sizeof a->text, "%.103s", e.text);
}

/* The guard of a GPU that a message names, or a reply that says why not. */
static struct watch *guard_of(const struct control_request *q, struct control_reply *a) {
    for (unsigned i = 0; i < self.watch_count; i++) {
        struct watch *w = &self.watch[i];
        if ((int64_t)w->index == q->argument[0] && w->is_guarded) return w;
    }
    a->result = -ENODEV;
    snprintf(a->text, sizeof a->text, "GPU %lld is not guarded here", (long long)q->argument[0]);
    return NULL;
}

static void guard_tell(struct watch *w, const struct guarding_order *order, struct control_reply *a) {
    if (guarding_tell(&w->guard, order)) {
        watch_look(w);
        return;
    }
    a->result = -EBUSY;
    snprintf(a->text, sizeof a->text, "GPU %u does not answer, and was told enough already", w->index);
}

static void on_guard_set(void *ctx, const struct control_request *q, struct control_reply *a) {
    struct watch *w = guard_of(q, a);
    if (!w) return;
    struct guarding_order o = {.what = q->argument[1] == CONTROL_GUARD_TARGET ? ORDER_TARGET : ORDER_LIMIT,
                               .value = (double)q->argument[2] / 1e3,
                               .for_ns = q->argument[3] * NS_PER_MS,
                               .confirm_ns = q->argument[4] * NS_PER_MS};
    const struct gpu_lever *l = &w->guard.lever; /* found at the start, the same since */
    double low = o.what == ORDER_TARGET ? 30 : l->floor, high = o.what == ORDER_TARGET ? 110 : l->top;
    if (!(o.value >= low && o.value <= high) || q->argument[3] <= 0 || q->argument[3] > 7 * 86400 * 1000LL ||
        q->argument[4] < 0) {
        a->result = -ERANGE;
        snprintf(a->text, sizeof a->text, "out of range: from %.0f to %.0f, for at most a week", low, high);
        return;
    }
    guard_tell(w, &o, a);
}

static void on_guard_confirm(void *ctx, const struct control_request *q, struct control_reply *a) {
    struct watch *w = guard_of(q, a);
    if (w) guard_tell(w, &(struct guarding_order){.what = ORDER_CONFIRM}, a);
}

static void on_guard_restore(void *ctx, const struct control_request *q, struct control_reply *a) {
    if (q->argument[0] >= 0) {
        struct watch *w = guard_of(q, a);
        if (w) guard_tell(w, &(struct guarding_order){.what = ORDER_RESTORE}, a);
        return;
    }
    for (unsigned i = 0; i < self.watch_count; i++)
        if (self.watch[i].is_guarded) guard_tell(&self.watch[i], &(struct guarding_order){.what = ORDER_RESTORE}, a);
}

static const struct control_verb_row verbs[CONTROL_VERBS] = {
    [CONTROL_PING] = {"ping",          on_ping         },
    [CONTROL_LOOK] = {"look",          on_look         },
    [CONTROL_RELOAD] = {"reload",        on_reload       },
    [CONTROL_GUARD_SET] = {"guard set",     on_guard_set    },
    [CONTROL_GUARD_CONFIRM] = {"guard confirm", on_guard_confirm},
    [CONTROL_GUARD_RESTORE] = {"guard restore", on_guard_restore},
    [CONTROL_HUNT] = {"hunt",          on_hunt         },
};

/* ---- the main thread ---- */

static void fast_judge(int64_t now_ns) {
    for (unsigned i = 0; i < self.watch_count; i++) {
        const struct watch *w = &self.watch[i];
        int call = w->fast_call;
        if (call >= 0 && w->device >= 0)
            board_waits_for(&self.board, (unsigned)w->device, gpu_call(self.common.driver, (unsigned)call)->name);
    }
    board_judge(&self.board, now_ns);
}

static void slow_judge(int64_t now_ns) {
    for (unsigned i = 0; i < self.watch_count; i++) {
        struct watch *w = &self.watch[i];
        int64_t began_ns = w->slow_began_ns;
        int call = w->slow_call;
        bool is_stuck = began_ns && call >= 0 && now_ns - began_ns > self.board.lost_ns;
        if (is_stuck && !w->slow_is_reported)
            board_event(&self.board, EVENT_WARNING, w->device, "call_stuck",
                        "%s has not come back for %lld s; its metrics are absent",
                        gpu_call(self.common.driver, (unsigned)call)->name,
                        (long long)((now_ns - began_ns) / NS_PER_S));
        w->slow_is_reported = is_stuck;
    }
}

static void tick(void) {
    int64_t now_ns = clock_boot_ns();
    self.heart->beat_ns = now_ns;
    if (self.heart->ready_ns) {
        fast_judge(now_ns);
        slow_judge(now_ns);
        return;
    }
    pthread_mutex_lock(&self.common.lock);
    if (self.board.ring.h) ring_beat(&self.board.ring, now_ns); /* an absent driver is not an absent sampler */
    pthread_mutex_unlock(&self.common.lock);
}

static bool all_settled(void) {
    if (!self.heart->ready_ns) return false;
    for (unsigned i = 0; i < self.watch_count; i++) {
        struct watch *w = &self.watch[i];
        bool is_unwanted = watch_is_running(w) && w->device < 0;
        if (!is_unwanted && !(w->is_guarded && w->guard.is_settled)) return false;
    }
    return true;
}

/* Every thread puts its own card back; one that is stuck in the driver is waited for only so long: its record stays. What a
 * predecessor left is taken first: whoever is told to end at its start may be the only one that can put it back. */
static void guards_leave(void) {
    int64_t now_ns = clock_boot_ns(), until_ns = now_ns + LEAVE_NS, settle_ns = now_ns + SETTLE_NS;
    bool has_records = records_are_left(self.first.dir);
    while (has_records && !all_settled() && !self.common.end && clock_boot_ns() < settle_ns)
        clock_sleep_until(clock_boot_ns() + 2 * NS_PER_MS);
    bool is_complete = all_settled();
    self.common.leaving = 1;
    for (unsigned i = 0; i < self.watch_count; i++) watch_look(&self.watch[i]);
    while (self.common.guarded > 0 && clock_boot_ns() < until_ns) clock_sleep_until(clock_boot_ns() + 2 * NS_PER_MS);
    if (is_complete) self.heart->given_back_ns = clock_boot_ns();
}

/* Ends the process, whatever threads are stuck in the driver. Who only wants a fresh start leaves the cards as they are:
 * the next process finds the records and goes on. */
static void leave(int code, const char *why) {
    if (code == 0) guards_leave();
    log_line(code == 0 || code == SAMPLER_AGAIN ? LOG_INFO : LOG_ERROR, "stop", -1, "%s", why);
    if (self.common.open_ns) self.heart->open_ns = self.common.open_ns;
    _exit(code);
}

static void on_signal(int fd) {
    struct signalfd_siginfo si;
    struct error e;
    if (read(fd, &si, sizeof si) != sizeof si) return;
    if (si.ssi_signo != SIGHUP) leave(0, "stopping");
    if (settings_reload(&e) < 0) log_line(LOG_ERROR, "reload", -1, "%s; the old settings stay", e.text);
}

static void main_loop(int signals, int control, pid_t parent) {
    struct pollfd fds[] = {
        {.fd = signals,            .events = POLLIN},
        {.fd = control,            .events = POLLIN},
        {.fd = self.common.end_fd, .events = POLLIN},
    };
    int64_t next_ns = 0;
    for (;;) {
        int64_t now_ns = clock_boot_ns();
        /* before anything is judged: threads that gave up are not cards that do not answer */
        if (self.common.end) leave(self.common.end, self.common.end_why);
        if (now_ns >= next_ns) {
            tick();
            next_ns = (now_ns / NS_PER_S + 1) * NS_PER_S + 500 * NS_PER_MS; /* between two rounds, not among them */
            if (next_ns - now_ns > NS_PER_S) next_ns -= NS_PER_S;
        }
        if (getppid() != parent) leave(0, "the supervisor is gone");
        int wait_ms = (int)((next_ns - now_ns) / NS_PER_MS) + 1;
        if (self.heart->ready_ns) /* with several workers each has the part that its GPUs are of all */
            budgeting_step(&self.budget, self.watch, self.watch_count, self.inventory,
                           self.settings.budget_w * self.watch_count / fmax(self.gpu_total, 1), now_ns);
        if (self.budget.is_on && wait_ms > BUDGET_NS / NS_PER_MS) wait_ms = BUDGET_NS / NS_PER_MS;
        if (!self.heart->ready_ns && wait_ms > 50) wait_ms = 50;
        if (poll(fds, ARRAY_LEN(fds), wait_ms) <= 0) continue;
        if (fds[0].revents) on_signal(signals);
        if (fds[1].revents) control_serve(control, verbs, NULL);
    }
}

static int start(char **argv, int *signals, int *control, struct error *e) {
    char path[256];
    sigset_t set;
    self.worker = atoi(argv[1]);
    snprintf(self.run_dir, sizeof self.run_dir, "%s", argv[2]);
    snprintf(self.ring_path, sizeof self.ring_path, "%s/ring.%d", self.run_dir, self.worker);
    int r = heart_join(atoi(argv[3]), &self.heart, e);
    if (r < 0) return r;
    self.heart->beat_ns = clock_boot_ns();
    r = settings_read(e);
    if (r >= 0) r = fence_open(self.run_dir, &self.common.fence, e);
    if (r < 0) return r;
    self.first = self.settings;
    self.common.settings = &self.settings;
    snprintf(path, sizeof path, "%s/guard", self.first.dir);
    struct error ignored;
    (void)!dir_make(path, 0755, &ignored); /* without it the guard says that it cannot record */
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before any thread: they inherit it */
    *signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    self.common.end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*signals < 0 || self.common.end_fd < 0) return fail_errno(e, errno, "signalfd");
    snprintf(path, sizeof path, "%s/sampler.%d.sock", self.run_dir, self.worker);
    return control_listen(path, control, e);
}

int sampler_main(int argc, char **argv) {
    struct error e;
    int signals = -1, control = -1;
    pid_t parent = getppid();
    log_open("sampler", LOG_INFO);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    mallopt(M_ARENA_MAX, 1); /* one heap for twenty threads that hardly allocate */
    if (argc != 4) {
        log_line(LOG_ERROR, "usage", -1, "sample WORKER RUN_DIR HEART_FD: started by the supervisor");
        return 2;
    }
    pthread_mutex_init(&self.common.lock, NULL);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC); /* a clock that is set must not stretch a wait */
    pthread_cond_init(&self.common.moved, &steady);
    self.common.board = &self.board;
    if (start(argv, &signals, &control, &e) < 0) {
        log_line(LOG_ERROR, "start", -1, "%s", e.text);
        return 1;
    }
    settings_apply();
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    int errnum = pthread_create(&self.driver_thread, &attr, driver_main, NULL);
    pthread_attr_destroy(&attr);
    if (errnum) {
        log_line(LOG_ERROR, "start", -1, "thread: %s", strerror(errnum));
        return 1;
    }
    pthread_setname_np(self.driver_thread, "driver");
    main_loop(signals, control, parent);
    return 0;
}
