/* The jobs that this machine's server remembers, as a trace: every attempt of every element, with what it asked for, what it
 * followed and when it began in truth. What cannot be played, or not as it was, is counted. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/job_table.h"
#include "client/server_ask.h"
#include "client/simulate.h"
#include "model/job.h"
#include "model/job_retry.h"
#include "model/likes.h"

#define RUNS_MOST 1000 /* that the server tells of one job */
#define WORD_ROOM 104

static int64_t ns_of(double s) { return isnan(s) ? 0 : llround(s * 1e9); }

int simulate_get(const char *dir, const char *path, struct json_tree **ret, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    int r = server_ask(dir, "GET", path, NULL, &answer, e);
    return r < 0 ? r : json_tree_parse(answer.s, answer.len, ret, e);
}

struct told { /* a job, and where its runs lie in the trace */
    int64_t id;
    uint32_t first, count;
};

struct history {
    const char *dir;
    struct simulate_view *view;
    struct trace *trace;
    struct told *job; /* by id */
    size_t jobs, cap;
    double now_s; /* the server's newest word: runs that go on are cut off there */
    struct error *e;
};

/* A number or a text of a list. */
static void word_of(const struct json_tree *j, char ret[WORD_ROOM]) {
    double number = json_tree_number(j, NAN);
    if (isnan(number))
        snprintf(ret, WORD_ROOM, "%s", json_tree_text(j, ""));
    else
        snprintf(ret, WORD_ROOM, "%.0f", number);
}

/* ---- one run ---- */

static void note(struct history *h, enum simulate_note_id id) { h->view->note[id]++; }

/* On its own machines it is where it was and gets what it named; elsewhere it may be anywhere. */
static void place(struct history *h, const struct json_tree *job, const struct json_tree *run, struct trace_job *j) {
    const struct simulate_machines *m = &h->view->machines;
    const struct json_tree *scope = json_tree_get(job, "scope"), *had = json_tree_get(run, "gpu_uuids");
    const char *node = job_text(job, "node");
    char word[WORD_ROOM];
    if (!h->view->setup.gpu) {
        if (json_tree_count(scope)) note(h, SIMULATE_NOTE_ELSEWHERE);
        return;
    }
    j->node = simulate_machines_node(m, node);
    if (json_tree_count(had)) j->gpu = simulate_machines_find(m, node, json_tree_text(json_tree_at(had, 0), ""));
    j->is_scoped = json_tree_count(scope) > 0;
    j->is_listed = j->is_scoped && strcmp(job_text(job, "origin"), "watchmen") == 0;
    j->scope_at = h->trace->list_len;
    for (size_t i = 0; i < json_tree_count(scope); i++) {
        word_of(json_tree_at(scope, i), word);
        uint32_t gpu = simulate_machines_find(m, node, word);
        if (gpu == PLAN_NONE) continue;
        trace_list_add(h->trace, gpu);
        j->scope_len++;
    }
}

static uint64_t bytes_of(const struct json_tree *job, const char *key) {
    double bytes = job_number(job, key);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* GPUs are held from the grant on. 1: it is in the trace now; 0: it never ran. */
static int add_run(struct history *h, const struct json_tree *job, const struct json_tree *run, uint32_t array,
                   uint32_t at_once) {
    double granted = job_number(run, "granted"), ended = job_number(run, "ended");
    double submitted = job_number(job, "submitted"), priority = job_number(job, "priority");
    const char *user = job_text(job, "user");
    if (isnan(granted) || isnan(submitted) || !(job_number(job, "gpus") >= 1)) return 0;
    if (isnan(ended)) {
        ended = fmax(h->now_s, granted);
        note(h, SIMULATE_NOTE_RUNNING);
    }
    if (isnan(job_number(run, "started")) && !isnan(job_number(run, "ended"))) return 0; /* it could not be started */
    struct trace_job j = {.submit_ns = ns_of(submitted),
                          .start_ns = ns_of(fmax(granted, submitted)),
                          .run_ns = ns_of(fmax(ended - granted, 0)),
                          .finish_by_ns = ns_of(job_number(job, "finish_by")),
                          .limit_ns = ns_of(job_number(job, "time_limit_s")),
                          .memory_bytes = bytes_of(job, "memory_bytes"),
                          .share_bytes = bytes_of(job, "share_bytes"),
                          .node = TRACE_NONE,
                          .array = array,
                          .at_once = at_once,
                          .gpu = TRACE_NONE,
                          .gpus = (int)fmin(job_number(job, "gpus"), JOB_GPUS_MAX),
                          .priority = (int)fmax(fmin(priority, JOB_PRIORITY_MAX), -JOB_PRIORITY_MAX),
                          .is_unlike = strcmp(job_text(run, "state"), "done") != 0,
                          .like = likes_key(user, job_text(job, "name"))};
    if (j.limit_ns && j.limit_ns < j.run_ns) j.run_ns = j.limit_ns; /* it was ended, and that took a moment */
    place(h, job, run, &j);
    int r = trace_user(h->trace, user, strlen(user), &j.user, h->e);
    if (r >= 0) r = trace_add(h->trace, &j, h->e);
    return r < 0 ? r : 1;
}

/* ---- one job ---- */

static bool is_open(const struct json_tree *job) {
    static const char *const open[] = {"waiting", "held", "starting", "running", "ending"};
    for (size_t i = 0; i < ARRAY_LEN(open); i++)
        if (strcmp(job_text(job, "state"), open[i]) == 0) return true;
    return false;
}

/* "1-100%8": 8. */
static uint32_t at_once_of(const struct json_tree *job) {
    const char *percent = strchr(job_text(job, "array"), '%');
    return percent ? (uint32_t)strtoul(percent + 1, NULL, 10) : 0;
}

static void times_list(void *ctx, const char *key, const struct json_tree *list) {
    unsigned *count = ctx;
    *count *= (unsigned)json_tree_count(list);
}

static unsigned elements_of(const struct json_tree *job) {
    unsigned count = 1, at_once;
    const struct json_tree *sweep = json_tree_get(job, "sweep");
    struct job_spec spec = {.array = job_text(job, "array")};
    struct error ignored;
    if (json_tree_type(sweep) == JSON_TREE_OBJECT)
        json_tree_each(sweep, times_list, &count);
    else if (*spec.array && job_elements(&spec, &count, &at_once, &ignored) < 0)
        count = 1;
    return count;
}

static double element_of(const struct json_tree *run) { return job_number(run, "element"); }

static bool is_same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* One attempt of an element follows the one before it. */
static void follow_attempts(struct history *h, const struct json_tree *runs, const uint32_t *number, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct json_tree *run = json_tree_at(runs, i);
        double attempt = job_number(run, "attempt");
        uint32_t before = TRACE_NONE;
        size_t before_at = 0;
        if (number[i] == TRACE_NONE || attempt <= 1) continue;
        for (size_t k = 0; k < count; k++) {
            const struct json_tree *other = json_tree_at(runs, k);
            if (number[k] != TRACE_NONE && job_number(other, "attempt") == attempt - 1 &&
                is_same(element_of(run), element_of(other))) {
                before = number[k];
                before_at = k;
            }
        }
        if (before == TRACE_NONE) continue;
        h->trace->job[number[i]].after_at = h->trace->list_len;
        h->trace->job[number[i]].after_len = 1;
        if (strcmp(job_text(json_tree_at(runs, before_at), "reason"), job_reason_text(JOB_BY_PREEMPT)) != 0)
            h->trace->job[number[i]].pause_ns = job_retry_pause_ns((int)attempt - 1);
        h->trace->afters++;
        trace_list_add(h->trace, before);
    }
}

/* Elements of an array, and attempts before the last, are told only with the job itself. */
static int add_runs(struct history *h, const struct json_tree *job) {
    struct json_tree *whole;
    char path[64];
    uint32_t number[RUNS_MOST], first = TRACE_NONE;
    snprintf(path, sizeof path, "/api/v1/jobs/%.0f", job_number(job, "id"));
    int r = simulate_get(h->dir, path, &whole, h->e);
    if (r < 0) return r;
    const struct json_tree *runs = json_tree_get(whole, "runs");
    size_t count = json_tree_count(runs) < RUNS_MOST ? json_tree_count(runs) : RUNS_MOST;
    unsigned elements = elements_of(job), ran = 0;
    for (size_t i = 0; i < count && r >= 0; i++) {
        const struct json_tree *run = json_tree_at(runs, i);
        number[i] = TRACE_NONE;
        r = add_run(h, job, run, first, at_once_of(job));
        if (r != 1) continue;
        number[i] = h->trace->jobs - 1;
        if (first == TRACE_NONE) first = number[i];
        ran += job_number(run, "attempt") == 1;
    }
    if (r >= 0) follow_attempts(h, runs, number, count);
    enum simulate_note_id why = count == RUNS_MOST ? SIMULATE_NOTE_UNTOLD
                                : is_open(job)     ? SIMULATE_NOTE_WAITING
                                                   : SIMULATE_NOTE_NEVER_RAN;
    if (r >= 0 && ran < elements) h->view->note[why] += elements - ran;
    json_tree_free(whole);
    return r;
}

static int add_job(struct history *h, const struct json_tree *job) {
    uint32_t first = h->trace->jobs;
    bool is_many = *job_text(job, "array") || json_tree_type(json_tree_get(job, "sweep")) == JSON_TREE_OBJECT;
    int r = is_many || job_number(job, "attempt") > 1 ? add_runs(h, job) : add_run(h, job, job, TRACE_NONE, 0);
    if (r < 0) return r;
    if (h->trace->jobs == first && !is_many) note(h, is_open(job) ? SIMULATE_NOTE_WAITING : SIMULATE_NOTE_NEVER_RAN);
    if (h->jobs == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 1024;
        h->job = realloc(h->job, h->cap * sizeof *h->job);
        if (!h->job) abort();
    }
    h->job[h->jobs++] = (struct told){(int64_t)job_number(job, "id"), first, h->trace->jobs - first};
    return 0;
}

/* ---- who followed whom ---- */

static const struct told *told_find(const struct history *h, int64_t id) {
    size_t from = 0, to = h->jobs;
    while (from < to) {
        size_t mid = (from + to) / 2;
        if (h->job[mid].id == id) return &h->job[mid];
        if (h->job[mid].id < id)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

static bool is_followed(const struct trace *t, uint32_t number) { /* by its own next attempt */
    for (uint32_t i = number + 1; i < t->jobs && t->job[i].submit_ns == t->job[number].submit_ns; i++)
        for (uint32_t k = 0; k < t->job[i].after_len; k++)
            if (t->list[t->job[i].after_at + k] == number) return true;
    return false;
}

/* Appends the last attempts of those that a job follows. */
static void list_afters(struct history *h, const struct json_tree *after) {
    for (size_t i = 0; i < json_tree_count(after); i++) {
        char word[WORD_ROOM];
        word_of(json_tree_at(after, i), word);
        const struct told *other = told_find(h, strtoll(word, NULL, 10));
        for (uint32_t k = 0; other && k < other->count; k++)
            if (!is_followed(h->trace, other->first + k)) trace_list_add(h->trace, other->first + k);
    }
}

/* A job's first attempts come when those are over. Smaller numbers were read before. */
static void follow_jobs(struct history *h, const struct json_tree *job) {
    const struct json_tree *after = json_tree_get(job, "after");
    const struct told *me = &h->job[h->jobs - 1];
    struct trace *t = h->trace;
    bool is_alone = false;
    for (uint32_t k = 0; k < me->count && json_tree_count(after); k++) {
        struct trace_job *j = &t->job[me->first + k];
        if (j->after_len) continue; /* it follows the attempt before it */
        j->after_at = t->list_len;
        list_afters(h, after);
        j->after_len = t->list_len - j->after_at;
        t->afters += j->after_len > 0;
        is_alone |= !j->after_len;
    }
    if (is_alone) note(h, SIMULATE_NOTE_ALONE);
}

/* ---- all of them ---- */

/* The newest come first, in pages: played are the oldest first, as they were handed in. */
static int add_pages(struct history *h, struct json_tree **page, size_t pages) {
    for (size_t p = pages; p-- > 0;) {
        const struct json_tree *jobs = json_tree_get(page[p], "jobs");
        for (size_t i = json_tree_count(jobs); i-- > 0;) {
            int r = add_job(h, json_tree_at(jobs, i));
            if (r < 0) return r;
            follow_jobs(h, json_tree_at(jobs, i));
        }
    }
    return 0;
}

static int read_all(struct history *h) {
    struct json_tree **page = NULL;
    size_t pages = 0;
    double before = NAN;
    int r = 0;
    do {
        char path[96];
        snprintf(path, sizeof path, "/api/v1/jobs?limit=1000");
        if (!isnan(before)) snprintf(path, sizeof path, "/api/v1/jobs?limit=1000&before=%.0f", before);
        page = realloc(page, (pages + 1) * sizeof(struct json_tree *));
        if (!page) abort();
        r = simulate_get(h->dir, path, &page[pages], h->e);
        if (r < 0) break;
        before = job_number(page[pages++], "next");
    } while (!isnan(before));
    if (r >= 0) r = add_pages(h, page, pages);
    for (size_t i = 0; i < pages; i++) json_tree_free(page[i]);
    free(page);
    return r;
}

int simulate_history(const char *dir, struct simulate_view *v, struct trace *ret, struct error *e) {
    struct history h = {.dir = dir, .view = v, .trace = ret, .e = e};
    struct json_tree *root;
    v->source = "what this machine's server remembers";
    v->has_truth = v->setup.is_close = true;
    int r = simulate_machines(dir, v, e);
    if (r < 0) return r;
    r = simulate_get(dir, "/api/v1/reservations", &root, e); /* which tells the server's time */
    if (r < 0) return r;
    h.now_s = job_number(root, "time");
    json_tree_free(root);
    r = read_all(&h);
    free(h.job);
    if (r < 0) return r;
    if (!ret->jobs) return fail(e, -EINVAL, "no job has run here yet; --trace plays those of a file");
    trace_order(ret);
    return simulate_reserved(dir, v, e);
}
