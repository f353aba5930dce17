/* Jobs that wait for others. What ends one of them may end another and so on: a row of thousands is walked, not called. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/job_after.h"
#include "server/queue_own.h"

/* ---- a job's own ---- */

static struct queue_after *after_find(struct queue_job *j, int64_t job, bool is_near) {
    for (unsigned i = 0; i < j->after_count; i++)
        if (j->after[i].job == job && j->after[i].is_near == is_near) return &j->after[i];
    return NULL;
}

/* A distance and the job's number are a number; one that was said twice is waited for once, and as it was said more strictly. */
static void after_put(struct queue_job *j, const struct job_after *a) {
    bool is_near = a->is_near && !j->id;
    int64_t job = a->is_near && !is_near ? j->id + a->job : a->job;
    struct queue_after *same = after_find(j, job, is_near);
    if (same)
        same->any &= a->any;
    else
        j->after[j->after_count++] = (struct queue_after){.job = job, .is_near = is_near, .any = a->any};
}

void queue_after_take(struct queue_job *j, int64_t behind) {
    struct job_after a;
    if (!j->spec.after.count && !behind) return;
    j->after = calloc(j->spec.after.count + 1, sizeof *j->after);
    if (!j->after) abort();
    for (const char *w = NULL; (w = job_word_next(&j->spec.after, w));)
        if (job_after_read(w, &a)) after_put(j, &a);
    if (behind) after_put(j, &(struct job_after){.job = behind, .any = true});
}

int queue_after_check(struct sql *db, const struct queue_job *j, struct error *e) {
    for (unsigned i = 0; i < j->after_count; i++) {
        const struct queue_after *a = &j->after[i];
        if (a->is_near) continue; /* it comes with it */
        int state = queue_store_state(db, a->job, e);
        if (state == -ENOENT) return fail(e, -EINVAL, "after: there is no job %lld", (long long)a->job);
        if (state < 0) return state;
        if (job_state_is_over((enum job_state)state) && state != JOB_DONE && !a->any)
            return fail(e, -EINVAL, "after: job %lld has ended already, as: %s", (long long)a->job,
                        job_state_name((enum job_state)state));
    }
    return 0;
}

void queue_after_add(struct queue *q, struct queue_job *j) {
    for (unsigned i = 0; i < j->after_count; i++) {
        struct queue_after *a = &j->after[i];
        if (a->is_near) *a = (struct queue_after){.job = j->id + a->job, .any = a->any};
    }
    for (unsigned i = j->after_count; i > 0; i--) {
        int64_t id = j->after[i - 1].job;
        const struct queue_job *other = queue_find(q, id);
        if (other && !other->ended_ns) continue;
        queue_resolve(q, id, other ? queue_job_state(other) : JOB_DONE); /* not in memory: looked at in the file */
        if (i > j->after_count) i = j->after_count + 1;
    }
}

/* ---- others ---- */

/* Jobs that are over, by number. */
struct over_list {
    struct over_one {
        int64_t job;
        enum job_state state;
    } * of;
    size_t count, cap;
};

/* now: whose followers are being looked for. more: who ended by that. */
struct queue_over {
    struct over_list now, more;
};

/* Mostly at the end: followers are walked by number. */
static void over_put(struct over_list *l, int64_t job, enum job_state state) {
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->of = realloc(l->of, l->cap * sizeof *l->of);
        if (!l->of) abort();
    }
    size_t at = l->count++;
    for (; at > 0 && l->of[at - 1].job > job; at--) l->of[at] = l->of[at - 1];
    l->of[at] = (struct over_one){job, state};
}

static const struct over_one *over_find(const struct over_list *l, int64_t job) {
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (l->of[middle].job == job) return &l->of[middle];
        if (l->of[middle].job < job)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Takes those that are over off its list. One that ended as it must not have; NULL: none. */
static const struct over_one *look(const struct queue_over *o, struct queue_job *j, bool *ret_is_less) {
    for (unsigned i = 0; i < j->after_count;) {
        const struct over_one *one = over_find(&o->now, j->after[i].job);
        if (!one) one = over_find(&o->more, j->after[i].job);
        if (!one) {
            i++;
            continue;
        }
        bool is_good = one->state == JOB_DONE || j->after[i].any;
        j->after[i] = j->after[--j->after_count];
        *ret_is_less = true;
        if (!is_good) return one;
    }
    return NULL;
}

/* One that can never start any more ends itself. */
static void follow(struct queue *q, struct queue_job *j) {
    bool is_less = false;
    const struct over_one *bad = look(q->over, j, &is_less);
    if (!is_less) return;
    q->dependents -= bad || !j->after_count;
    queue_touch(q, j);
    if (!bad) {
        queue_want_pass(q);
        return;
    }
    char text[120];
    snprintf(text, sizeof text, "job %lld, which it was to follow, ended as: %s", (long long)bad->job,
             job_state_name(bad->state));
    j->after_count = 0;
    queue_cancel_elements(q, j, -1, text);
    queue_job_settle(q, j);
}

void queue_resolve(struct queue *q, int64_t id, enum job_state state) {
    if (!q->dependents) return;
    if (q->over) { /* it ended by what is looked at just now */
        over_put(&q->over->more, id, state);
        return;
    }
    struct queue_over over = {0};
    q->over = &over;
    over_put(&over.now, id, state);
    while (over.now.count && q->dependents) {
        for (size_t i = 0; q->dependents && i < q->count; i++)
            if (q->job[i]->after_count) follow(q, q->job[i]);
        struct over_list was = over.now; /* those before them, who wait for a later one, have not heard of the rest */
        was.count = 0;
        over.now = over.more;
        over.more = was;
    }
    q->over = NULL;
    free(over.now.of);
    free(over.more.of);
}

/* ---- from the file ---- */

/* Whom jobs wait for may be over for long: those are in the file only. One that was forgotten there ended well enough. */
int queue_after_load(struct sql *db, struct queue *q, struct error *e) {
    for (size_t i = 0; q->dependents && i < q->count; i++)
        for (unsigned k = 0; k < q->job[i]->after_count; k++) {
            struct queue_after *a = &q->job[i]->after[k];
            if (queue_find(q, a->job)) continue;
            int state = queue_store_state(db, a->job, e);
            if (state < 0 && state != -ENOENT) return state;
            a->is_over = true;
            a->state = state < 0 ? JOB_DONE : (uint8_t)state;
        }
    return 0;
}

void queue_after_begin(struct queue *q) {
    for (size_t i = 0; i < q->count; i++)
        for (unsigned k = 0; k < q->job[i]->after_count;) {
            const struct queue_after a = q->job[i]->after[k];
            if (a.is_over)
                queue_resolve(q, a.job, (enum job_state)a.state); /* which takes it off the list */
            else
                k++;
        }
}
