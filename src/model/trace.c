#include "model/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "model/likes.h"
#include "model/plan.h"

void trace_done(struct trace *t) {
    for (uint32_t i = 0; i < t->users; i++) free(t->user[i]);
    free(t->user);
    free(t->user_at);
    free(t->job);
    *t = (struct trace){0};
}

static void *grow(void *array, size_t *cap, size_t need, size_t size) {
    if (need <= *cap) return array;
    *cap = need * 2 < 64 ? 64 : need * 2;
    array = realloc(array, *cap * size);
    if (!array) abort();
    return array;
}

/* ---- users ---- */

static uint32_t *place_of(const struct trace *t, const char *name, size_t len) {
    uint64_t h = 1469598103934665603ull;
    for (size_t i = 0; i < len; i++) h = (h ^ (uint8_t)name[i]) * 1099511628211ull;
    for (size_t at = h % t->table_cap;; at = (at + 1) % t->table_cap) {
        uint32_t u = t->user_at[at];
        if (u == PLAN_NONE || (strlen(t->user[u]) == len && memcmp(t->user[u], name, len) == 0)) return &t->user_at[at];
    }
}

static void table_make(struct trace *t, size_t cap) {
    free(t->user_at);
    t->table_cap = cap;
    t->user_at = malloc(cap * sizeof *t->user_at);
    if (!t->user_at) abort();
    for (size_t i = 0; i < cap; i++) t->user_at[i] = PLAN_NONE;
    for (uint32_t u = 0; u < t->users; u++) *place_of(t, t->user[u], strlen(t->user[u])) = u;
}

int trace_user(struct trace *t, const char *name, size_t len, uint32_t *ret, struct error *e) {
    if (!t->table_cap) table_make(t, 64);
    uint32_t *at = place_of(t, name, len);
    if (*at == PLAN_NONE) {
        if (t->users >= TRACE_USERS_MAX) return fail(e, -E2BIG, "there are more than %u users", TRACE_USERS_MAX);
        t->user = grow(t->user, &t->user_cap, t->users + 1u, sizeof *t->user);
        char *copy = malloc(len + 1);
        if (!copy) abort();
        memcpy(copy, name, len);
        copy[len] = 0;
        t->user[t->users] = copy;
        *at = t->users++;
        *ret = t->users - 1;
        if (t->users * 2u > t->table_cap) table_make(t, t->table_cap * 2);
        return 0;
    }
    *ret = *at;
    return 0;
}

/* ---- jobs ---- */

int trace_add(struct trace *t, const struct trace_job *j, struct error *e) {
    if (t->jobs >= TRACE_JOBS_MAX) return fail(e, -E2BIG, "there are more than %u jobs", TRACE_JOBS_MAX);
    t->job = grow(t->job, &t->job_cap, t->jobs + 1u, sizeof *t->job);
    t->job[t->jobs++] = *j;
    return 0;
}

/* Stable: those of one moment stay as they stood. */
static void merge_sort(struct trace_job *job, struct trace_job *room, uint32_t n) {
    if (n < 2) return;
    uint32_t half = n / 2, a = 0, b = half;
    merge_sort(job, room, half);
    merge_sort(job + half, room, n - half);
    if (job[half - 1].submit_ns <= job[half].submit_ns) return;
    memcpy(room, job, n * sizeof *job);
    for (uint32_t i = 0; i < n; i++)
        job[i] = a < half && (b >= n || room[a].submit_ns <= room[b].submit_ns) ? room[a++] : room[b++];
}

void trace_order(struct trace *t) {
    if (!t->jobs) return;
    struct trace_job *room = malloc(t->jobs * sizeof *room);
    if (!room) abort();
    merge_sort(t->job, room, t->jobs);
    free(room);
    int64_t first = t->job[0].submit_ns;
    for (uint32_t i = 0; i < t->jobs; i++) {
        t->job[i].submit_ns -= first;
        if (t->job[i].finish_by_ns) t->job[i].finish_by_ns -= first;
    }
}
