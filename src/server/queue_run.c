/* A run's way: granted, told to its node, started there, ended, stored, acknowledged. Whoever dies on the way, what he knew
 * lies in a file: the grant and the end in ours, the start in the node's. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/log.h"
#include "model/job_retry.h"
#include "server/queue_curves.h"
#include "server/queue_own.h"

static bool is_lease(const struct queue_job *j) { return j->origin == QUEUE_BY_WATCHMEN; }

/* ---- grants ---- */

void queue_grant(struct queue *q, struct queue_job *j, uint32_t element, const size_t *gpus, int count) {
    struct queue_run *r = calloc(1, sizeof *r + (size_t)count * sizeof r->uuid[0]);
    if (!r) abort();
    int64_t now_ns = clock_real_ns(), since_ns = j->submitted_ns;
    struct queue_element *at = &j->element[element];
    if (at->attempt && j->last_end_ns > since_ns) since_ns = j->last_end_ns;
    *r = (struct queue_run){.next = j->runs,
                            .job = j,
                            .state = JOB_GRANTED,
                            .gpus = (uint16_t)count,
                            .granted_ns = now_ns,
                            .wait_ns = now_ns > since_ns ? now_ns - since_ns : 0};
    r->of = (struct wire_run){
        .key = {j->id, element, ++at->attempt},
          .gpu_ratio = NAN, .cpu_ratio = NAN
    };
    r->of.gpu_seconds = r->of.energy_joules = r->of.cpu_seconds = NAN;
    for (int i = 0; i < count; i++) memcpy(r->uuid[i], q->gpu[gpus[i]].uuid, sizeof r->uuid[i]);
    j->runs = r;
    queue_element_set(q, j, element, JOB_GRANTED);
    queue_touch_run(q, r);
    queue_then_grant(q, &r->of.key);
}

static void grant_frame(const struct queue_run *r, const struct buf *seal, struct buf *ret) {
    struct wire_grant *g = calloc(1, sizeof *g); /* six kilobytes */
    if (!g) abort();
    const struct queue_job *j = r->job;
    g->key = r->of.key;
    g->gpus = r->gpus;
    memcpy(g->uuid, r->uuid, r->gpus * sizeof g->uuid[0]);
    g->sealed.uid = j->uid;
    snprintf(g->sealed.user, sizeof g->sealed.user, "%s", j->user);
    g->sealed.record = j->record;
    g->sealed.record_len = j->record_len;
    g->sealed.seal = (const uint8_t *)seal->s;
    g->sealed.seal_len = seal->len;
    wire_put_grant(ret, g);
    free(g);
}

/* The grant is in the file. One that was taken back meanwhile was never sent: it ends here. */
void queue_send_grant(struct queue *q, const struct wire_run_key *k, const struct buf *seal) {
    AUTO(buf_done) struct buf b = {0};
    struct queue_run *r = queue_run_find(q, k);
    struct error e;
    if (!r) return;
    bool was_stored = r->is_stored;
    r->is_stored = true;
    r->job->is_changed = true;
    if (r->stop != JOB_BY_ITSELF && !was_stored) {
        struct wire_run w = r->of;
        w.reason = r->stop;
        w.end_ns = clock_real_ns();
        queue_run_end(q, r, &w);
        return;
    }
    if (is_lease(r->job)) {
        queue_tell_start(q, r);
        return;
    }
    if (r->stop != JOB_BY_ITSELF) return; /* its STOP is on the way */
    struct live_node *n = live_find_node(q->live, r->job->node);
    grant_frame(r, seal, &b);
    CRASH_POINT();
    if (n && link_send(q->links, n, &b, &e) < 0) return; /* RUNS asks for it when the node comes back */
}

/* ---- stops ---- */

void queue_send_stop(struct queue *q, const struct queue_run *r) {
    AUTO(buf_done) struct buf b = {0};
    struct live_node *n = live_find_node(q->live, r->job->node);
    struct error e;
    wire_put_stop(
        &b, &(struct wire_stop){.key = r->of.key, .reason = r->stop, .grace_ns = q->settings->jobs_grace_s * NS_PER_S});
    if (n && link_send(q->links, n, &b, &e) < 0) return; /* said again after RUNS */
}

static void stop_sent(void *ctx, int result, const struct error *e);

struct stopping {
    struct queue *queue;
    struct wire_run_key key;
};

void queue_run_stop(struct queue *q, struct queue_run *r, enum job_reason why) {
    if (r->stop != JOB_BY_ITSELF) return;
    r->stop = (uint8_t)why;
    if (is_lease(r->job) && r->is_stored) {
        struct wire_run w = r->of;
        w.reason = (uint8_t)why;
        w.end_ns = clock_real_ns();
        queue_run_end(q, r, &w);
        return;
    }
    r->state = JOB_ENDING;
    queue_element_set(q, r->job, r->of.key.element, JOB_ENDING);
    queue_touch_run(q, r);
    if (!r->is_stored) return; /* queue_send_grant sees it */
    struct stopping *s = malloc(sizeof *s);
    if (!s) abort();
    *s = (struct stopping){q, r->of.key};
    queue_then(q, stop_sent, s);
}

static void stop_sent(void *ctx, int result, const struct error *e) {
    struct stopping *s = ctx;
    const struct queue_run *r = queue_run_find(s->queue, &s->key);
    CRASH_POINT();
    if (r) queue_send_stop(s->queue, r);
    free(s);
}

/* ---- figures ---- */

static void at_least(uint64_t *to, uint64_t by) {
    if (by > *to) *to = by;
}

/* What was told of a run is never taken back, whoever was started anew meanwhile. */
static void keep_figures(struct wire_run *to, const struct wire_run *before) {
    to->gpu_seconds = fmax(to->gpu_seconds, before->gpu_seconds);
    to->energy_joules = fmax(to->energy_joules, before->energy_joules);
    to->cpu_seconds = fmax(to->cpu_seconds, before->cpu_seconds);
    if (isnan(to->gpu_ratio)) to->gpu_ratio = before->gpu_ratio;
    if (isnan(to->cpu_ratio)) to->cpu_ratio = before->cpu_ratio;
    at_least(&to->memory_peak_bytes, before->memory_peak_bytes);
    at_least(&to->memory_total_bytes, before->memory_total_bytes);
    at_least(&to->host_peak_bytes, before->host_peak_bytes);
    at_least(&to->log_bytes, before->log_bytes);
}

static void take_figures(struct queue_run *r, const struct wire_figures *v) {
    struct wire_run *of = &r->of, fresh = r->of;
    fresh.gpu_seconds = v->gpu_seconds;
    fresh.energy_joules = v->energy_joules;
    fresh.cpu_seconds = v->cpu_seconds;
    fresh.gpu_ratio = v->gpu_ratio;
    fresh.memory_peak_bytes = v->memory_peak_bytes;
    fresh.memory_total_bytes = v->memory_total_bytes;
    fresh.host_peak_bytes = v->host_bytes;
    fresh.log_bytes = v->log_bytes;
    keep_figures(&fresh, of);
    double ran_s = of->start_ns ? (double)(clock_real_ns() - of->start_ns) / NS_PER_S : 0;
    if (ran_s > 0 && isfinite(fresh.cpu_seconds)) fresh.cpu_ratio = fresh.cpu_seconds / ran_s;
    *of = fresh;
    r->now = *v;
    r->job->is_changed = true;
}

int queue_take_figures(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) {
    struct wire_figures_list list;
    struct wire_figures one;
    int r = wire_get_figures(f, &list, e);
    if (r < 0) return r;
    while (wire_next_figures(&list, &one)) {
        struct queue_run *run = queue_run_find(q, &one.key);
        if (!run || strcmp(run->job->node, n->name) != 0) continue;
        take_figures(run, &one);
        queue_curve_take(run, &one);
    }
    return 0;
}

/* ---- ends ---- */

static bool is_tried_again(const struct queue_run *r, const struct wire_run *w, enum job_state state) {
    if (r->stop != JOB_BY_ITSELF && r->stop != JOB_BY_PREEMPT) return false;
    if (w->reason == JOB_BY_PREEMPT) return true;
    if (state != JOB_FAILED && state != JOB_UNKNOWN) return false;
    bool may = w->reason == JOB_BY_ITSELF || w->reason == JOB_BY_START || w->reason == JOB_BY_REBOOT ||
               w->reason == JOB_BY_SHIM;
    return may && r->job->element[w->key.element].failures < r->job->spec.retries;
}

static void retry_later(struct queue *q, struct queue_job *j, uint32_t element) {
    struct queue_retry *again = calloc(1, sizeof *again);
    if (!again) abort();
    int64_t pause_ns = job_retry_pause_ns(j->element[element].failures);
    *again = (struct queue_retry){q->retries, j->id, clock_boot_ns() + pause_ns, element};
    q->retries = again;
}

void queue_retry_tick(struct queue *q, int64_t now_ns) {
    for (struct queue_retry **at = &q->retries; *at;) {
        struct queue_retry *r = *at;
        if (r->due_ns > now_ns) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        struct queue_job *j = queue_find(q, r->job);
        if (j && j->element[r->element].state == JOB_HELD) queue_element_set(q, j, r->element, JOB_WAITING);
        free(r);
    }
}

static void usage_of(struct queue *q, const struct queue_run *r, const struct wire_run *w, bool is_failed) {
    int64_t now_ns = clock_real_ns();
    struct queue_usage u = {.user = r->job->user,
                            .from_ns = r->granted_ns,
                            .to_ns = w->end_ns ? w->end_ns : now_ns,
                            .gpus = queue_run_worth(q, r),
                            .used_s = isfinite(w->gpu_seconds) ? w->gpu_seconds : 0,
                            .energy_j = isfinite(w->energy_joules) ? w->energy_joules : 0,
                            .wait_s = (double)r->wait_ns / NS_PER_S,
                            .is_failed = is_failed};
    queue_add_usage(q, &u);
    double held_s = (double)(u.to_ns - u.from_ns) / NS_PER_S * u.gpus;
    queue_usage_add(q, r->job->user, held_s > 0 ? held_s : 0, now_ns, now_ns);
}

void queue_run_end(struct queue *q, struct queue_run *r, const struct wire_run *w) {
    struct queue_job *j = r->job;
    uint32_t element = r->of.key.element;
    struct wire_run end = *w;
    if (r->state == JOB_GRANTED && w->start_ns && !is_lease(j)) queue_tell_start(q, r); /* over before it was said */
    enum job_state state = job_end_state((enum job_reason)w->reason, w->has_exit, w->code, w->signal);
    if (is_lease(j) && w->reason == JOB_BY_ITSELF) state = JOB_DONE;
    bool again = is_tried_again(r, w, state);
    end.state = RUN_ENDED;
    keep_figures(&end, &r->of);
    if (!end.end_ns) end.end_ns = clock_real_ns();
    if (end.cpu_seconds > w->cpu_seconds && end.end_ns > end.start_ns &&
        end.start_ns) /* a container's own record has less */
        end.cpu_ratio = end.cpu_seconds / ((double)(end.end_ns - end.start_ns) / NS_PER_S);
    r->of = end;
    r->state = state;
    queue_curve_end(r, &end);
    queue_end_row(q, r, again);
    usage_of(q, r, &end, state == JOB_FAILED || state == JOB_UNKNOWN || state == JOB_TIMEOUT);
    if (state == JOB_DONE && end.start_ns) queue_past_add(q, j->user, j->spec.name, end.end_ns - end.start_ns);
    AUTO(buf_done) struct buf gpus = {0};
    struct queue_run_row row;
    queue_run_row(r, &gpus, &row);
    row.again = again;
    queue_job_take_end(j, &row);
    if (again && w->reason != JOB_BY_PREEMPT) {
        j->element[element].failures++;
        retry_later(q, j, element);
    }
    queue_element_set(q, j, element, !again ? state : w->reason == JOB_BY_PREEMPT ? JOB_WAITING : JOB_HELD);
    if (!is_lease(j)) queue_then_stored(q, j->node, &end.key);
    queue_tell_end(q, j, &end, state, again);
    queue_run_drop(r);
    queue_job_settle(q, j);
    queue_want_pass(q);
}

/* ---- what a node says ---- */

static void run_moves(struct queue *q, struct queue_run *r, const struct wire_run *w, enum job_state to) {
    bool starts = r->state == JOB_GRANTED && (to == JOB_RUNNING || (to == JOB_ENDING && w->start_ns));
    bool is_same = r->state == to && r->of.start_ns == w->start_ns;
    const struct wire_run before = r->of;
    r->of = *w;
    keep_figures(&r->of, &before);
    r->job->is_changed = true;
    if (r->state == JOB_RUNNING && to == JOB_GRANTED) return;
    if (r->state == JOB_ENDING && to != JOB_ENDING) return; /* it was told to end: that stands */
    if (is_same) return;
    r->state = to;
    queue_element_set(q, r->job, w->key.element, to);
    queue_touch_run(q, r);
    if (starts) queue_tell_start(q, r);
}

/* The node never heard of it, or its directory was never written: then it never ran. */
static void run_absent(struct queue *q, struct queue_run *r) {
    if (r->stop != JOB_BY_ITSELF) {
        struct wire_run w = r->of;
        w.reason = r->stop;
        w.end_ns = clock_real_ns();
        queue_run_end(q, r, &w);
    } else if (r->state == JOB_GRANTED) {
        queue_then_grant(q, &r->of.key);
    } else {
        struct wire_run w = r->of; /* it ran, and all that was known of it there is gone */
        w.reason = JOB_BY_SHIM;
        w.has_exit = false;
        w.end_ns = clock_real_ns();
        snprintf(w.text, sizeof w.text, "its node no longer knows of it");
        queue_run_end(q, r, &w);
    }
}

int queue_take_run(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) {
    struct wire_run w;
    int r = wire_get_run(f, &w, e);
    if (r < 0) return r;
    CRASH_POINT();
    struct queue_run *run = queue_run_find(q, &w.key);
    if (run && strcmp(run->job->node, n->name) != 0) return 0;
    if (!run && w.state == RUN_ENDED) {
        queue_then_stored(q, n->name, &w.key); /* taken before: the commit that holds it comes first */
        return 0;
    }
    if (!run) {
        if (w.state != RUN_ABSENT) queue_lost_found(q, n, &w.key);
        return 0;
    }
    switch (w.state) {
    case RUN_ABSENT: run_absent(q, run); break;
    case RUN_STARTING: run_moves(q, run, &w, JOB_GRANTED); break;
    case RUN_RUNNING: run_moves(q, run, &w, JOB_RUNNING); break;
    case RUN_ENDING: run_moves(q, run, &w, JOB_ENDING); break;
    case RUN_ENDED: queue_run_end(q, run, &w); break;
    default: break; /* a newer node's word */
    }
    return 0;
}

/* ---- a session begins ---- */

static bool is_of(const struct queue_job *j, const struct queue_run *r, const struct live_node *n) {
    return r->is_stored && !is_lease(j) && strcmp(j->node, n->name) == 0;
}

void queue_tell_runs(struct queue *q, struct live_node *n) {
    AUTO(buf_done) struct buf b = {0};
    struct error e;
    uint32_t count = 0;
    for (size_t i = 0; i < q->count; i++)
        for (const struct queue_run *r = q->job[i]->runs; r; r = r->next) count += is_of(q->job[i], r, n);
    size_t from = wire_begin_runs(&b, count);
    for (size_t i = 0; i < q->count; i++)
        for (const struct queue_run *r = q->job[i]->runs; r; r = r->next)
            if (is_of(q->job[i], r, n)) wire_add_run_key(&b, &r->of.key);
    wire_end(&b, from);
    CRASH_POINT();
    if (link_send(q->links, n, &b, &e) < 0) return;
    for (size_t i = 0; i < q->count; i++)
        for (const struct queue_run *r = q->job[i]->runs; r; r = r->next)
            if (is_of(q->job[i], r, n) && r->stop != JOB_BY_ITSELF) queue_send_stop(q, r);
}
