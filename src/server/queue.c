#include "server/queue.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/service_spec.h"
#include "server/queue_curves.h"
#include "server/queue_own.h"

#define TICK_MS 1000
#define PAST_LOADED 1000 /* jobs whose durations are remembered over a restart */
#define HOUR_NS (3600 * NS_PER_S)
#define TRIM_TICKS 600

char *queue_copy(const char *text) {
    char *s = strdup(text);
    if (!s) abort();
    return s;
}

/* ---- jobs ---- */

void queue_job_free(struct queue_job *j) {
    if (!j) return;
    for (struct queue_run *r = j->runs, *next; r; r = next) {
        next = r->next;
        free(r->curve);
        free(r);
    }
    free(j->user);
    free(j->account);
    free(j->node);
    free(j->text);
    free(j->record);
    free(j->element);
    free(j->after);
    free(j->last_gpus);
    free(j->scope);
    free(j);
}

struct queue_job *queue_job_new(const struct queue_job_row *row, struct error *e) {
    struct queue_job *j = calloc(1, sizeof *j);
    void *record = malloc(row->record_len ? row->record_len : 1);
    struct queue_element *element = calloc(row->elements ? row->elements : 1, sizeof *element);
    if (!j || !record || !element) abort();
    memcpy(record, row->record, row->record_len);
    *j = (struct queue_job){.id = row->id,
                            .submitted_ns = row->submitted_ns,
                            .uid = row->uid,
                            .elements = row->elements ? row->elements : 1,
                            .at_once = row->at_once,
                            .origin = row->origin,
                            .parent_kind = row->parent_kind,
                            .parent = row->parent,
                            .priority = row->priority,
                            .is_held = row->is_held,
                            .user = queue_copy(row->user),
                            .account = queue_copy(row->account),
                            .node = queue_copy(row->node),
                            .text = queue_copy(row->text ? row->text : ""),
                            .record = record,
                            .record_len = row->record_len,
                            .element = element};
    j->counts[JOB_WAITING] = j->elements;
    if (job_decode(j->record, j->record_len, &j->spec, e) < 0) {
        queue_job_free(j);
        return NULL;
    }
    struct service_spec service;
    j->yields = j->spec.service.count && service_spec_read(&j->spec.service, &service, e) >= 0 && service.yields;
    queue_after_take(j, row->behind);
    return j;
}

struct queue_job *queue_find(const struct queue *q, int64_t id) {
    size_t low = 0, high = q->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (q->job[middle]->id == id) return q->job[middle];
        if (q->job[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void queue_add(struct queue *q, struct queue_job *j) {
    if (q->count == q->cap) {
        q->cap = q->cap ? 2 * q->cap : 256;
        q->job = realloc(q->job, q->cap * sizeof(void *));
        if (!q->job) abort();
    }
    q->job[q->count++] = j;
    q->dependents += j->after_count > 0;
    j->user_at = queue_user_number(q, j->user);
    j->is_changed = true;
}

static bool has_waiting(const struct queue_job *j) { return j->counts[JOB_WAITING] || j->counts[JOB_HELD]; }

static const enum job_state ends[] = {JOB_FAILED, JOB_UNKNOWN, JOB_TIMEOUT, JOB_CANCELLED, JOB_DONE};

/* Of a job with several elements: what goes on counts before what waits, and that before what went wrong. */
enum job_state queue_job_state(const struct queue_job *j) {
    if (j->counts[JOB_RUNNING]) return JOB_RUNNING;
    if (j->counts[JOB_GRANTED]) return JOB_GRANTED;
    if (j->counts[JOB_ENDING] && !has_waiting(j)) return JOB_ENDING;
    if (has_waiting(j)) return j->is_held || j->after_count || !j->counts[JOB_WAITING] ? JOB_HELD : JOB_WAITING;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (j->counts[ends[i]]) return ends[i];
    return JOB_DONE;
}

/* An end after which another attempt follows says nothing of the job. */
static uint8_t weight_of(const struct queue_run_row *row) {
    for (size_t i = 0; !row->again && i < ARRAY_LEN(ends); i++)
        if (row->state == ends[i]) return (uint8_t)(ARRAY_LEN(ends) - i);
    return 0;
}

void queue_job_take_end(struct queue_job *j, const struct queue_run_row *row) {
    uint8_t weight = weight_of(row);
    bool is_later = row->of.end_ns >= j->last.end_ns;
    if (row->of.end_ns > j->last_end_ns) j->last_end_ns = row->of.end_ns;
    if (j->elements > 1 && (weight < j->last_weight || (weight == j->last_weight && !is_later))) return;
    free(j->last_gpus);
    j->last = row->of;
    j->last_gpus = queue_copy(row->gpus);
    j->last_granted_ns = row->granted_ns;
    j->last_weight = weight;
}

void queue_element_set(struct queue *q, struct queue_job *j, uint32_t element, enum job_state to) {
    struct queue_element *at = &j->element[element];
    if (at->state == to) return;
    j->counts[at->state]--;
    j->counts[to]++;
    at->state = (uint8_t)to;
    if (to == JOB_WAITING && element < j->cursor) j->cursor = element;
    queue_touch(q, j);
    queue_spawn_news(q, j);
}

void queue_job_settle(struct queue *q, struct queue_job *j) {
    enum job_state state = queue_job_state(j);
    if (!job_state_is_over(state) || j->ended_ns) return;
    j->ended_ns = clock_real_ns();
    queue_touch(q, j);
    if (!j->last_gpus) queue_tell_unrun(q, j);
    queue_spawn_news(q, j);
    queue_resolve(q, j->id, state);
}

/* ---- runs ---- */

struct queue_run *queue_run_find(const struct queue *q, const struct wire_run_key *k) {
    struct queue_job *j = queue_find(q, k->job);
    for (struct queue_run *r = j ? j->runs : NULL; r; r = r->next)
        if (r->of.key.element == k->element && r->of.key.attempt == k->attempt) return r;
    return NULL;
}

void queue_run_drop(struct queue_run *r) {
    for (struct queue_run **at = &r->job->runs; *at; at = &(*at)->next) {
        if (*at != r) continue;
        *at = r->next;
        break;
    }
    free(r->curve);
    free(r);
}

/* ---- from the file ---- */

static int load_job(void *ctx, const struct queue_job_row *row, struct error *e) {
    struct queue *q = ctx;
    struct queue_job *j = queue_job_new(row, e);
    if (!j) { /* written by a newer gpumgr, or by nobody we know: it stays in the file */
        log_line(LOG_ERROR, "job_unread", -1, "job %lld cannot be read: %s", (long long)row->id, e->text);
        return 0;
    }
    queue_add(q, j);
    if (row->state == JOB_ENDING) j->is_touched = true; /* marks it for load_end */
    return 0;
}

static struct queue_run *run_from(struct queue_job *j, const struct queue_run_row *row) {
    unsigned n = *row->gpus != 0;
    for (const char *s = row->gpus; *s; s++) n += *s == ',';
    struct queue_run *r = calloc(1, sizeof *r + n * sizeof r->uuid[0]);
    if (!r) abort();
    *r = (struct queue_run){.next = j->runs,
                            .job = j,
                            .of = row->of,
                            .state = (enum job_state)row->state,
                            .stop = row->stop,
                            .is_stored = true,
                            .granted_ns = row->granted_ns};
    /* What the file has is from its start: its node will tell what it has used by now. */
    r->of.gpu_seconds = r->of.energy_joules = r->of.cpu_seconds = r->of.gpu_ratio = r->of.cpu_ratio = NAN;
    r->of.memory_peak_bytes = r->of.log_bytes = 0;
    for (const char *s = row->gpus; *s && r->gpus < n; r->gpus++) {
        size_t len = strcspn(s, ",");
        if (len < sizeof r->uuid[0]) memcpy(r->uuid[r->gpus], s, len);
        s += len + (s[len] == ',');
    }
    j->runs = r;
    return r;
}

static int load_run(void *ctx, const struct queue_run_row *row, struct error *e) {
    struct queue *q = ctx;
    struct queue_job *j = queue_find(q, row->of.key.job);
    if (!j || row->of.key.element >= j->elements || row->state >= JOB_STATE_COUNT) return 0;
    struct queue_element *at = &j->element[row->of.key.element];
    bool is_over = job_state_is_over((enum job_state)row->state);
    enum job_state state = is_over && row->again ? JOB_WAITING : (enum job_state)row->state;
    j->counts[at->state]--;
    j->counts[state]++;
    at->state = (uint8_t)state;
    at->attempt = (uint16_t)row->of.key.attempt;
    at->failures += is_over && row->again && row->of.reason != JOB_BY_PREEMPT;
    if (!is_over)
        run_from(j, row);
    else if (row->granted_ns) /* else it was cancelled before */
        queue_job_take_end(j, row);
    return 0;
}

static void load_cordon(void *ctx, const char *uuid, const char *reason, const char *who, int64_t since_ns) {
    struct queue_gpu *g = queue_gpu_make(ctx, uuid);
    g->cordon = queue_copy(reason);
    g->cordon_who = queue_copy(who);
    g->cordon_ns = since_ns;
}

static void load_sound(void *ctx, const char *uuid, int64_t since_ns) {
    queue_gpu_make(ctx, uuid)->sound_ns = since_ns;
}

static void load_usage(void *ctx, const char *user, int64_t hour, double held_s) {
    queue_usage_add(ctx, user, held_s, hour * HOUR_NS + HOUR_NS / 2, clock_real_ns());
}

/* ---- how long the like took: from the newest that were done ---- */

struct past_load {
    struct queue *queue;
    char user[64], name[JOB_NAME_MAX];
};

static int past_job(void *ctx, const struct queue_job_row *row, struct error *e) {
    struct past_load *p = ctx;
    struct job_spec spec;
    snprintf(p->user, sizeof p->user, "%s", row->user);
    snprintf(p->name, sizeof p->name, "%s", job_decode(row->record, row->record_len, &spec, e) < 0 ? "" : spec.name);
    return 0;
}

static int past_run(void *ctx, const struct queue_run_row *r, struct error *e) {
    const struct past_load *p = ctx;
    if (r->state == JOB_DONE && r->of.start_ns)
        queue_past_add(p->queue, p->user, p->name, r->of.end_ns - r->of.start_ns);
    return 0;
}

static int load_work(struct sql *db, void *ctx, struct error *e) {
    const struct queue_reader reader = {ctx, load_job, load_run, load_cordon, load_usage};
    struct past_load past = {.queue = ctx};
    const struct queue_reader likes = {.ctx = &past, .job = past_job, .run = past_run};
    const struct queue_ask ask = {.states = BIT(JOB_DONE), .limit = PAST_LOADED, .runs_most = 1};
    int r = queue_store_read(db, clock_real_ns() / HOUR_NS - USAGE_WEEK_H, &reader, e);
    if (r >= 0) r = queue_after_load(db, ctx, e);
    if (r >= 0) r = queue_letters_load(ctx, db, e);
    if (r >= 0) r = queue_curves_load(ctx, db, e);
    if (r >= 0) r = queue_store_sound(db, load_sound, ctx, e);
    return r < 0 ? r : queue_store_list(db, &ask, &likes, e);
}

/* A job that was told to end as a whole has no row for each element that had not begun. What it waited for may have ended in
 * the very moment in which the server did. */
static void load_end(struct queue *q) {
    for (size_t i = 0; i < q->count; i++) {
        struct queue_job *j = q->job[i];
        bool is_ending = j->is_touched;
        j->is_touched = false;
        for (uint32_t k = 0; is_ending && k < j->elements; k++)
            if (j->element[k].state == JOB_WAITING) queue_element_set(q, j, k, JOB_CANCELLED);
        if (is_ending) queue_job_settle(q, j);
    }
    for (size_t i = 0; i < q->count; i++) queue_job_settle(q, q->job[i]);
    queue_after_begin(q);
}

/* ---- time ---- */

static int trim_work(struct sql *db, void *ctx, struct error *e) {
    const struct queue *q = ctx;
    return queue_store_trim(db, clock_real_ns() - q->settings->jobs_keep_days * 24 * HOUR_NS, e);
}

/* Jobs that are over leave the memory after a while: the file has them. */
static void drop_ended(struct queue *q, int64_t now_ns) {
    size_t kept = 0, ended = 0;
    for (size_t i = 0; i < q->count; i++) ended += q->job[i]->ended_ns != 0;
    if (!ended) return;
    for (size_t i = 0; i < q->count; i++) {
        struct queue_job *j = q->job[i];
        bool is_old = j->ended_ns && (now_ns - j->ended_ns > QUEUE_ENDED_NS || ended > QUEUE_ENDED_MAX);
        if (is_old && !j->is_touched) {
            ended--;
            queue_job_free(j);
        } else {
            q->job[kept++] = j;
        }
    }
    q->count = kept;
}

static void tick(void *ctx) {
    struct queue *q = ctx;
    static unsigned ticks;
    if (q->is_stopping) return;
    queue_retry_tick(q, clock_boot_ns());
    queue_asks_end(q, NULL, clock_boot_ns());
    queue_lost_tick(q, clock_boot_ns());
    queue_waits_tick(q);
    queue_staged_end(q, NULL, clock_boot_ns());
    drop_ended(q, clock_real_ns());
    q->is_gpus_old = true;
    queue_want_pass(q); /* estimates, limits and deadlines move with the time */
    queue_wanted_tick(q);
    queue_letters_tick(q);
    queue_curves_tick(q);
    if (++ticks % TRIM_TICKS == 0) {
        struct error e;
        if (state_submit(q->state, trim_work, NULL, q, &e) < 0) log_line(LOG_WARN, "jobs_trim", -1, "%s", e.text);
    }
}

/* ---- what nodes say ---- */

static int take(void *ctx, struct live_node *n, const struct wire_frame *f, struct error *e) {
    struct queue *q = ctx;
    switch (f->type) {
    case WIRE_JOB_SUBMIT: return queue_take_submit(q, n, f, e);
    case WIRE_JOB_CONTROL: return queue_take_control(q, n, f, e);
    case WIRE_JOB_RUN: return queue_take_run(q, n, f, e);
    case WIRE_JOB_NOTICED: return queue_take_noticed(q, n, f, e);
    case WIRE_JOB_FIGURES: return queue_take_figures(q, n, f, e);
    case WIRE_JOB_FREE: return queue_take_free(q, n, f, e);
    case WIRE_JOB_SEALED: return queue_take_sealed(q, f, e);
    case WIRE_JOB_LOG: return queue_take_log(q, f, e);
    case WIRE_JOB_TRIED: return queue_take_tried(q, f, e);
    case WIRE_JOB_HEALTH: return queue_take_health(q, n, f, e);
    default: return 0;
    }
}

static void came(void *ctx, struct live_node *n) {
    struct queue *q = ctx;
    q->is_gpus_old = true;
    queue_gpus_read(q);
    for (size_t i = 0; i < q->gpus; i++) /* what it said in another session may be over */
        if (strcmp(q->gpu[i].node, n->name) == 0) q->gpu[i].is.verdict = OCCUPANCY_UNKNOWN;
    queue_tell_runs(q, n);
    queue_letters_node(q, n->name);
    queue_tell_wanted(q, n);
    queue_want_pass(q);
}

static void left(void *ctx, struct live_node *n) {
    struct queue *q = ctx;
    q->is_gpus_old = true;
    queue_asks_end(q, n->name, 0);
    queue_staged_end(q, n->name, 0);
    queue_letters_node(q, n->name);
    queue_want_pass(q);
}

/* ---- beginning and end ---- */

int queue_new(const struct queue_setup *setup, struct queue **ret, struct error *e) {
    struct queue *q = calloc(1, sizeof *q);
    if (!q) abort();
    *q = (struct queue){.loop = setup->loop,
                        .state = setup->state,
                        .live = setup->live,
                        .settings = setup->settings,
                        .on_event = setup->on_event,
                        .event_ctx = setup->ctx,
                        .begun_ns = clock_real_ns(),
                        .gpu_shape = 1};
    q->plan = plan_new();
    q->preempt = plan_new();
    int r = state_run(q->state, load_work, q, e);
    if (r >= 0) r = reserves_load(&q->reserves, q->state, clock_real_ns() / NS_PER_S, e);
    if (r < 0) {
        queue_free(q);
        return fail_in(e, r, "the queue");
    }
    *ret = q;
    return 0;
}

void queue_start(struct queue *q, struct links *links) {
    q->links = links;
    load_end(q);
    links_on_jobs(links, &(struct link_jobs){q, take, came, left});
    loop_every(q->loop, TICK_MS, tick, q);
}

void queue_set_link(struct queue *q, const char *url) {
    free(q->link);
    q->link = queue_copy(url);
}

void queue_free(struct queue *q) {
    if (!q) return;
    free(q->link);
    q->is_stopping = true;
    for (size_t i = 0; i < q->count; i++) queue_job_free(q->job[i]);
    free(q->job);
    queue_gpus_done(q);
    queue_letters_done(q);
    for (size_t i = 0; i < q->users; i++) free(q->user[i].name);
    free(q->user);
    likes_done(&q->likes);
    reserves_done(&q->reserves);
    plan_free(q->plan);
    plan_free(q->preempt);
    while (q->retries) {
        struct queue_retry *r = q->retries;
        q->retries = r->next;
        free(r);
    }
    while (q->asks) {
        struct queue_ask_open *a = q->asks;
        q->asks = a->next;
        free(a);
    }
    queue_waits_free(q);
    queue_staged_end(q, NULL, INT64_MAX);
    queue_flush_free(q->flush);
    free(q);
}
