#include "client/job_news.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/job_table.h"
#include "client/server_ask.h"
#include "model/job.h"

/* ---- reading ---- */

static void copy(const struct json_tree *j, const char *key, char *ret, size_t room) {
    snprintf(ret, room, "%s", json_tree_text(json_tree_get(j, key), ""));
}
static double number(const struct json_tree *j, const char *key, double otherwise) {
    return json_tree_number(json_tree_get(j, key), otherwise);
}
static int64_t moment(const struct json_tree *j, const char *key) { return (int64_t)(number(j, key, 0) * 1e9); }

static void gpus_text(const struct json_tree *j, char *ret, size_t room) {
    job_list(json_tree_get(j, "gpu_names"), ret, room);
}

static bool is_state(const char *name, const char *of) { return strcmp(name, of) == 0; }

static void read_state(struct job_news *n) {
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++)
        if (is_state(n->state, job_state_name(s))) {
            n->is_over = job_state_is_over(s);
            n->is_running = s == JOB_GRANTED || s == JOB_RUNNING || s == JOB_ENDING;
        }
}

static void read_elements(const struct json_tree *j, struct job_news *n) {
    const struct json_tree *counts = json_tree_get(j, "elements"); /* of an array: how many are in which state */
    n->elements = (unsigned)number(counts, "total", 1);
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++) {
        unsigned in_it = (unsigned)number(counts, job_state_name(s), 0);
        if (s == JOB_DONE)
            n->done = in_it;
        else if (job_state_is_over(s))
            n->failed += in_it;
        else if (s != JOB_WAITING && s != JOB_HELD)
            n->running += in_it;
    }
}

static void read_run(const struct json_tree *j, struct job_news *n) {
    copy(j, "state", n->state, sizeof n->state);
    copy(j, "node", n->node, sizeof n->node);
    copy(j, "text", n->text, sizeof n->text);
    if (!*n->text) copy(j, "state_text", n->text, sizeof n->text);
    copy(j, "reason", n->reason, sizeof n->reason);
    copy(j, "insight", n->insight, sizeof n->insight);
    gpus_text(j, n->gpus, sizeof n->gpus);
    n->started_ns = moment(j, "started");
    n->ended_ns = moment(j, "ended");
    n->attempt = (int)number(j, "attempt", 0);
    n->signal = (int)number(j, "signal", 0);
    n->code = (int)number(j, "exit_code", 0);
    n->has_exit = n->signal > 0 || !isnan(number(j, "exit_code", NAN));
}

/* The last run of an element, or NULL where it has none yet. */
static const struct json_tree *run_of(const struct json_tree *root, int64_t element) {
    const struct json_tree *runs = json_tree_get(root, "runs"), *last = NULL;
    for (size_t i = 0; i < json_tree_count(runs); i++) {
        const struct json_tree *run = json_tree_at(runs, i);
        if (number(run, "element", -1) == (double)element &&
            (!last || number(run, "attempt", 0) >= number(last, "attempt", 0)))
            last = run;
    }
    return last;
}

bool job_news_read(const struct json_tree *root, int64_t element, struct job_news *ret) {
    struct job_news n = {0};
    if (isnan(number(root, "id", NAN))) return false;
    read_run(root, &n);
    copy(root, "user", n.user, sizeof n.user);
    copy(root, "name", n.name, sizeof n.name);
    copy(root, "why", n.why, sizeof n.why);
    copy(root, "sooner", n.sooner, sizeof n.sooner);
    n.place = (int)number(root, "place", 0);
    n.starts_ns = moment(root, "starts_at");
    copy(root, "stage", n.stage, sizeof n.stage);
    n.retries = (int)number(root, "retries", 0);
    read_state(&n);
    read_elements(root, &n);
    if (element >= 0) {
        const struct json_tree *run = run_of(root, element);
        bool is_job_over = n.is_over;
        n.is_over = n.is_running = false;
        n.elements = 1;
        snprintf(n.state, sizeof n.state, "%s", job_state_name(is_job_over ? JOB_CANCELLED : JOB_WAITING));
        if (run && !json_tree_is_true(json_tree_get(run, "again"))) read_run(run, &n); /* else another try follows */
        read_state(&n);
    }
    *ret = n;
    return true;
}

int job_news_ask(const char *dir, int64_t job, int64_t element, int wait_s, struct job_news *ret, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    struct json_tree *root;
    char path[128];
    int n = snprintf(path, sizeof path, "/api/v1/jobs/%lld", (long long)job);
    if (element >= 0) n += snprintf(path + n, sizeof path - (size_t)n, "?element=%lld", (long long)element);
    if (wait_s > 0 && *ret->stage)
        snprintf(path + n, sizeof path - (size_t)n, "%cwait=%d&stage=%s", element >= 0 ? '&' : '?', wait_s, ret->stage);
    int r = server_ask(dir, "GET", path, NULL, &answer, e);
    if (r < 0) return r;
    r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return fail_in(e, r, "the server's answer");
    bool is_good = job_news_read(root, element, ret);
    json_tree_free(root);
    return is_good ? 0 : fail(e, -EPROTO, "the server's answer is of another version");
}

int job_news_exit(const struct job_news *n) {
    if (n->elements > 1) return n->is_over && n->done == n->elements ? 0 : 1;
    if (!n->has_exit) return JOB_EXIT_NONE;
    return n->signal > 0 ? 128 + n->signal : n->code;
}

/* ---- again and again ---- */

struct job_watch {
    char dir[256];
    int64_t job, element;
    int every_s, fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_over, is_asking, is_urgent, is_new; /* under the lock, as is what follows */
    int result;
    struct error error;
    struct job_news news;
};

static void publish(struct job_watch *w, int result, const struct job_news *news, const struct error *e) {
    const uint64_t one = 1;
    pthread_mutex_lock(&w->lock);
    w->result = result;
    if (result >= 0) w->news = *news;
    if (result < 0) w->error = *e;
    w->is_new = true;
    pthread_mutex_unlock(&w->lock);
    ssize_t ignored = write(w->fd, &one, sizeof one);
    (void)ignored;
}

/* Waits, unless the server did that for us. False: nobody wants to know any more. */
static bool pause_between(struct job_watch *w, bool has_waited) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += w->every_s;
    pthread_mutex_lock(&w->lock);
    while (!has_waited && !w->is_over && !w->is_urgent)
        if (pthread_cond_timedwait(&w->wake, &w->lock, &until) == ETIMEDOUT) break;
    w->is_urgent = false;
    bool goes_on = w->is_asking = !w->is_over;
    pthread_mutex_unlock(&w->lock);
    return goes_on;
}

static void watch_drop(struct job_watch *w) {
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->wake);
    fd_done(&w->fd);
    free(w);
}

/* After a question: whether whoever asked has left meanwhile. Then all of it is ours to free. */
static bool is_left(struct job_watch *w) {
    pthread_mutex_lock(&w->lock);
    w->is_asking = false;
    bool is_left = w->is_over;
    pthread_mutex_unlock(&w->lock);
    return is_left;
}

static void *ask_on(void *ctx) {
    struct job_watch *w = ctx;
    struct job_news news = {0};
    bool has_waited;
    do {
        struct error e = {0};
        char before[sizeof news.stage];
        int64_t begin_ns = clock_boot_ns();
        memcpy(before, news.stage, sizeof before);
        int r = job_news_ask(w->dir, w->job, w->element, w->every_s, &news, &e);
        if (is_left(w)) {
            watch_drop(w);
            return NULL;
        }
        publish(w, r, &news, &e);
        bool is_same = strcmp(before, news.stage) == 0;
        has_waited = r >= 0 && *news.stage && !news.is_over &&
                     (!is_same || clock_boot_ns() - begin_ns > w->every_s * NS_PER_S / 2);
    } while (pause_between(w, has_waited));
    return NULL;
}

int job_watch_new(const char *dir, int64_t job, int64_t element, int every_s, struct job_watch **ret, struct error *e) {
    pthread_condattr_t attributes;
    struct job_watch *w = calloc(1, sizeof *w);
    if (!w) abort();
    *w = (struct job_watch){.job = job, .element = element, .every_s = every_s, .fd = -1, .is_asking = true};
    snprintf(w->dir, sizeof w->dir, "%s", dir);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = w->fd < 0 ? errno : pthread_create(&w->thread, NULL, ask_on, w);
    if (r) {
        fd_done(&w->fd);
        free(w);
        return fail_errno(e, r, "cannot follow the job");
    }
    *ret = w;
    return 0;
}

/* A question that the server has not answered yet is left to its thread. */
void job_watch_free(struct job_watch *w) {
    if (!w) return;
    pthread_t thread = w->thread;
    pthread_mutex_lock(&w->lock);
    w->is_over = true;
    bool is_asking = w->is_asking;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (is_asking) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    watch_drop(w);
}

int job_watch_fd(const struct job_watch *w) { return w->fd; }

void job_watch_now(struct job_watch *w) {
    pthread_mutex_lock(&w->lock);
    w->is_urgent = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

int job_watch_take(struct job_watch *w, struct job_news *ret, struct error *e) {
    uint64_t ignored;
    if (read(w->fd, &ignored, sizeof ignored) < 0 && errno != EAGAIN) return fail_errno(e, errno, "eventfd");
    pthread_mutex_lock(&w->lock);
    int r = !w->is_new ? 0 : w->result < 0 ? w->result : 1;
    if (r > 0) *ret = w->news;
    if (r < 0) *e = w->error;
    w->is_new = false;
    pthread_mutex_unlock(&w->lock);
    return r;
}
