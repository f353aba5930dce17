#include "node/outside.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/thread.h"
#include "model/wire_notice.h"
#include "node/engine.h"
#include "node/faults.h"
#include "node/process.h"
#include "node/tasks.h"
#include "node/terminal.h"
#include "node/tracks.h"

#define STACK_BYTES (256 * 1024)
#define SEEN_MAX 256

/* One process, as the tracker sees it now. */
struct seen {
    int32_t pid, device;
    uint64_t ticks;
    uint32_t uid;
    bool is_contained, is_drawing, is_wanted;
    char user[64], comm[32], gpus[48];
};

/* And what became of it so far. */
struct entry {
    struct seen is;
    struct outside of;
    int64_t ends_ns; /* wall clock */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool is_news, is_known, is_on; /* on: the thread was started */
    struct settings settings;
    unsigned seen_count, entries, wanted_count;
    struct seen seen[SEEN_MAX];
    struct entry entry[SEEN_MAX]; /* the thread's; others read step and end under the lock */
    char wanted[WIRE_DEVICES_MAX][96];
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

/* ---- what the server says ---- */

bool outside_take(const struct wire_frame *f) {
    struct wire_wanted list;
    char uuid[96];
    int64_t since_ns;
    if (f->type != WIRE_JOB_WANTED) return false;
    if (wire_get_wanted(f, &list, NULL) < 0) return true;
    pthread_mutex_lock(&self.lock);
    self.wanted_count = 0;
    while (wire_next_wanted(&list, self.wanted[self.wanted_count])) self.wanted_count++;
    self.is_known = true;
    pthread_mutex_unlock(&self.lock);
    while (wire_next_sound(&list, uuid, &since_ns)) faults_sound(uuid, since_ns);
    return true;
}

void outside_link_down(void) {
    pthread_mutex_lock(&self.lock);
    self.is_known = false;
    pthread_mutex_unlock(&self.lock);
}

static bool is_wanted(const char *uuid) {
    for (unsigned i = 0; i < self.wanted_count; i++)
        if (strcmp(self.wanted[i], uuid) == 0) return true;
    return false;
}

/* ---- who is there ---- */

/* "GPU 3", "GPUs 0, 1" */
static void add_gpu(struct seen *s, int32_t index) {
    size_t n = strlen(s->gpus);
    if (!n)
        snprintf(s->gpus, sizeof s->gpus, "GPU %d", index);
    else if (n + 8 < sizeof s->gpus) {
        bool is_second = s->gpus[3] == ' ';
        if (is_second) {
            memmove(s->gpus + 4, s->gpus + 3, n - 2);
            s->gpus[3] = 's';
        }
        snprintf(s->gpus + n + is_second, sizeof s->gpus - n - is_second, ", %d", index);
    }
}

static void look_at(const struct rings_one *one, uint32_t d, struct seen *s) {
    int bit = tracker.bit[one->first + d];
    const struct inventory *inv = ring_inventory(&one->ring, d);
    if (bit < 0) return;
    const struct ring_processes *p = &tracker.gpu[bit].processes;
    for (uint32_t i = 0; i < p->count; i++) {
        if ((int32_t)p->of[i].pid != s->pid) continue;
        if (p->of[i].kinds & (PROCESS_COMPUTE | PROCESS_MPS)) s->is_drawing = false;
        s->is_wanted |= is_wanted(inv->uuid);
        if (inv->parent < 0) add_gpu(s, inv->index);
        return;
    }
}

static bool is_contained(const struct track *t) {
    return t->k.kind == BELONGS_TO_LXC || (t->k.kind >= BELONGS_TO_CONTAINERD && t->k.kind <= BELONGS_TO_DOCKER);
}

/* A container that was added through gpumgr has its GPUs by our leave. */
struct asked {
    const char *name;
    bool is_holder;
};

static void on_holder(void *ctx, const struct engine_facts *f, const char *labels) {
    struct asked *a = ctx;
    a->is_holder |= strcmp(f->name, a->name) == 0;
}

static bool is_let_in(const struct track *t) {
    struct asked a = {.name = t->k.container};
    if (tracker.engine && *a.name) engine_each_with(tracker.engine, ENGINE_GPUS_LABEL, on_holder, &a);
    return a.is_holder;
}

static void see(const struct track *t) {
    struct seen *s = &self.seen[self.seen_count];
    const char *user = t->slot < TABLE_SLOTS ? tracker.said[t->slot].user : NULL;
    *s = (struct seen){.pid = t->pid,
                       .device = tracker_device(t),
                       .ticks = t->k.ticks,
                       .uid = t->k.uid,
                       .is_contained = is_contained(t),
                       .is_drawing = true};
    snprintf(s->user, sizeof s->user, "%s", user ? user : "");
    snprintf(s->comm, sizeof s->comm, "%s", t->k.comm);
    for (unsigned i = 0; i < tracker.rings.count; i++) {
        const struct rings_one *one = &tracker.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++) look_at(one, d, s);
    }
    self.seen_count += s->gpus[0] != 0;
}

void outside_look(void) {
    pthread_mutex_lock(&self.lock);
    bool is_due = self.is_on && tracker.knows_pids && (tracker.settings.outside != OUTSIDE_SHOW || self.entries);
    if (is_due) {
        self.seen_count = 0;
        self.settings = tracker.settings;
        for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
            for (const struct track *t = tracker.bucket[b]; t && self.seen_count < SEEN_MAX; t = t->next)
                if (t->is_live && !t->gone_ns && t->k.ticks && track_is_listed(t) && !track_is_ours(t) && !is_let_in(t))
                    see(t);
        self.is_news = true;
        pthread_cond_signal(&self.news);
    }
    pthread_mutex_unlock(&self.lock);
}

/* ---- who is left alone ---- */

static bool is_spared(const struct seen *s, const struct settings *settings) {
    char link[40], path[PATH_MAX];
    if (s->uid == UINT32_MAX || s->is_drawing || s->pid <= 1) return true;
    if (s->uid == 0 && !s->is_contained) return true; /* the system's own */
    snprintf(link, sizeof link, "/proc/%d/exe", s->pid);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return outside_is_excepted(settings->outside_except, s->user, path);
}

/* ---- acting ---- */

static void name_of(const struct seen *s, char *ret, size_t room) {
    snprintf(ret, room, "process %d (%.16s%s%.24s)", s->pid, s->comm, *s->user ? ", " : "", s->user);
}

static void PRINTF(4, 5) say(const struct seen *s, int severity, const char *kind, const char *fmt, ...) {
    char name[80], what[160], text[240];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    name_of(s, name, sizeof name);
    snprintf(text, sizeof text, "%s %s", name, what);
    tasks_gpu_event(severity, kind, s->device, s->pid, text);
}

/* In a container he is another one than of that number here: just its own terminal. */
static unsigned write_to(const struct seen *s, const char *text) {
    return terminal_write(s->is_contained ? UINT32_MAX : s->uid, s->pid, s->ticks, text);
}

static const char *why_of(const struct settings *settings) {
    return settings->outside_when == 0 ? ", and others wait for it" : "";
}

static void warn(const struct entry *e, const struct settings *settings) {
    const struct seen *s = &e->is;
    char host[65] = "", text[480], at[40] = "", until[80] = "";
    gethostname(host, sizeof host - 1);
    if (e->ends_ns) number_time_here(e->ends_ns, clock_real_ns(), at, sizeof at);
    if (*at) snprintf(until, sizeof until, " It will be ended at %s unless it has left the GPU by then.", at);
    snprintf(
        text, sizeof text,
        "gpumgr on %s: your process %d (%.32s) uses %s outside the queue%s.%s Start it by `gpumgr run -- COMMAND` to "
        "have GPUs of your own.",
        host, s->pid, s->comm, s->gpus, why_of(settings), until);
    unsigned n = write_to(s, text);
    say(s, EVENT_INFO, "outside_warned", "uses %s outside the queue: warned on %u terminal%s%s%s", s->gpus, n,
        n == 1 ? "" : "s", *at ? ", to be ended at " : "", at);
}

static void take_back(const struct entry *e) {
    char text[240];
    snprintf(text, sizeof text, "gpumgr: your process %d (%.32s) may go on using %s; nobody waits for it now.",
             e->is.pid, e->is.comm, e->is.gpus);
    (void)write_to(&e->is, text);
    say(&e->is, EVENT_INFO, "outside_spared", "may go on using %s: its warning is taken back", e->is.gpus);
}

/* Through a pidfd, and only if it is still the one that was warned. */
static int send_signal(const struct seen *s, int signo) {
    AUTO(fd_done) int fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
    if (fd < 0) return errno == ESRCH ? 0 : -errno;
    if (!process_is_there("/proc", s->pid, s->ticks)) return 0;
    int r = (int)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
    return r < 0 && errno != ESRCH ? -errno : 0;
}

static void end(struct entry *e, int signo, const struct settings *settings) {
    const struct seen *s = &e->is;
    int r = send_signal(s, signo);
    if (r < 0) {
        e->of.step = OUTSIDE_LEFT;
        say(s, EVENT_WARNING, "outside_left", "uses %s outside the queue and cannot be ended: %s", s->gpus,
            strerror(-r));
    } else if (signo == SIGTERM) {
        char text[240];
        snprintf(text, sizeof text, "gpumgr: your process %d (%.32s) is ended now: it uses %s outside the queue%s.",
                 s->pid, s->comm, s->gpus, why_of(settings));
        (void)write_to(s, text);
        say(s, EVENT_WARNING, "outside_ended", "used %s outside the queue%s: told to end", s->gpus, why_of(settings));
    } else {
        say(s, EVENT_WARNING, "outside_killed", "used %s outside the queue and did not end: killed", s->gpus);
    }
}

static void act(struct entry *e, enum outside_act what, const struct settings *settings) {
    switch (what) {
    case OUTSIDE_DO_NOTHING: break;
    case OUTSIDE_DO_WARN: warn(e, settings); break;
    case OUTSIDE_DO_TAKE_BACK: take_back(e); break;
    case OUTSIDE_DO_TERM: end(e, SIGTERM, settings); break;
    case OUTSIDE_DO_KILL: end(e, SIGKILL, settings); break;
    }
}

/* ---- the thread ---- */

static struct entry *find(int32_t pid, uint64_t ticks) {
    for (unsigned i = 0; i < self.entries; i++)
        if (self.entry[i].is.pid == pid && self.entry[i].is.ticks == ticks) return &self.entry[i];
    return NULL;
}

/* Under the lock: those who are there, with what is remembered of each. */
static unsigned take_seen(struct entry *to) {
    for (unsigned i = 0; i < self.seen_count; i++) {
        const struct entry *was = find(self.seen[i].pid, self.seen[i].ticks);
        to[i] = was ? *was : (struct entry){0};
        to[i].is = self.seen[i];
    }
    return self.seen_count;
}

static struct outside_policy policy_of(const struct settings *s) {
    return (struct outside_policy){.mode = (enum outside_mode)s->outside,
                                   .warn_ns = s->outside_warn_s * NS_PER_S,
                                   .end_ns = s->outside_end_s * NS_PER_S,
                                   .grace_ns = s->jobs_grace_s * NS_PER_S};
}

static enum outside_act decide(struct entry *e, const struct settings *settings, bool is_known) {
    const struct outside_policy p = policy_of(settings);
    bool is_always = settings->outside_when != 0;
    struct outside_facts f = {.now_ns = clock_boot_ns(),
                              .is_known = is_known || is_always,
                              .is_wanted = e->is.is_wanted || is_always,
                              .is_spared = is_spared(&e->is, settings)};
    enum outside_act what = outside_step(&e->of, &p, &f);
    int64_t ends_ns = outside_ends_ns(&e->of, &p);
    e->ends_ns = ends_ns ? clock_real_ns() + ends_ns - f.now_ns : 0;
    return what;
}

static void *run(void *arg) {
    static struct entry now[SEEN_MAX];
    static struct settings settings;
    pthread_setname_np(pthread_self(), "outside");
    for (;;) {
        pthread_mutex_lock(&self.lock);
        while (!self.is_news) pthread_cond_wait(&self.news, &self.lock);
        self.is_news = false;
        settings = self.settings;
        bool is_known = self.is_known;
        unsigned n = take_seen(now);
        pthread_mutex_unlock(&self.lock);
        for (unsigned i = 0; i < n; i++) act(&now[i], decide(&now[i], &settings, is_known), &settings);
        pthread_mutex_lock(&self.lock);
        memcpy(self.entry, now, n * sizeof now[0]);
        self.entries = n;
        pthread_mutex_unlock(&self.lock);
    }
    return NULL;
}

int outside_start(struct error *e) {
    int r = thread_start(run, NULL, STACK_BYTES, "those outside the queue", e);
    pthread_mutex_lock(&self.lock); /* the tracker looks already */
    self.is_on = r >= 0;
    pthread_mutex_unlock(&self.lock);
    return r;
}

enum outside_step outside_of(int32_t pid, uint64_t ticks, int64_t *ends_ns) {
    pthread_mutex_lock(&self.lock);
    const struct entry *e = find(pid, ticks);
    enum outside_step step = e ? (enum outside_step)e->of.step : OUTSIDE_SEEN;
    *ends_ns = e && step == OUTSIDE_WARNED ? e->ends_ns : 0;
    pthread_mutex_unlock(&self.lock);
    return step;
}
