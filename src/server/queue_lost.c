/* Runs and machines that lose each other.
 *
 * One that is to end, and whose machine is away, is given up after a while, or when somebody insists: its exit is unknown, and
 * said so. Its GPUs are given to nobody meanwhile, for they are not here; when the machine comes back after all, it tells of
 * every run it has, and one that is over in our file is ended there before its GPUs count as free. One that nobody wants to end
 * may well go on there: it stays what it was, and says since when nobody knows.
 *
 * One of a number that our file has never had belongs to another server's queue, or to a file that was lost. Nobody here could
 * cancel or account for it: with jobs.end_unknown it is ended, else it goes on, its GPUs stay its own, and an event says so. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "server/queue_own.h"

#define AWAY_SAID_NS (5 * NS_PER_S) /* a node that is started anew is back by then */

/* ---- machines that do not come back ---- */

static bool is_away(const struct queue *q, const struct queue_job *j) {
    const struct live_node *n = live_find_node(q->live, j->node);
    return !n || !n->link;
}

static void give_up(struct queue *q, struct queue_run *r, int64_t for_ns) {
    struct wire_run w = r->of;
    char age[32];
    number_age(for_ns, age, sizeof age);
    w.reason = JOB_BY_LOST;
    w.has_exit = false;
    w.end_ns = clock_real_ns();
    if (for_ns > 0)
        snprintf(w.text, sizeof w.text,
                 "%.60s has been away for %s: it was to be ended there, and how it ended is not known", r->job->node,
                 age);
    else
        snprintf(w.text, sizeof w.text, "%.60s is away, and it was given up: how it ended is not known", r->job->node);
    queue_run_end(q, r, &w);
}

/* Whoever looks at it sees why nothing moves; after a while people are told. What its node says when it is back replaces it. */
static void say_away(struct queue *q, struct queue_run *r, int64_t for_ns) {
    struct event ev = {.boot_ns = clock_boot_ns(), .real_ns = clock_real_ns(), .severity = EVENT_WARNING, .device = -1};
    char age[32], text[sizeof r->of.text];
    int64_t most_ns = q->settings->jobs_lost_s * NS_PER_S;
    if (for_ns < AWAY_SAID_NS || r->job->origin == QUEUE_BY_WATCHMEN) return;
    number_age(for_ns, age, sizeof age);
    snprintf(
        text, sizeof text,
        "%.60s has been away for %s: whether it still runs there is not known; `gpumgr cancel --force` gives it up",
        r->job->node, age);
    if (strcmp(text, r->of.text) != 0) {
        memcpy(r->of.text, text, sizeof text);
        r->job->is_changed = true;
    }
    if (r->is_away_said || !most_ns || for_ns < most_ns) return;
    r->is_away_said = true;
    snprintf(ev.kind, sizeof ev.kind, "job_away");
    snprintf(ev.text, sizeof ev.text, "job %lld: %.140s", (long long)r->job->id, text);
    if (q->on_event) q->on_event(q->event_ctx, r->job->node, &ev);
}

void queue_lost_tick(struct queue *q, int64_t now_ns) {
    int64_t most_ns = q->settings->jobs_lost_s * NS_PER_S;
    for (size_t i = 0; i < q->count; i++)
        for (struct queue_run *r = q->job[i]->runs, *next; r; r = next) {
            next = r->next;
            if (!r->is_stored || !is_away(q, q->job[i])) {
                r->away_ns = 0;
                r->is_away_said = false;
                continue;
            }
            if (!r->away_ns) r->away_ns = now_ns;
            int64_t for_ns = now_ns - r->away_ns;
            if (r->stop == JOB_BY_ITSELF)
                say_away(q, r, for_ns);
            else if (most_ns && for_ns >= most_ns)
                give_up(q, r, for_ns);
        }
}

void queue_lost_force(struct queue *q, struct queue_job *j, int64_t element) {
    if (!is_away(q, j)) return; /* its node ends it, as surely as anybody could */
    for (struct queue_run *r = j->runs, *next; r; r = next) {
        next = r->next;
        if ((element < 0 || element == r->of.key.element) && r->is_stored) give_up(q, r, 0);
    }
}

/* ---- runs that nobody here thinks are going on ---- */

struct stray {
    struct queue *queue;
    struct wire_run_key key;
    char node[64];
    bool is_known; /* our file has it: it is over there */
};

static int look_work(struct sql *db, void *ctx, struct error *e) {
    struct stray *s = ctx;
    int r = queue_store_is_over(db, &s->key, e);
    s->is_known = r > 0;
    return r == -ENOENT ? 0 : r;
}

static void tell_unknown(struct queue *q, const struct stray *s, bool is_ended) {
    struct event ev = {.boot_ns = clock_boot_ns(), .real_ns = clock_real_ns(), .severity = EVENT_WARNING, .device = -1};
    snprintf(ev.kind, sizeof ev.kind, "run_unknown");
    snprintf(ev.text, sizeof ev.text, "%.60s runs job %" PRId64 ", which this server never had; %s", s->node,
             s->key.job, is_ended ? "it is ended" : "it goes on there (jobs.end_unknown)");
    if (q->on_event) q->on_event(q->event_ctx, s->node, &ev);
}

static void look_done(void *ctx, int result, const struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    struct stray *s = ctx;
    struct queue *q = s->queue;
    struct live_node *n = live_find_node(q->live, s->node);
    struct error ignored;
    bool is_ended = s->is_known || q->settings->jobs_end_unknown;
    if (result >= 0 && n && !queue_run_find(q, &s->key)) {
        if (!s->is_known) tell_unknown(q, s, is_ended);
        const struct wire_stop stop = {
            .key = s->key, .reason = JOB_BY_CANCEL, .grace_ns = q->settings->jobs_grace_s * NS_PER_S};
        wire_put_stop(&b, &stop);
        if (is_ended) (void)!link_send(q->links, n, &b, &ignored); /* gone: it tells of it again when it comes back */
    }
    free(s);
}

void queue_lost_found(struct queue *q, const struct live_node *n, const struct wire_run_key *k) {
    struct stray *s = calloc(1, sizeof *s);
    struct error e;
    if (!s) abort();
    *s = (struct stray){.queue = q, .key = *k};
    snprintf(s->node, sizeof s->node, "%s", n->name);
    if (state_submit(q->state, look_work, look_done, s, &e) < 0) free(s); /* it is told again */
}
