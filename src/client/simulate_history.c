/* The jobs that this machine's server remembers, as a trace. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_tree.h"
#include "client/job_table.h"
#include "client/server_ask.h"
#include "client/simulate.h"
#include "model/job.h"
#include "model/likes.h"

static int64_t ns_of(double s) { return isnan(s) ? 0 : llround(s * 1e9); }

static int get(const char *dir, const char *path, struct json_tree **ret, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    int r = server_ask(dir, "GET", path, NULL, &answer, e);
    return r < 0 ? r : json_tree_parse(answer.s, answer.len, ret, e);
}

/* One run of a job; what never ran says nothing. */
static int add_run(const struct json_tree *job, const struct json_tree *run, struct trace *t, struct error *e) {
    double started = job_number(run, "started"), ended = job_number(run, "ended");
    const char *user = job_text(job, "user");
    if (isnan(started) || isnan(ended) || ended < started) return 0;
    struct trace_job j = {.submit_ns = ns_of(job_number(job, "submitted")),
                          .run_ns = ns_of(ended - started),
                          .finish_by_ns = ns_of(job_number(job, "finish_by")),
                          .limit_ns = ns_of(job_number(job, "time_limit_s")),
                          .gpus = (int)job_number(job, "gpus"),
                          .priority = (int)fmax(fmin(job_number(job, "priority"), JOB_PRIORITY_MAX), -JOB_PRIORITY_MAX),
                          .like = likes_key(user, job_text(job, "name"))};
    if (j.gpus < 1 || j.submit_ns <= 0) return 0;
    if (j.limit_ns && j.limit_ns < j.run_ns) j.run_ns = j.limit_ns; /* it was ended, and that took a moment */
    int r = trace_user(t, user, strlen(user), &j.user, e);
    return r < 0 ? r : trace_add(t, &j, e);
}

/* Elements of an array are shown one by one only with the job itself. */
static int add_array(const char *dir, const struct json_tree *job, struct trace *t, struct error *e) {
    struct json_tree *whole;
    char path[64];
    snprintf(path, sizeof path, "/api/v1/jobs/%.0f", job_number(job, "id"));
    int r = get(dir, path, &whole, e);
    if (r < 0) return r;
    const struct json_tree *runs = json_tree_get(whole, "runs");
    for (size_t i = 0; i < json_tree_count(runs) && r >= 0; i++) r = add_run(job, json_tree_at(runs, i), t, e);
    json_tree_free(whole);
    return r;
}

static int add_page(const char *dir, const struct json_tree *page, struct simulate_view *v, struct trace *t,
                    struct error *e) {
    const struct json_tree *jobs = json_tree_get(page, "jobs");
    int r = 0;
    for (size_t i = 0; i < json_tree_count(jobs) && r >= 0; i++) {
        const struct json_tree *job = json_tree_at(jobs, i);
        if (job_number(job, "share_bytes") > 0)
            v->shares++;
        else if (job_number(json_tree_get(job, "elements"), "total") > 1)
            r = add_array(dir, job, t, e);
        else
            r = add_run(job, job, t, e);
    }
    return r;
}

/* As many machines as there are, if they are alike. */
static int machines(const char *dir, struct simulate_setup *s, struct error *e) {
    struct json_tree *root;
    int r = get(dir, "/api/v1/nodes", &root, e);
    if (r < 0) return r;
    const struct json_tree *nodes = json_tree_get(root, "nodes");
    uint32_t count = 0, most = 0;
    bool is_alike = true;
    for (size_t i = 0; i < json_tree_count(nodes); i++) {
        uint32_t gpus = (uint32_t)json_tree_count(json_tree_get(json_tree_at(nodes, i), "gpus"));
        if (!gpus) continue;
        is_alike &= !count || gpus == most;
        if (gpus > most) most = gpus;
        count++;
    }
    json_tree_free(root);
    if (!count) return fail(e, -EINVAL, "the server knows no GPUs; say --nodes and --gpus-per-node");
    if (!is_alike)
        return fail(e, -EINVAL, "the machines have different numbers of GPUs; say --nodes and --gpus-per-node");
    if (!s->nodes) s->nodes = count;
    if (!s->gpus_per_node) s->gpus_per_node = most;
    return 0;
}

/* Kept GPUs make jobs wait here, and in what is played they do not: whoever compares must know. */
static int reservations(const char *dir, struct simulate_view *v, struct error *e) {
    struct json_tree *root;
    int r = get(dir, "/api/v1/reservations", &root, e);
    if (r < 0) return r;
    v->reservations = (uint32_t)json_tree_count(json_tree_get(root, "reservations"));
    json_tree_free(root);
    return 0;
}

int simulate_history(const char *dir, struct simulate_view *v, struct trace *ret, struct error *e) {
    double before = NAN;
    int r = 0;
    v->source = "what this machine's server remembers";
    do {
        struct json_tree *page;
        char path[96];
        snprintf(path, sizeof path, "/api/v1/jobs?state=over&limit=1000");
        if (!isnan(before)) snprintf(path, sizeof path, "/api/v1/jobs?state=over&limit=1000&before=%.0f", before);
        r = get(dir, path, &page, e);
        if (r < 0) return r;
        r = add_page(dir, page, v, ret, e);
        before = job_number(page, "next");
        json_tree_free(page);
    } while (r >= 0 && !isnan(before));
    if (r >= 0 && (!v->setup.nodes || !v->setup.gpus_per_node)) r = machines(dir, &v->setup, e);
    if (r >= 0 && !ret->jobs) return fail(e, -EINVAL, "no job has run here yet; --trace plays those of a file");
    if (r >= 0) r = reservations(dir, v, e);
    if (r >= 0) trace_order(ret);
    return r;
}
