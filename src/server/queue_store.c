#include "server/queue_store.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "server/queue_trail.h"

#define HOUR_NS (3600 * NS_PER_S)
#define TRIM_MOST 500

/* ---- changes ---- */

int queue_store_add(struct sql *db, const struct queue_job_row *rows, size_t count, int64_t *ret_first,
                    struct error *e) {
    int64_t first = 0;
    for (size_t i = 0; i < count; i++) {
        const struct queue_job_row *j = &rows[i];
        int r =
            sql_do(db, e,
                   "INSERT INTO jobs(submitted,uid,user,account,node,origin,priority,elements,at_once,is_held,state,"
                   "is_over,ended,text,record,seal,parent_kind,parent,behind,ask,asked) "
                   "VALUES(?,?,?,?,?,?,?,?,?,?,?,0,0,'',?,?,?,?,?,?,?)",
                   "iisssiiiiiibbiiisi", j->submitted_ns, (int64_t)j->uid, j->user, j->account, j->node,
                   (int64_t)j->origin, (int64_t)j->priority, (int64_t)j->elements, (int64_t)j->at_once,
                   (int64_t)j->is_held, (int64_t)j->state, j->record, j->record_len, j->seal, j->seal_len,
                   (int64_t)j->parent_kind, j->parent, j->behind, j->ask, j->ask ? (int64_t)count : 0);
        if (r < 0) return r;
        if (i == 0) first = sql_last_id(db);
    }
    *ret_first = first;
    return 0;
}

int queue_store_asked(struct sql *db, const char *ask, int64_t *ret_first, int64_t *ret_count, struct error *e) {
    int64_t first = 0, count = 0;
    int r = sql_int(db, &first, e, "SELECT id FROM jobs WHERE ask=?", "s", ask);
    if (r == -ENOENT) return 0;
    if (r >= 0) r = sql_int(db, &count, e, "SELECT asked FROM jobs WHERE id=?", "i", first);
    if (r < 0) return r;
    *ret_first = first;
    *ret_count = count;
    return 1;
}

int queue_store_job(struct sql *db, const struct queue_job_row *j, struct error *e) {
    bool is_over = job_state_is_over((enum job_state)j->state);
    int r = sql_do(db, e, "UPDATE jobs SET state=?,is_over=?,ended=?,text=?,priority=?,is_held=? WHERE id=?", "iiisiii",
                   (int64_t)j->state, (int64_t)is_over, j->ended_ns, j->text ? j->text : "", (int64_t)j->priority,
                   (int64_t)j->is_held, j->id);
    return r < 0 ? r : r == 0 ? fail(e, -ENOENT, "there is no job %lld", (long long)j->id) : 0;
}

int queue_store_run(struct sql *db, const struct queue_run_row *row, struct error *e) {
    const struct wire_run *w = &row->of;
    int r = sql_do(
        db, e,
        "INSERT OR REPLACE INTO runs(job,element,attempt,state,again,stop,gpus,granted,started,ended,reason,has_exit,"
        "code,signal,gpu_seconds,energy_joules,cpu_seconds,gpu_ratio,cpu_ratio,memory_peak,memory_total,host_peak,"
        "log_bytes,text) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        "iiiiiisiiiiiiidddddiiiis", w->key.job, (int64_t)w->key.element, (int64_t)w->key.attempt, (int64_t)row->state,
        (int64_t)row->again, (int64_t)row->stop, row->gpus, row->granted_ns, w->start_ns, w->end_ns, (int64_t)w->reason,
        (int64_t)w->has_exit, (int64_t)w->code, (int64_t)w->signal, w->gpu_seconds, w->energy_joules, w->cpu_seconds,
        w->gpu_ratio, w->cpu_ratio, (int64_t)w->memory_peak_bytes, (int64_t)w->memory_total_bytes,
        (int64_t)w->host_peak_bytes, (int64_t)w->log_bytes, w->text);
    if (r >= 0 && w->end_ns && job_state_is_over((enum job_state)row->state)) r = trail_store_end(db, row, e);
    return r < 0 ? r : 0;
}

int queue_store_is_over(struct sql *db, const struct wire_run_key *k, struct error *e) {
    int64_t state;
    int r = sql_int(db, &state, e, "SELECT state FROM runs WHERE job=? AND element=? AND attempt=?", "iii", k->job,
                    (int64_t)k->element, (int64_t)k->attempt);
    return r < 0 ? r : job_state_is_over((enum job_state)state);
}

static int take_seal(const struct sql_row *row, void *ctx, struct error *e) {
    size_t n;
    const void *seal = sql_row_blob(row, 0, &n);
    buf_add(ctx, seal, n);
    return 0;
}

int queue_store_seal(struct sql *db, int64_t job, struct buf *ret, struct error *e) {
    int r = sql_each(db, take_seal, ret, e, "SELECT seal FROM jobs WHERE id=?", "i", job);
    return r < 0 ? r : r == 0 ? fail(e, -ENOENT, "there is no job %lld", (long long)job) : 0;
}

static int add_hour(struct sql *db, const struct queue_usage *u, int64_t hour, double held_s, double part, bool is_last,
                    struct error *e) {
    int r = sql_do(db, e,
                   "INSERT INTO usage VALUES(?,?,?,?,?,?,?,?) ON CONFLICT(hour,user) DO UPDATE SET"
                   " held_s=held_s+excluded.held_s,used_s=used_s+excluded.used_s,energy_j=energy_j+excluded.energy_j,"
                   "wait_s=wait_s+excluded.wait_s,runs=runs+excluded.runs,failed=failed+excluded.failed",
                   "isddddii", hour, u->user, held_s, u->used_s * part, u->energy_j * part, is_last ? u->wait_s : 0.0,
                   (int64_t)is_last, (int64_t)(is_last && u->is_failed));
    return r < 0 ? r : 0;
}

/* A run that held its GPUs over several hours is divided among them: a week's sum is then what was held in that week. Runs,
 * failures and waits count where the run ended. */
int queue_store_usage(struct sql *db, const struct queue_usage *u, struct error *e) {
    int64_t from_ns = u->from_ns, to_ns = u->to_ns > from_ns ? u->to_ns : from_ns;
    double whole_s = (double)(to_ns - from_ns) / NS_PER_S;
    if (whole_s > 366.0 * 86400) from_ns = to_ns; /* a clock that was set: nothing that can be divided */
    for (int64_t at = from_ns;;) {
        int64_t end = (at / HOUR_NS + 1) * HOUR_NS;
        bool is_last = end >= to_ns;
        double part_s = (double)((is_last ? to_ns : end) - at) / NS_PER_S;
        double part = from_ns == to_ns ? 1 : part_s / whole_s;
        int r = add_hour(db, u, at / HOUR_NS, part_s * u->gpus, part, is_last, e);
        if (r < 0 || is_last) return r;
        at = end;
    }
}

int queue_store_cordon(struct sql *db, const char *uuid, const char *reason, const char *who, int64_t now_ns,
                       struct error *e) {
    int r = reason ? sql_do(db, e, "INSERT OR REPLACE INTO cordons VALUES(?,?,?,?)", "sssi", uuid, reason, who, now_ns)
                   : sql_do(db, e, "DELETE FROM cordons WHERE uuid=?", "s", uuid);
    if (r >= 0 && !reason) r = sql_do(db, e, "INSERT OR REPLACE INTO sound VALUES(?,?,?)", "sis", uuid, now_ns, who);
    return r < 0 ? r : 0;
}

struct sounds {
    void (*each)(void *ctx, const char *uuid, int64_t since_ns);
    void *ctx;
};

static int read_sound(const struct sql_row *row, void *ctx, struct error *e) {
    const struct sounds *s = ctx;
    s->each(s->ctx, sql_row_text(row, 0), sql_row_int(row, 1));
    return 0;
}

int queue_store_sound(struct sql *db, void (*each)(void *ctx, const char *uuid, int64_t since_ns), void *ctx,
                      struct error *e) {
    struct sounds s = {each, ctx};
    int r = sql_each(db, read_sound, &s, e, "SELECT uuid, since FROM sound ORDER BY uuid", "");
    return r < 0 ? r : 0;
}

static int trim_one(const struct sql_row *row, void *ctx, struct error *e) {
    int r = sql_do(ctx, e, "DELETE FROM runs WHERE job=?", "i", sql_row_int(row, 0));
    if (r >= 0) r = trail_drop(ctx, sql_row_int(row, 0), e);
    return r < 0 ? r : 0;
}

int queue_store_trim(struct sql *db, int64_t ended_before_ns, struct error *e) {
    int r = sql_each(db, trim_one, db, e, "SELECT id FROM jobs WHERE is_over=1 AND ended<? ORDER BY ended LIMIT ?",
                     "ii", ended_before_ns, (int64_t)TRIM_MOST);
    if (r > 0)
        r = sql_do(
            db, e,
            "DELETE FROM jobs WHERE id IN(SELECT id FROM jobs WHERE is_over=1 AND ended<? ORDER BY ended LIMIT ?)",
            "ii", ended_before_ns, (int64_t)TRIM_MOST);
    return r;
}
