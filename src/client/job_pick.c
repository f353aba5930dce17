#include "client/job_pick.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_tree.h"
#include "client/job_table.h"
#include "client/server_ask.h"
#include "model/job.h"

static void count_member(void *ctx, const char *key, const struct json_tree *value) { ++*(size_t *)ctx; }

/* A number that people see as the element's place, or -1. */
static int64_t place_of(const struct json_tree *job, bool is_sweep, int64_t number) {
    const struct job_spec spec = {.array = job_text(job, "array")};
    double total = job_number(json_tree_get(job, "elements"), "total");
    if (is_sweep) return number >= 1 && (double)number <= total ? number - 1 : -1;
    return job_element_find(&spec, number);
}

static int find_element(const struct job_id *id, const struct json_tree *job, uint32_t *ret, struct error *e) {
    size_t sweeps = 0;
    json_tree_each(json_tree_get(job, "sweep"), count_member, &sweeps);
    bool is_array = sweeps || *job_text(job, "array");
    long long number = id->job;
    if (!is_array && id->element >= 0)
        return fail(e, -EINVAL, "job %lld is no array: it has one log, %lld", number, number);
    if (is_array && id->element < 0)
        return fail(e, -EINVAL, "job %lld is an array: name one of it, as in %lld.3", number, number);
    int64_t place = is_array ? place_of(job, sweeps > 0, id->element) : 0;
    if (place < 0) return fail(e, -EINVAL, "job %lld has no number %lld", number, (long long)id->element);
    *ret = (uint32_t)place;
    return 0;
}

static bool is_this_machine(const char *node) {
    char host[64] = "";
    if (gethostname(host, sizeof host - 1) < 0 || !*host) strcpy(host, "localhost"); /* as a node names itself */
    return strcmp(node, host) == 0;
}

int job_pick(const char *dir, const struct job_id *id, struct job_pick *ret, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    struct job_pick p = {0};
    struct json_tree *root;
    char path[96];
    int n = snprintf(path, sizeof path, "/api/v1/jobs/%lld", (long long)id->job);
    if (id->element >= 0) snprintf(path + n, sizeof path - (size_t)n, "?element=%lld", (long long)id->element);
    int r = server_ask(dir, "GET", path, NULL, &answer, e);
    if (r < 0) return r;
    r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return fail_in(e, r, "the server's answer");
    r = find_element(id, root, &p.place, e);
    if (r >= 0 && !job_news_read(root, id->element, &p.news))
        r = fail(e, -EPROTO, "the server's answer is of another version");
    double bytes = job_number(root, "log_bytes");
    p.log_bytes = bytes > 0 ? (uint64_t)bytes : 0;
    p.is_pty = json_tree_is_true(json_tree_get(root, "pty"));
    p.is_here = is_this_machine(p.news.node);
    json_tree_free(root);
    if (r >= 0) *ret = p;
    return r;
}
