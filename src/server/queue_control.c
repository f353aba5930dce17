/* What people want of a job that is in the queue: end it, hold it, let it go, move it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/log.h"
#include "server/queue_own.h"

bool queue_may(const struct queue_job *j, const struct queue_who *who) {
    if (who->is_admin) return true;
    if (who->has_uid && who->uid == j->uid && j->origin != QUEUE_BY_WATCHMEN) return true;
    return *who->account && strcmp(who->account, j->account) == 0;
}

/* ---- cancel ---- */

/* An element that never ran, as a row: a job whose other elements go on must still know it after a restart. */
static void cancelled_row(struct queue *q, struct queue_job *j, uint32_t element) {
    struct queue_run none = {.job = j, .state = JOB_CANCELLED};
    none.of.key = (struct wire_run_key){j->id, element, (uint32_t)++j->element[element].attempt};
    none.of.reason = JOB_BY_CANCEL;
    none.of.end_ns = clock_real_ns();
    queue_end_row(q, &none, false);
}

static void cancel_one(struct queue *q, struct queue_job *j, uint32_t element, bool is_whole) {
    enum job_state state = (enum job_state)j->element[element].state;
    if (state != JOB_WAITING && state != JOB_HELD) return;
    if (!is_whole) cancelled_row(q, j, element);
    queue_element_set(q, j, element, JOB_CANCELLED);
}

static void text_set(struct queue_job *j, const char *text) {
    free(j->text);
    j->text = queue_copy(text);
}

/* element: as it is counted from 0; -1: all of them. */
void queue_cancel_elements(struct queue *q, struct queue_job *j, int64_t element, const char *text) {
    if (*text) text_set(j, text);
    for (uint32_t i = 0; i < j->elements; i++)
        if (element < 0 || element == i) cancel_one(q, j, i, element < 0);
    for (struct queue_run *r = j->runs, *next; r; r = next) {
        next = r->next;
        if (element < 0 || element == r->of.key.element) queue_run_stop(q, r, JOB_BY_CANCEL);
    }
    queue_touch(q, j);
}

/* The number that people see, as it is counted. -1: there is none. */
static int64_t element_of(const struct queue_job *j, int64_t number) {
    for (uint32_t i = 0; i < j->elements; i++)
        if (job_element_number(&j->spec, i) == number) return i;
    return -1;
}

/* ---- orders ---- */

static int apply(struct queue *q, struct queue_job *j, const struct queue_order *o, int64_t element, struct error *e) {
    switch (o->verb) {
    case WIRE_CANCEL:
        queue_cancel_elements(q, j, element, "");
        if (o->value) queue_lost_force(q, j, element);
        queue_job_settle(q, j);
        return 0;
    case WIRE_HOLD:
    case WIRE_RELEASE:
        if (!j->counts[JOB_WAITING] && !j->counts[JOB_HELD])
            return fail(e, -EBUSY, "job %lld does not wait: it is %s", (long long)j->id,
                        job_state_name(queue_job_state(j)));
        j->is_held = o->verb == WIRE_HOLD;
        queue_touch(q, j);
        return 0;
    case WIRE_PRIORITY:
        if (o->value < -JOB_PRIORITY_MAX || o->value > JOB_PRIORITY_MAX)
            return fail(e, -EINVAL, "priority: from %d to %d", -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX);
        j->priority = (int)o->value;
        queue_touch(q, j);
        return 0;
    }
    return fail(e, -EINVAL, "there is no such order");
}

int queue_control(struct queue *q, const struct queue_who *who, const struct queue_order *o, queue_done_fn done,
                  void *ctx, struct error *e) {
    struct queue_job *j = queue_find(q, o->job);
    if (!j) return fail(e, -ENOENT, "no job %lld waits or runs", (long long)o->job);
    if (!queue_may(j, who)) return fail(e, -EACCES, "job %lld is %s's", (long long)j->id, j->user);
    if (j->ended_ns)
        return fail(e, -EBUSY, "job %lld is over: %s", (long long)j->id, job_state_name(queue_job_state(j)));
    int64_t element = -1;
    if (o->element >= 0 && (element = element_of(j, o->element)) < 0)
        return fail(e, -ENOENT, "job %lld has no element %lld", (long long)j->id, (long long)o->element);
    /* Who may not be an administrator cannot push past the others. */
    if (o->verb == WIRE_PRIORITY && !who->is_admin && o->value > j->spec.priority)
        return fail(e, -EACCES, "priority: only an administrator can raise it above %d", j->spec.priority);
    CRASH_POINT();
    int r = apply(q, j, o, element, e);
    if (r < 0) return r;
    queue_want_pass(q);
    queue_then(q, done, ctx);
    return 0;
}

/* ---- from a node's socket ---- */

struct answer {
    struct queue *queue;
    char node[64];
    uint64_t request;
};

static void answered(void *ctx, int result, const struct error *e) {
    struct answer *a = ctx;
    AUTO(buf_done) struct buf b = {0};
    struct live_node *n = live_find_node(a->queue->live, a->node);
    struct wire_job_result out = {.request = a->request, .result = result < 0 ? result : 0};
    struct error ignored;
    if (result < 0) snprintf(out.text, sizeof out.text, "%s", e->text);
    CRASH_POINT();
    wire_put_job_result(&b, WIRE_JOB_CONTROLLED, &out);
    if (n) (void)!link_send(a->queue->links, n, &b, &ignored);
    free(a);
}

int queue_take_control(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) {
    struct wire_control c;
    int r = wire_get_control(f, &c, e);
    if (r < 0) return r;
    struct answer *a = calloc(1, sizeof *a);
    if (!a) abort();
    *a = (struct answer){.queue = q, .request = c.request};
    snprintf(a->node, sizeof a->node, "%s", n->name);
    struct queue_who who = {
        .is_admin = c.uid == 0 || c.uid == links_owner(q->links), .has_uid = true, .uid = c.uid, .account = ""};
    struct queue_order o = {(enum wire_control_verb)c.verb, c.job, c.element, c.value};
    struct error why;
    r = queue_control(q, &who, &o, answered, a, &why);
    if (r < 0) answered(a, r, &why);
    return 0;
}

/* ---- cordons ---- */

struct cordon {
    struct queue *queue;
    char uuid[96], who[64];
    char *reason;
    int64_t now_ns;
    queue_done_fn done;
    void *ctx;
};

static int cordon_work(struct sql *db, void *ctx, struct error *e) {
    const struct cordon *c = ctx;
    return queue_store_cordon(db, c->uuid, c->reason, c->who, c->now_ns, e);
}

static void cordon_done(void *ctx, int result, const struct error *e) {
    struct cordon *c = ctx;
    struct queue_gpu *g = queue_gpu_find(c->queue, c->uuid);
    if (result >= 0 && g) {
        free(g->cordon);
        free(g->cordon_who);
        g->cordon = c->reason ? queue_copy(c->reason) : NULL;
        g->cordon_who = c->reason ? queue_copy(c->who) : NULL;
        g->cordon_ns = c->now_ns;
        struct live_node *n = c->reason ? NULL : live_find_node(c->queue->live, g->node);
        if (!c->reason) g->sound_ns = c->now_ns; /* whoever puts it into service vouches for it */
        if (n && n->link) queue_tell_wanted(c->queue, n);
        queue_want_pass(c->queue);
    }
    c->done(c->ctx, result, e);
    free(c->reason);
    free(c);
}

int queue_cordon(struct queue *q, const char *uuid, const char *reason, const char *who, queue_done_fn done, void *ctx,
                 struct error *e) {
    queue_gpus_read(q);
    if (!queue_gpu_find(q, uuid)) return fail(e, -ENOENT, "no GPU with this UUID is known");
    struct cordon *c = calloc(1, sizeof *c);
    if (!c) abort();
    *c = (struct cordon){
        .queue = q, .reason = reason ? queue_copy(reason) : NULL, .now_ns = clock_real_ns(), .done = done, .ctx = ctx};
    snprintf(c->uuid, sizeof c->uuid, "%s", uuid);
    snprintf(c->who, sizeof c->who, "%s", who);
    int r = state_submit(q->state, cordon_work, cordon_done, c, e);
    if (r >= 0) return 0;
    free(c->reason);
    free(c);
    return r;
}
