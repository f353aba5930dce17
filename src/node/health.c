#include "node/health.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "model/wire_health.h"
#include "node/health_check.h"
#include "node/jobs_own.h"
#include "node/seal.h"

#define HEALTHS_MAX 512
#define TRIES_MAX 64
#define STACK_BYTES (256 * 1024)

struct health {
    struct health *next;
    struct health_target of;
    bool is_over; /* its thread ends and frees it */
};

static struct {
    pthread_mutex_t lock; /* guards all of this, and is_over */
    pthread_cond_t ring;
    bool is_ready;
    struct health *list;
    unsigned count, tries;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- one run ---- */

static void target_done(struct health_target *t) {
    buf_done(&t->words);
    free(t->group);
}

/* False: it is over. */
static bool wait_until(struct health *h, int64_t at_ns) {
    pthread_mutex_lock(&self.lock);
    while (!h->is_over) {
        int64_t left_ns = at_ns - clock_boot_ns();
        if (left_ns <= 0) break;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t ns = until.tv_nsec + left_ns % NS_PER_S;
        until.tv_sec += left_ns / NS_PER_S + ns / NS_PER_S;
        until.tv_nsec = ns % NS_PER_S;
        pthread_cond_timedwait(&self.ring, &self.lock, &until);
    }
    bool goes_on = !h->is_over;
    pthread_mutex_unlock(&self.lock);
    return goes_on;
}

static void leave(struct health *h) {
    pthread_mutex_lock(&self.lock);
    for (struct health **at = &self.list; *at; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    self.count--;
    pthread_mutex_unlock(&self.lock);
    target_done(&h->of);
    free(h);
}

static void *look_after(void *arg) {
    struct health *h = arg;
    pthread_setname_np(pthread_self(), "health");
    for (int64_t due_ns = clock_boot_ns();;) {
        if (!wait_until(h, due_ns)) break;
        int64_t from_ns = clock_boot_ns();
        struct error e = {0};
        struct wire_health said = {.key = h->of.key, .is_good = health_check(&h->of, &e) >= 0};
        said.took_ms = (int32_t)((clock_boot_ns() - from_ns) / NS_PER_MS);
        if (!said.is_good) snprintf(said.text, sizeof said.text, "%.150s", e.text);
        pthread_mutex_lock(&self.lock);
        bool is_over = h->is_over;
        pthread_mutex_unlock(&self.lock);
        if (is_over) break;
        wire_put_health(jobs_say_begin(), &said);
        jobs_say_end();
        due_ns += h->of.spec.interval_ns;
        if (due_ns < clock_boot_ns()) due_ns = clock_boot_ns();
    }
    leave(h);
    return NULL;
}

/* ---- which runs ---- */

static void get_ready(void) {
    pthread_condattr_t how;
    if (self.is_ready) return;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&self.ring, &how);
    pthread_condattr_destroy(&how);
    self.is_ready = true;
}

/* What a check needs, taken out of the grant and its seal: nothing of it is the server's word. */
static int target_make(const struct run *run, struct health_target *t, struct error *e) {
    static struct wire_grant g; /* large; one thread */
    AUTO(buf_done) struct buf bytes = {0}, plain = {0};
    struct seal_context c;
    struct job_spec spec;
    int r = run_grant(&jobs_own.runs, run, &bytes, &g, e);
    if (r >= 0) r = seal_break(&g.sealed, &plain, &c, e);
    if (r >= 0) r = job_decode(g.sealed.record, g.sealed.record_len, &spec, e);
    if (r < 0) return r;
    buf_add(&t->words, spec.service.s, spec.service.len);
    const struct job_words words = job_words_of(&t->words);
    r = service_spec_read(&words, &t->spec, e);
    if (r < 0) return r;
    t->key = run->key;
    t->is_image = run->is_image;
    t->pid = run->said.pid;
    t->uid = c.uid;
    t->gid = c.gid;
    t->group = calloc(c.groups + 1u, sizeof *t->group);
    if (!t->group) abort();
    for (unsigned i = 0; i < c.groups; i++) {
        const uint8_t *p = c.group + 4ul * i;
        t->group[t->groups++] = p[0] | (gid_t)p[1] << 8 | (gid_t)p[2] << 16 | (gid_t)p[3] << 24;
    }
    t->settings = jobs_own.settings;
    snprintf(t->name, sizeof t->name, "%s", run->name);
    return 0;
}

static void begin(const struct run *run) {
    struct error e = {0};
    struct health *h = calloc(1, sizeof *h);
    if (!h) abort();
    int r = target_make(run, &h->of, &e);
    if (r >= 0 && h->of.spec.probe == SERVICE_UNPROBED) {
        target_done(&h->of);
        free(h);
        return;
    }
    pthread_mutex_lock(&self.lock);
    if (r >= 0 && self.count >= HEALTHS_MAX) r = fail(&e, -EAGAIN, "%u others are checked already", self.count);
    if (r >= 0) {
        h->next = self.list;
        self.list = h;
        self.count++;
    }
    pthread_mutex_unlock(&self.lock);
    if (r >= 0) {
        r = thread_start(look_after, h, STACK_BYTES, "a thread for checks", &e);
        if (r < 0) leave(h);
    } else {
        target_done(&h->of);
        free(h);
    }
    if (r < 0) log_line(LOG_ERROR, "health", -1, "run %s cannot be checked: %s", run->name, e.text);
}

void health_follow(const struct run *run) {
    if (!run->is_service) return;
    bool is_there = false;
    get_ready();
    pthread_mutex_lock(&self.lock);
    for (struct health *h = self.list; h; h = h->next) {
        if (strcmp(h->of.name, run->name) != 0 || h->is_over) continue;
        is_there = true;
        h->is_over = run->said.state != RUN_RUNNING;
    }
    pthread_cond_broadcast(&self.ring);
    pthread_mutex_unlock(&self.lock);
    if (!is_there && run->said.state == RUN_RUNNING) begin(run);
}

/* ---- TRY ---- */

struct trial {
    struct settings settings;
    uint64_t request;
    struct buf record;
};

static void answer(uint64_t request, int result, const struct error *e) {
    struct wire_tried said = {.request = request, .result = result < 0 ? result : 0};
    if (result < 0) snprintf(said.text, sizeof said.text, "%s", e->text);
    wire_put_tried(jobs_say_begin(), &said);
    jobs_say_end();
}

static void *try_it(void *arg) {
    struct trial *t = arg;
    struct job_spec spec;
    struct error e = {0};
    int r = job_decode(t->record.s, t->record.len, &spec, &e);
    if (r >= 0) r = health_try_spec(&t->settings, &spec, &e);
    answer(t->request, r, &e);
    buf_done(&t->record);
    free(t);
    pthread_mutex_lock(&self.lock);
    self.tries--;
    pthread_mutex_unlock(&self.lock);
    return NULL;
}

void health_try(const struct wire_frame *f) {
    struct wire_try ask;
    struct error e = {0};
    if (wire_get_try(f, &ask, &e) < 0) return;
    struct trial *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->settings = jobs_own.settings;
    t->request = ask.request;
    buf_add(&t->record, ask.record, ask.record_len);
    pthread_mutex_lock(&self.lock);
    bool is_full = self.tries >= TRIES_MAX;
    self.tries += !is_full;
    pthread_mutex_unlock(&self.lock);
    int r = is_full ? fail(&e, -EAGAIN, "too many services come at once; try again") : 0;
    if (r >= 0) {
        r = thread_start(try_it, t, STACK_BYTES, "a thread for a service", &e);
        if (r >= 0) return;
        pthread_mutex_lock(&self.lock);
        self.tries--;
        pthread_mutex_unlock(&self.lock);
    }
    answer(ask.request, r, &e);
    buf_done(&t->record);
    free(t);
}
