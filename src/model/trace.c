#include "model/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"

void trace_done(struct trace *t) {
    names_done(&t->users);
    buf_done(&t->unused);
    free(t->list);
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

int trace_user(struct trace *t, const char *name, size_t len, uint32_t *ret, struct error *e) {
    uint32_t user = names_put(&t->users, name, len, TRACE_USERS_MAX);
    if (user == NAMES_FULL) return fail(e, -E2BIG, "there are more than %u users", TRACE_USERS_MAX);
    *ret = user;
    return 0;
}

int trace_add(struct trace *t, const struct trace_job *j, struct error *e) {
    if (t->jobs >= TRACE_JOBS_MAX) return fail(e, -E2BIG, "there are more than %u jobs", TRACE_JOBS_MAX);
    t->job = grow(t->job, &t->job_cap, t->jobs + 1u, sizeof *t->job);
    struct trace_job *mine = &t->job[t->jobs];
    *mine = *j;
    mine->number = t->jobs++;
    if (mine->array == TRACE_NONE) mine->array = mine->number;
    t->shares += j->share_bytes > 0;
    t->afters += j->after_len > 0;
    return 0;
}

void trace_list_add(struct trace *t, uint32_t number) {
    t->list = grow(t->list, &t->list_cap, t->list_len + 1u, sizeof *t->list);
    t->list[t->list_len++] = number;
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

/* From numbers to places. */
static void places_find(struct trace *t) {
    uint32_t *place = malloc(t->jobs * sizeof *place);
    if (!place) abort();
    for (uint32_t i = 0; i < t->jobs; i++) place[t->job[i].number] = i;
    for (uint32_t i = 0; i < t->jobs; i++) {
        struct trace_job *j = &t->job[i];
        j->array = place[j->array];
        for (uint32_t k = 0; k < j->after_len; k++) t->list[j->after_at + k] = place[t->list[j->after_at + k]];
    }
    free(place);
}

void trace_order(struct trace *t) {
    if (!t->jobs) return;
    struct trace_job *room = malloc(t->jobs * sizeof *room);
    if (!room) abort();
    merge_sort(t->job, room, t->jobs);
    free(room);
    places_find(t);
    t->zero_ns = t->job[0].submit_ns;
    for (uint32_t i = 0; i < t->jobs; i++) {
        struct trace_job *j = &t->job[i];
        j->submit_ns -= t->zero_ns;
        j->start_ns -= j->start_ns >= 0 ? t->zero_ns : 0;
        if (j->finish_by_ns) j->finish_by_ns -= t->zero_ns;
    }
}
