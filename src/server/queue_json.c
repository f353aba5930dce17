/* Jobs as the API and the streams show them. Environments are not in here: they lie in the seal, which only the node reads. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu_json.h"
#include "model/insight.h"
#include "model/job_after.h"
#include "model/job_json.h"
#include "model/job_match.h"
#include "server/queue_json.h"
#include "server/queue_own.h"

#define DELTA_MOST 500

/* ---- small parts ---- */

static void put_bytes(struct buf *b, const char *key, uint64_t bytes) {
    json_key(b, key);
    if (bytes)
        json_uint(b, bytes);
    else
        json_nil(b);
}

static void put_real(struct buf *b, const char *key, double v, double scale) {
    if (isfinite(v)) {
        gpu_json_number(b, key, v, scale);
        return;
    }
    json_key(b, key);
    json_nil(b);
}

static const char *const origins[QUEUE_ORIGIN_COUNT] = {
    [QUEUE_BY_SOCKET] = "socket", [QUEUE_BY_ACCOUNT] = "account", [QUEUE_BY_WATCHMEN] = "watchmen"};
static const char *const parents[QUEUE_PARENT_COUNT] = {[QUEUE_OF_REPEAT] = "repeat", [QUEUE_OF_SERVICE] = "service"};

/* ---- a job ---- */

static void put_gpus(struct buf *b, const struct queue *q, const char *uuids) {
    AUTO(buf_done) struct buf indices = {0}, names = {0};
    json_key(b, "gpu_uuids");
    json_open(b, '[');
    json_open(&indices, '[');
    json_open(&names, '[');
    while (uuids && *uuids) {
        char uuid[96];
        size_t n = strcspn(uuids, ",");
        snprintf(uuid, sizeof uuid, "%.*s", (int)(n < sizeof uuid ? n : sizeof uuid - 1), uuids);
        const struct queue_gpu *g = queue_gpu_find(q, uuid);
        json_str(b, uuid);
        char name[QUEUE_GPU_NAME] = "";
        if (g && g->index >= 0) {
            queue_gpu_name(g, name);
            json_int(&indices, g->index);
        } else {
            json_nil(&indices);
        }
        json_str(&names, *name ? name : uuid);
        uuids += n + (uuids[n] == ',');
    }
    json_close(b, ']');
    json_close(&indices, ']');
    json_key(b, "gpu_indices");
    buf_puts(b, indices.s);
    json_close(&names, ']');
    json_key(b, "gpu_names");
    buf_puts(b, names.s);
}

static void put_insight(struct buf *b, const struct job_spec *s, const struct wire_run *w, int gpus, int64_t now_ns) {
    char text[160];
    int64_t until_ns = w->end_ns ? w->end_ns : now_ns;
    struct insight_facts f = {.gpu_ratio = w->gpu_ratio,
                              .cpu_ratio = w->cpu_ratio,
                              .ran_s = w->start_ns ? (double)(until_ns - w->start_ns) / NS_PER_S : 0,
                              .gpus = gpus,
                              .peak_bytes = w->memory_peak_bytes,
                              .total_bytes = w->memory_total_bytes,
                              .share_bytes = s->share_bytes,
                              .is_running = !w->end_ns};
    insight_sentence(&f, text, sizeof text);
    json_pair_text(b, "insight", text);
}

/* What it holds at this moment, and what of it is told only while it runs. */
static void put_now(struct buf *b, const struct wire_figures *v) {
    bool has_disk = v && v->read_bytes != UINT64_MAX, has_host = v && isfinite(v->cpu_seconds);
    put_real(b, "memory_now_bytes", v ? (double)v->memory_bytes : NAN, 1);
    put_real(b, "host_now_bytes", has_host ? (double)v->host_bytes : NAN, 1);
    put_real(b, "disk_read_bytes", has_disk ? (double)v->read_bytes : NAN, 1);
    put_real(b, "disk_written_bytes", has_disk ? (double)v->written_bytes : NAN, 1);
}

/* The part that is a run's: nulls where it has none. ended: of several, when the last was over. */
static void put_run(struct buf *b, const struct queue *q, const struct job_spec *s, const struct queue_run_row *r,
                    int64_t ended_ns) {
    const struct wire_run *w = &r->of;
    bool is_over = job_state_is_over((enum job_state)r->state);
    json_pair_int(b, "attempt", w->key.attempt);
    json_pair_time(b, "granted", r->granted_ns);
    json_pair_time(b, "started", w->start_ns);
    json_pair_time(b, "ended", !is_over ? 0 : ended_ns ? ended_ns : w->end_ns);
    put_gpus(b, q, r->gpus);
    json_key(b, "pid");
    if (w->pid > 0)
        json_int(b, w->pid);
    else
        json_nil(b);
    json_key(b, "exit_code");
    if (is_over && w->has_exit && !w->signal)
        json_int(b, w->code);
    else
        json_nil(b);
    json_key(b, "signal");
    if (is_over && w->has_exit && w->signal)
        json_int(b, w->signal);
    else
        json_nil(b);
    unsigned why = is_over ? w->reason : r->stop;
    json_pair_text(b, "reason",
                   why != JOB_BY_ITSELF && why < JOB_REASON_COUNT ? job_reason_text((enum job_reason)why) : "");
    json_pair_text(b, "text", w->text);
    json_pair_bool(b, "again", r->again);
    bool is_seen = w->gpu_seconds > 0 || isfinite(w->gpu_ratio); /* else nobody could tell: that is not none */
    put_real(b, "gpu_seconds", is_seen ? w->gpu_seconds : NAN, 0.001);
    put_real(b, "energy_joules", w->energy_joules, 0.1);
    put_real(b, "cpu_seconds", w->cpu_seconds, 0.001);
    put_real(b, "gpu_utilization_ratio", w->gpu_ratio, 0.001);
    put_real(b, "cpu_ratio", w->cpu_ratio, 0.001);
    put_bytes(b, "memory_peak_bytes", w->memory_peak_bytes);
    put_now(b, r->now);
    put_bytes(b, "host_peak_bytes", w->host_peak_bytes);
    json_key(b, "log_bytes");
    if (is_over || r->now || w->log_bytes)
        json_uint(b, w->log_bytes);
    else
        json_nil(b);
    put_insight(b, s, w, s->gpus, clock_real_ns());
}

static void put_parent(struct buf *b, const struct queue_job_row *row) {
    json_key(b, "parent");
    if (row->parent_kind == QUEUE_OF_NOBODY || row->parent_kind >= QUEUE_PARENT_COUNT) {
        json_nil(b);
        return;
    }
    json_open(b, '{');
    json_pair_str(b, "kind", parents[row->parent_kind]);
    json_pair_int(b, "id", row->parent);
    json_close(b, '}');
}

static void put_state(struct buf *b, enum job_state state, const char *text) {
    json_pair_str(b, "state", job_state_name(state));
    json_pair_text(b, "state_text", text);
}

void queue_json_row(struct queue *q, struct buf *b, const struct queue_json_job *j) {
    const struct queue_job_row *row = j->row;
    char untold[QUEUE_UNTOLD];
    json_open(b, '{');
    json_pair_int(b, "id", row->id);
    json_key(b, "element");
    if (j->element >= 0)
        json_int(b, j->element);
    else
        json_nil(b);
    job_json_values(b, j->spec, j->element >= 0 ? job_element_find(j->spec, j->element) : -1);
    put_state(b, (enum job_state)row->state, row->text);
    json_pair_str(b, "user", row->user);
    json_pair_int(b, "uid", row->uid);
    json_pair_text(b, "account", row->account);
    json_pair_str(b, "origin", row->origin < QUEUE_ORIGIN_COUNT ? origins[row->origin] : "unknown");
    json_pair_str(b, "node", row->node);
    put_parent(b, row);
    json_pair_time(b, "submitted", row->submitted_ns);
    AUTO(buf_done) struct buf after = {0};
    struct job_spec spec = *j->spec;
    spec.priority = row->priority; /* somebody may have moved it */
    spec.after = job_after_numbers(&spec, row->id, &after);
    job_json_members(b, &spec);
    struct queue_run_row none = {.gpus = "", .state = JOB_WAITING};
    none.of.gpu_seconds = none.of.energy_joules = none.of.cpu_seconds = none.of.gpu_ratio = none.of.cpu_ratio = NAN;
    put_run(b, q, j->spec, j->run ? j->run : &none, j->counts ? row->ended_ns : 0);
    if (j->counts) {
        json_key(b, "elements");
        json_open(b, '{');
        json_pair_int(b, "total", row->elements);
        for (int s = 0; s < JOB_STATE_COUNT; s++)
            if (j->counts[s]) json_pair_int(b, job_state_name((enum job_state)s), j->counts[s]);
        json_close(b, '}');
    }
    json_pair_text(b, "why", j->why);
    json_key(b, "place");
    if (j->place > 0)
        json_int(b, j->place);
    else
        json_nil(b);
    json_pair_time(b, "starts_at", j->starts_ns);
    json_pair_text(b, "sooner", j->sooner);
    json_pair_text(b, "stage", j->stage);
    queue_untold(q, row->id, untold);
    json_pair_text(b, "untold", untold);
    json_close(b, '}');
}

/* ---- jobs in memory ---- */

static void row_of(const struct queue_job *j, struct queue_job_row *ret) {
    *ret = (struct queue_job_row){.id = j->id,
                                  .submitted_ns = j->submitted_ns,
                                  .ended_ns = j->ended_ns,
                                  .uid = j->uid,
                                  .user = j->user,
                                  .account = j->account,
                                  .node = j->node,
                                  .text = j->text,
                                  .origin = j->origin,
                                  .parent_kind = j->parent_kind,
                                  .parent = j->parent,
                                  .state = (uint8_t)queue_job_state(j),
                                  .priority = j->priority,
                                  .elements = j->elements,
                                  .at_once = j->at_once,
                                  .is_held = j->is_held};
}

/* The run that a job is shown by: the one that began last, else the end that says most. */
static void shown_run(const struct queue_job *j, const struct queue_run *only, struct buf *gpus,
                      struct queue_run_row *ret) {
    const struct queue_run *r = only ? only : j->runs;
    if (r) {
        queue_run_row(r, gpus, ret);
        return;
    }
    *ret = (struct queue_run_row){
        .of = j->last, .gpus = j->last_gpus ? j->last_gpus : "", .granted_ns = j->last_granted_ns};
    ret->state = j->last.key.attempt ? (uint8_t)queue_job_state(j) : JOB_WAITING;
}

static void put_job(struct queue *q, struct buf *b, const struct queue_job *j, const struct queue_run *only,
                    const struct queue_reason *why) {
    AUTO(buf_done) struct buf gpus = {0};
    struct queue_job_row row;
    struct queue_run_row run;
    static const struct queue_reason none;
    char stage[QUEUE_STAGE];
    if (!why) why = &none;
    queue_stage(j, stage);
    row_of(j, &row);
    shown_run(j, only, &gpus, &run);
    if (only) row.state = (uint8_t)only->state;
    if (j->origin == QUEUE_BY_WATCHMEN && row.state == JOB_GRANTED)
        row.text = "granted to a client of watchmen: its own process is not seen on its GPUs yet";
    if (!j->last.key.attempt && !j->runs)
        run.of.gpu_seconds = run.of.energy_joules = run.of.cpu_seconds = run.of.gpu_ratio = run.of.cpu_ratio = NAN;
    struct queue_json_job out = {.row = &row,
                                 .spec = &j->spec,
                                 .run = &run,
                                 .element = -1,
                                 .counts = j->elements > 1 ? j->counts : NULL,
                                 .why = why->why,
                                 .place = why->place,
                                 .starts_ns = why->starts_ns,
                                 .sooner = why->sooner,
                                 .stage = stage};
    if (only && j->elements > 1) out.element = job_element_number(&j->spec, only->of.key.element);
    queue_json_row(q, b, &out);
}

void queue_json_job(struct queue *q, struct buf *b, const struct queue_job *j) {
    struct queue_reason why;
    queue_explain_job(q, j, &why);
    put_job(q, b, j, NULL, &why);
}

void queue_json_runs(struct queue *q, struct buf *b, const struct queue_job *j) {
    for (const struct queue_run *r = j->runs; r; r = r->next) put_job(q, b, j, r, NULL);
}

void queue_json_brief(struct buf *b, const struct queue_job_row *row, const struct job_spec *spec,
                      const struct queue_run_row *run) {
    const struct wire_run *w = &run->of;
    bool is_over = job_state_is_over((enum job_state)run->state);
    json_open(b, '{');
    json_pair_int(b, "id", row->id);
    json_key(b, "element");
    if (row->elements > 1)
        json_int(b, job_element_number(spec, w->key.element));
    else
        json_nil(b);
    json_pair_int(b, "attempt", w->key.attempt);
    json_pair_str(b, "name", spec->name);
    json_pair_str(b, "user", row->user);
    json_pair_str(b, "state", job_state_name((enum job_state)run->state));
    put_parent(b, row);
    json_pair_time(b, "granted", run->granted_ns);
    json_pair_time(b, "started", w->start_ns);
    json_pair_time(b, "ended", is_over ? w->end_ns : 0);
    json_pair_int(b, "gpus", spec->gpus);
    put_bytes(b, "share_bytes", spec->share_bytes);
    put_real(b, "gpu_utilization_ratio", w->gpu_ratio, 0.001);
    put_bytes(b, "memory_peak_bytes", w->memory_peak_bytes);
    json_close(b, '}');
}

static bool holds(const struct queue_run *r, const char *uuid) {
    for (uint16_t k = 0; k < r->gpus; k++)
        if (strcmp(r->uuid[k], uuid) == 0) return true;
    return false;
}

void queue_json_on_gpu(struct queue *q, struct buf *b, const char *uuid, int64_t to_ns) {
    for (size_t i = q->count; i > 0; i--)
        for (const struct queue_run *r = q->job[i - 1]->runs; r; r = r->next) {
            AUTO(buf_done) struct buf gpus = {0};
            struct queue_job_row row;
            struct queue_run_row run;
            if (r->granted_ns >= to_ns || !holds(r, uuid)) continue;
            row_of(q->job[i - 1], &row);
            queue_run_row(r, &gpus, &run);
            queue_json_brief(b, &row, &q->job[i - 1]->spec, &run);
        }
}

/* Whom it waits for as people write it, in `b`; *why says whom, where one of them is not over. */
static struct job_words trial_after(const struct queue *q, const struct queue_trial_of *t, struct buf *b,
                                    struct queue_reason *why) {
    struct job_after a;
    for (const char *w = NULL; (w = job_word_next(&t->jobs[t->at].after, w));) {
        char whom[JOB_NAME_MAX + 8];
        if (!job_after_read(w, &a)) continue;
        const struct queue_job *other = a.is_near ? NULL : queue_find(q, a.job);
        if (a.is_near)
            snprintf(whom, sizeof whom, "%s", t->jobs[(int64_t)t->at + a.job].name);
        else
            snprintf(whom, sizeof whom, "job %lld", (long long)a.job);
        buf_printf(b, "%s%s", whom + (a.is_near ? 0 : 4), a.any ? ":any" : "");
        buf_putc(b, 0);
        if (!*why->why && (a.is_near || (other && !other->ended_ns)))
            snprintf(why->why, sizeof why->why, "it waits for %s to end%s", whom, a.any ? "" : " well");
    }
    return job_words_of(b);
}

void queue_json_trial(struct queue *q, struct buf *b, const struct queue_trial_of *t) {
    AUTO(buf_done) struct buf gpus = {0}, after = {0};
    struct queue_reason why = {0};
    struct job_spec shown = t->jobs[t->at];
    const struct job_spec *s = &shown;
    shown.after = trial_after(q, t, &after, &why);
    if (!*why.why) queue_explain_spec(q, s, t->node, t->user, &why, &gpus);
    json_open(b, '{');
    json_pair_int(b, "step", t->step);
    job_json_members(b, s);
    unsigned count = 1, at_once;
    (void)!job_elements(s, &count, &at_once, NULL);
    json_pair_int(b, "elements", count);
    json_pair_bool(b, "starts_now", why.is_now);
    json_pair_text(b, "why", why.why);
    json_key(b, "place");
    if (why.place > 0)
        json_int(b, why.place);
    else
        json_nil(b);
    json_pair_time(b, "starts_at", why.starts_ns);
    json_pair_text(b, "sooner", why.sooner);
    put_gpus(b, q, gpus.s);
    json_close(b, '}');
}

/* ---- the queue ---- */

static bool is_waiting(const struct queue_job *j) { return j->counts[JOB_WAITING] || j->counts[JOB_HELD]; }

static void put_queue_gpu(struct queue *q, struct buf *b, const struct queue_gpu *g) {
    json_open(b, '{');
    json_pair_str(b, "uuid", g->uuid);
    json_pair_int(b, "index", g->index);
    char name[QUEUE_GPU_NAME];
    queue_gpu_name(g, name);
    json_pair_str(b, "name", name);
    json_pair_str(b, "node", g->node);
    enum occupancy o = !g->is_here ? OCCUPANCY_UNKNOWN : g->cordon ? OCCUPANCY_CORDONED : (enum occupancy)g->is.verdict;
    json_key(b, "held_by");
    json_open(b, '[');
    for (size_t i = 0; i < q->count; i++)
        for (const struct queue_run *r = q->job[i]->runs; r; r = r->next)
            if (holds(r, g->uuid)) json_int(b, q->job[i]->id);
    json_close(b, ']');
    json_pair_str(b, "verdict", occupancy_name(o));
    bool is_noted = *g->is.note && o == (enum occupancy)g->is.verdict;
    json_pair_str(b, "verdict_text", is_noted ? g->is.note : occupancy_text(o));
    bool has_user = g->is.verdict == OCCUPANCY_FOREIGN || g->is.verdict == OCCUPANCY_STRAY;
    json_pair_text(b, "user", has_user ? g->is.user : "");
    json_key(b, "pid");
    if (has_user && g->is.pid > 0)
        json_int(b, g->is.pid);
    else
        json_nil(b);
    put_bytes(b, "memory_bytes", g->is.memory_bytes);
    put_bytes(b, "memory_total_bytes", g->memory_bytes);
    json_pair_time(b, "since", o == OCCUPANCY_CORDONED ? g->cordon_ns : g->is.since_ns);
    json_pair_time(b, "idle_since", g->is.idle_ns);
    json_pair_text(b, "outside", outside_step_name((enum outside_step)g->is.outside));
    json_pair_time(b, "ends", g->is.ends_ns);
    json_pair_text(b, "cordon", g->cordon);
    json_pair_text(b, "cordoned_by", g->cordon_who);
    json_close(b, '}');
}

void queue_json(struct queue *q, struct buf *b, const struct job_match *match, size_t limit) {
    const struct queue_job **shown = calloc(limit + 1, sizeof(void *));
    struct queue_reason *why = calloc(limit + 1, sizeof *why);
    size_t count = 0, waiting = 0;
    if (!shown || !why) abort();
    for (size_t i = 0; i < q->count; i++) {
        if (!is_waiting(q->job[i]) || !job_match(match, &q->job[i]->spec)) continue;
        if (waiting++ < limit) shown[count++] = q->job[i];
    }
    queue_explain_jobs(q, shown, count, why);
    json_key(b, "waiting");
    json_open(b, '[');
    for (size_t i = 0; i < count; i++) put_job(q, b, shown[i], NULL, &why[i]);
    json_close(b, ']');
    json_pair_int(b, "waiting_count", (int64_t)waiting);
    json_key(b, "running");
    json_open(b, '[');
    for (size_t i = 0; i < q->count; i++) queue_json_runs(q, b, q->job[i]);
    json_close(b, ']');
    json_key(b, "gpus");
    json_open(b, '[');
    for (size_t i = 0; i < q->gpus; i++)
        if (q->gpu[i].index >= 0) put_queue_gpu(q, b, &q->gpu[i]);
    json_close(b, ']');
    json_key(b, "plan");
    json_open(b, '[');
    queue_plan_json(q, b, shown, count);
    json_close(b, ']');
    gpu_json_number(b, "pass_s", (double)q->pass_ns / NS_PER_S, 0.000001);
    free(shown);
    free(why);
}

/* ---- streams ---- */

bool queue_json_delta(struct queue *q, struct buf *b) {
    size_t told = 0;
    for (size_t i = q->count; i > 0; i--) { /* the newest first: a flood of old ones is fetched, not streamed */
        struct queue_job *j = q->job[i - 1];
        if (!j->is_changed) continue;
        j->is_changed = false;
        if (!b || told >= DELTA_MOST) continue;
        if (!told++) {
            json_key(b, "jobs");
            json_open(b, '[');
        }
        put_job(q, b, j, NULL, NULL);
    }
    if (told) json_close(b, ']');
    return told > 0;
}

void queue_json_snapshot(struct queue *q, struct buf *b) {
    size_t shown = 0;
    json_key(b, "jobs");
    json_open(b, '[');
    for (size_t i = q->count; i > 0 && shown < DELTA_MOST; i--, shown++) put_job(q, b, q->job[i - 1], NULL, NULL);
    json_close(b, ']');
}
