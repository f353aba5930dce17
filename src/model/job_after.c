#include "model/job_after.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MOST 18 /* of a number */
#define PLACES_MOST 5  /* digits of a distance */

bool job_after_read(const char *word, struct job_after *ret) {
    bool is_near = word[0] == '-' || word[0] == '+';
    const char *digits = word + is_near;
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > (is_near ? PLACES_MOST : DIGITS_MOST) || digits[0] == '0') return false;
    if (digits[n] && strcmp(digits + n, ":any") != 0) return false;
    int64_t v = strtoll(digits, NULL, 10);
    *ret = (struct job_after){.job = word[0] == '-' ? -v : v, .is_near = is_near, .any = digits[n] != 0};
    return true;
}

void job_after_put(struct buf *b, const struct job_after *a) {
    buf_printf(b, a->is_near ? "%+lld%s" : "%lld%s", (long long)a->job, a->any ? ":any" : "");
    buf_putc(b, 0);
}

struct job_words job_after_numbers(const struct job_spec *s, int64_t job, struct buf *b) {
    struct job_after a;
    for (const char *w = NULL; (w = job_word_next(&s->after, w));) {
        if (!job_after_read(w, &a)) continue;
        if (a.is_near) a = (struct job_after){.job = job + a.job, .any = a.any};
        job_after_put(b, &a);
    }
    return job_words_of(b);
}

/* ---- together ---- */

#define ON_THE_WAY UINT32_MAX /* as a step: it is waited for by who was asked first */

/* Who waits for whom, as places: those whom job i waits for are to[from[i]] up to to[from[i + 1]]. */
struct waits {
    size_t *from, *to;
    uint32_t *step;    /* 0: not looked at yet */
    size_t *way, *try; /* the way down from one to whom it waits for, and which of them is next */
};

static void waits_done(struct waits *w) {
    free(w->from);
    free(w->to);
    free(w->step);
    free(w->way);
    free(w->try);
}

static void *room(size_t count, size_t size) {
    void *p = calloc(count + 1, size);
    if (!p) abort();
    return p;
}

static int waits_make(const struct job_spec *jobs, size_t count, struct waits *w, size_t *ret_at, struct error *e) {
    size_t all = 0, n = 0;
    for (size_t i = 0; i < count; i++) all += jobs[i].after.count;
    w->from = room(count, sizeof *w->from);
    w->to = room(all, sizeof *w->to);
    w->step = room(count, sizeof *w->step);
    w->way = room(count, sizeof *w->way);
    w->try = room(count, sizeof *w->try);
    for (size_t i = 0; i < count; i++) {
        struct job_after a;
        *ret_at = i;
        w->from[i] = n;
        for (const char *word = NULL; (word = job_word_next(&jobs[i].after, word));) {
            if (!job_after_read(word, &a) || !a.is_near) continue;
            int64_t at = (int64_t)i + a.job;
            if (at < 0 || at >= (int64_t)count)
                return fail(e, -EINVAL, "after: \"%s\" is no place among the jobs that are handed in together", word);
            w->to[n++] = (size_t)at;
        }
    }
    w->from[count] = n;
    return 0;
}

/* The way down has come back to `at`: the first of the circle is told whom it waits for. */
static int fail_circle(const struct job_spec *jobs, const struct waits *w, size_t depth, size_t at, size_t *ret_at,
                       struct error *e) {
    size_t least = at, next = w->way[depth];
    for (size_t k = depth; w->way[k] != at; k--) {
        if (w->way[k] < least) least = w->way[k];
    }
    for (size_t k = 0; k <= depth; k++)
        if (w->way[k] == least) next = k < depth ? w->way[k + 1] : at;
    *ret_at = least;
    return fail(e, -EINVAL, "after: \"%.60s\" waits for this job in its turn: in a circle none would ever start",
                jobs[next].name);
}

/* Down from one job, those whom it waits for first; a stack of our own, for ten thousand may stand in a row. */
static int walk(const struct job_spec *jobs, struct waits *w, size_t from, size_t *ret_at, struct error *e) {
    size_t depth = 0;
    w->way[0] = from;
    w->try[0] = w->from[from];
    w->step[from] = ON_THE_WAY;
    for (;;) {
        size_t at = w->way[depth];
        if (w->try[depth] < w->from[at + 1]) {
            size_t next = w->to[w->try[depth]++];
            if (w->step[next] == ON_THE_WAY) return fail_circle(jobs, w, depth, next, ret_at, e);
            if (w->step[next]) continue;
            depth++;
            w->way[depth] = next;
            w->try[depth] = w->from[next];
            w->step[next] = ON_THE_WAY;
            continue;
        }
        uint32_t step = 1;
        for (size_t k = w->from[at]; k < w->from[at + 1]; k++)
            if (w->step[w->to[k]] >= step) step = w->step[w->to[k]] + 1;
        w->step[at] = step;
        if (depth-- == 0) return 0;
    }
}

int job_after_check(const struct job_spec *jobs, size_t count, uint32_t *step, size_t *ret_at, struct error *e) {
    struct waits w = {0};
    int r = waits_make(jobs, count, &w, ret_at, e);
    for (size_t i = 0; r >= 0 && i < count; i++)
        if (!w.step[i]) r = walk(jobs, &w, i, ret_at, e);
    if (r >= 0 && step) memcpy(step, w.step, count * sizeof *step);
    waits_done(&w);
    return r;
}
