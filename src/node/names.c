#include "node/names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "node/person.h"

#define BUCKETS 256u
#define ENTRIES_MAX 4096
#define FORGET_NS (60 * NS_PER_S)
#define RECHECK_NS (10 * NS_PER_S) /* without a pidfd */
#define STUCK_NS (3 * NS_PER_S)
#define STUCK_MAX 4 /* threads given up on; more would pile up */
#define STACK_BYTES (128 * 1024)

enum entry_state { ENTRY_ASKED, ENTRY_WORKED_ON, ENTRY_KNOWN };

struct entry {
    struct entry *next;    /* in its bucket */
    struct entry *waiting; /* in the queue */
    uint32_t pid;
    enum entry_state state;
    int pidfd;        /* -1: none */
    bool is_hopeless; /* a thread was lost to it: not asked again */
    int64_t seen_ns, known_ns;
    struct person who;
};

#define USERS 64
#define USER_KEPT_NS (600 * NS_PER_S) /* people are renamed */

enum user_state { USER_FREE, USER_ASKED, USER_WORKED_ON, USER_KNOWN };

/* Users outlive their processes: one that ended before anybody looked still has an owner. */
struct user {
    enum user_state state;
    uint32_t uid;
    int64_t known_ns;
    char name[64];
};

/* One lock for all of it, held for moments only: never while /proc or a user database is asked. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct entry *bucket[BUCKETS];
    struct entry *queue, **queue_end;
    unsigned count, stuck;
    struct user user[USERS];
    unsigned users_asked;
    unsigned generation; /* of the thread that counts; older ones end when they come back */
    bool has_thread;
    int64_t busy_ns; /* since when it works on one pid; 0: it waits */
    _Atomic uint32_t version;
    char proc[64];
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

void names_init(const char *proc) {
    self.queue_end = &self.queue;
    snprintf(self.proc, sizeof self.proc, "%s", proc);
}

static struct entry **place(uint32_t pid) {
    struct entry **at = &self.bucket[pid % BUCKETS];
    while (*at && (*at)->pid != pid) at = &(*at)->next;
    return at;
}

/* ---- the thread ---- */

/* Where a user is, or may be: in place of the one that was learnt longest ago. NULL: all are being asked for. */
static struct user *user_place(uint32_t uid) {
    struct user *oldest = NULL;
    for (unsigned i = 0; i < USERS; i++) {
        struct user *one = &self.user[i];
        if (one->state != USER_FREE && one->uid == uid) return one;
        bool is_asked = one->state == USER_ASKED || one->state == USER_WORKED_ON;
        if (!is_asked && (!oldest || one->known_ns < oldest->known_ns)) oldest = one;
    }
    if (oldest) *oldest = (struct user){.uid = uid};
    return oldest;
}

static void user_learnt(struct user *u, const char *name) {
    u->state = USER_KNOWN;
    u->known_ns = clock_boot_ns();
    snprintf(u->name, sizeof u->name, "%s", name ? name : "");
}

static void answer(struct entry *e, struct person *who, int pidfd, int64_t now_ns) {
    person_done(&e->who);
    e->who = *who;
    if (e->pidfd >= 0) close(e->pidfd);
    e->pidfd = pidfd;
    e->known_ns = now_ns;
    e->state = ENTRY_KNOWN;
    atomic_fetch_add(&self.version, 1);
}

/* The pidfd first: what is read after it and found alive then is of that very process. */
static void work_on(unsigned generation) {
    struct entry *e = self.queue;
    uint32_t pid = e->pid;
    self.queue = e->waiting;
    if (!self.queue) self.queue_end = &self.queue;
    e->waiting = NULL;
    e->state = ENTRY_WORKED_ON;
    self.busy_ns = clock_boot_ns();
    pthread_mutex_unlock(&self.lock);

    struct person who = {.uid = UINT32_MAX};
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (pidfd >= 0 || errno != ESRCH) person_read(&who, self.proc, pid);

    pthread_mutex_lock(&self.lock);
    if (self.generation != generation) { /* given up on: the entry may be gone */
        if (pidfd >= 0) close(pidfd);
        person_done(&who);
        return;
    }
    self.busy_ns = 0;
    e = *place(pid); /* not forgotten while it is worked on */
    struct user *u = who.user ? user_place(who.uid) : NULL;
    if (u && u->state != USER_ASKED && u->state != USER_WORKED_ON) user_learnt(u, who.user);
    answer(e, &who, pidfd, clock_boot_ns());
}

/* Under the lock, as work_on. */
static void work_on_user(unsigned generation) {
    struct user *u = self.user;
    while (u->state != USER_ASKED) u++;
    uint32_t uid = u->uid;
    u->state = USER_WORKED_ON;
    self.users_asked--;
    self.busy_ns = clock_boot_ns();
    pthread_mutex_unlock(&self.lock);
    char *name = person_user(uid);
    pthread_mutex_lock(&self.lock);
    user_learnt(u, name);
    if (self.generation == generation) self.busy_ns = 0;
    free(name);
}

static void *run(void *arg) {
    unsigned generation = (unsigned)(uintptr_t)arg;
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 0); /* whoever asked first may be in a hurry: this is not */
    pthread_mutex_lock(&self.lock);
    while (self.generation == generation) {
        if (self.queue)
            work_on(generation);
        else if (self.users_asked)
            work_on_user(generation);
        else
            pthread_cond_wait(&self.work, &self.lock);
    }
    self.stuck--;
    pthread_mutex_unlock(&self.lock);
    return NULL;
}

/* Under the lock. */
static void start_thread(void) {
    struct error e;
    self.has_thread = thread_start(run, (void *)(uintptr_t)self.generation, STACK_BYTES, "names", &e) >= 0;
}

/* Under the lock. A thread that does not come back from one pid must not keep the others without a name. */
static void mind_thread(int64_t now_ns) {
    if (!self.has_thread) start_thread();
    if (!self.busy_ns || now_ns - self.busy_ns < STUCK_NS || self.stuck >= STUCK_MAX) return;
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct entry *e = self.bucket[b]; e; e = e->next) {
            if (e->state != ENTRY_WORKED_ON) continue;
            struct person nobody = {.uid = UINT32_MAX};
            log_line(LOG_WARN, "names", -1, "process %u does not let itself be looked at: it stays without a name",
                     e->pid);
            answer(e, &nobody, -1, now_ns);
            e->is_hopeless = true;
        }
    self.stuck++;
    self.generation++;
    self.busy_ns = 0;
    start_thread();
}

/* ---- the main thread ---- */

/* Under the lock. */
static void ask(struct entry *e) {
    e->state = ENTRY_ASKED;
    e->waiting = NULL;
    *self.queue_end = e;
    self.queue_end = &e->waiting;
    pthread_cond_signal(&self.work);
}

static struct entry *entry_add(struct entry **at, uint32_t pid) {
    if (self.count >= ENTRIES_MAX) return NULL;
    struct entry *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->pid = pid;
    e->pidfd = -1;
    e->who.uid = UINT32_MAX;
    *at = e;
    self.count++;
    ask(e);
    return e;
}

void names_look(struct wire_process *p, int64_t now_ns) {
    p->uid = UINT32_MAX;
    p->start_boot_ns = 0;
    p->user[0] = p->comm[0] = p->command[0] = 0;
    pthread_mutex_lock(&self.lock);
    struct entry **at = place(p->of.pid), *e = *at;
    if (!e) e = entry_add(at, p->of.pid);
    if (e) {
        e->seen_ns = now_ns;
        if (e->state == ENTRY_KNOWN && e->pidfd < 0 && !e->is_hopeless && now_ns - e->known_ns > RECHECK_NS) ask(e);
        p->uid = e->who.uid;
        p->start_boot_ns = e->who.start_boot_ns;
        snprintf(p->user, sizeof p->user, "%s", e->who.user ? e->who.user : "");
        snprintf(p->comm, sizeof p->comm, "%s", e->who.comm);
        snprintf(p->command, sizeof p->command, "%s", e->who.command ? e->who.command : "");
    }
    mind_thread(now_ns);
    pthread_mutex_unlock(&self.lock);
}

bool names_user(uint32_t uid, char *ret, size_t room) {
    int64_t now_ns = clock_boot_ns();
    pthread_mutex_lock(&self.lock);
    struct user *u = user_place(uid);
    bool is_known = u && u->known_ns, is_old = is_known && now_ns - u->known_ns > USER_KEPT_NS;
    if (is_known) snprintf(ret, room, "%s", u->name);
    if (u && (u->state == USER_FREE || (u->state == USER_KNOWN && is_old))) {
        u->state = USER_ASKED;
        self.users_asked++;
        pthread_cond_signal(&self.work);
    }
    mind_thread(now_ns);
    pthread_mutex_unlock(&self.lock);
    return is_known;
}

uint32_t names_version(void) { return atomic_load(&self.version); }

static void forget(struct entry **at) {
    struct entry *e = *at;
    *at = e->next;
    if (e->pidfd >= 0) close(e->pidfd);
    person_done(&e->who);
    free(e);
    self.count--;
}

/* One call for all pidfds: readable is gone. Answers in the order of the buckets. */
static unsigned poll_all(struct pollfd *fds, unsigned room) {
    unsigned n = 0;
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct entry *e = self.bucket[b]; e && n < room; e = e->next)
            if (e->pidfd >= 0) fds[n++] = (struct pollfd){.fd = e->pidfd, .events = POLLIN};
    return n && poll(fds, n, 0) > 0 ? n : 0;
}

void names_tidy(int64_t now_ns) {
    static struct pollfd fds[ENTRIES_MAX];
    pthread_mutex_lock(&self.lock);
    unsigned n = poll_all(fds, ENTRIES_MAX), k = 0;
    for (unsigned b = 0; b < BUCKETS && self.count; b++)
        for (struct entry **at = &self.bucket[b]; *at;) {
            struct entry *e = *at;
            bool is_gone = e->pidfd >= 0 && k < n && fds[k++].revents;
            bool is_old = now_ns - e->seen_ns > FORGET_NS;
            if (e->state == ENTRY_KNOWN && (is_gone || is_old))
                forget(at);
            else
                at = &e->next;
        }
    if (self.count) mind_thread(now_ns);
    pthread_mutex_unlock(&self.lock);
}
