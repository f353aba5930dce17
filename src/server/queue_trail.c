#include "server/queue_trail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/job_json.h"

#define AT_ONCE_MOST 1000 /* runs of one GPU at a moment: shares of its memory */
#define OF_BEGIN_MOST 64

/* ---- changes ---- */

int trail_store_end(struct sql *db, const struct queue_run_row *row, struct error *e) {
    const struct wire_run_key *k = &row->of.key;
    char uuid[96];
    for (const char *at = row->gpus; *at;) {
        size_t n = strcspn(at, ",");
        snprintf(uuid, sizeof uuid, "%.*s", (int)n, at);
        int r =
            sql_do(db, e, "INSERT OR REPLACE INTO gpu_runs(job,element,attempt,gpu,granted,ended) VALUES(?,?,?,?,?,?)",
                   "iiisii", k->job, (int64_t)k->element, (int64_t)k->attempt, uuid, row->granted_ns, row->of.end_ns);
        if (r < 0) return r;
        at += n + (at[n] == ',');
    }
    return 0;
}

int trail_store_curve(struct sql *db, const struct wire_run_key *k, const void *body, size_t len, struct error *e) {
    int r = sql_do(db, e, "INSERT OR REPLACE INTO curves(job,element,attempt,body) VALUES(?,?,?,?)", "iiib", k->job,
                   (int64_t)k->element, (int64_t)k->attempt, body, len);
    return r < 0 ? r : 0;
}

int trail_drop(struct sql *db, int64_t job, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM gpu_runs WHERE job=?", "i", job);
    if (r >= 0) r = sql_do(db, e, "DELETE FROM curves WHERE job=?", "i", job);
    return r < 0 ? r : 0;
}

/* ---- of a GPU ---- */

struct walk {
    int (*each)(void *ctx, const struct queue_job_row *j, const struct queue_run_row *r, struct error *e);
    void *ctx;
    int left;
};

#define COLUMNS                                                                                                        \
    "SELECT r.job,r.element,r.attempt,r.state,r.granted,r.started,r.ended,r.gpu_ratio,r.memory_peak,j.user,j.record,"  \
    "j.elements,j.parent_kind,j.parent,r.gpus,j.account FROM "
#define WITH_ROWS                                                                                                      \
    " g JOIN runs r ON r.job=g.job AND r.element=g.element AND r.attempt=g.attempt JOIN jobs j ON j.id=g.job "

static int tell(const struct sql_row *row, void *ctx, struct error *e) {
    struct walk *w = ctx;
    if (w->left-- <= 0) return 0; /* one more than was asked for: it says that there are more */
    struct queue_job_row j = {.id = sql_row_int(row, 0),
                              .user = sql_row_text(row, 9),
                              .account = sql_row_text(row, 15),
                              .elements = (uint32_t)sql_row_int(row, 11),
                              .parent_kind = (uint8_t)sql_row_int(row, 12),
                              .parent = sql_row_int(row, 13)};
    j.record = sql_row_blob(row, 10, &j.record_len);
    struct queue_run_row r = {
        .state = (uint8_t)sql_row_int(row, 3), .granted_ns = sql_row_int(row, 4), .gpus = sql_row_text(row, 14)};
    r.of.key = (struct wire_run_key){j.id, (uint32_t)sql_row_int(row, 1), (uint32_t)sql_row_int(row, 2)};
    r.of.start_ns = sql_row_int(row, 5);
    r.of.end_ns = sql_row_int(row, 6);
    r.of.gpu_ratio = sql_row_real(row, 7);
    r.of.memory_peak_bytes = (uint64_t)sql_row_int(row, 8);
    return w->each(w->ctx, &j, &r, e);
}

int trail_of_gpu(struct sql *db, const struct trail_ask *a,
                 int (*each)(void *ctx, const struct queue_job_row *j, const struct queue_run_row *r, struct error *e),
                 void *ctx, struct error *e) {
    struct walk w = {each, ctx, a->limit};
    int r = sql_each(db, tell, &w, e,
                     COLUMNS "(SELECT * FROM gpu_runs WHERE gpu=? AND granted>=? AND granted<?"
                             " ORDER BY granted DESC LIMIT ?)" WITH_ROWS "ORDER BY g.granted DESC",
                     "siii", a->gpu, a->from_ns, a->to_ns, (int64_t)a->limit + 1);
    if (r < 0) return r;
    if (w.left < 0) return 1;
    w.left = OF_BEGIN_MOST;
    r = sql_each(db, tell, &w, e,
                 COLUMNS "(SELECT * FROM gpu_runs WHERE gpu=? AND ended>? ORDER BY ended LIMIT ?)" WITH_ROWS
                         "WHERE g.granted<? ORDER BY g.granted DESC",
                 "siii", a->gpu, a->from_ns, (int64_t)AT_ONCE_MOST, a->from_ns);
    return r < 0 ? r : w.left < 0;
}

/* ---- curves ---- */

struct finding {
    int64_t number, place, elements;
};

static int find_place(const struct sql_row *row, void *ctx, struct error *e) {
    struct finding *f = ctx;
    struct job_spec spec;
    size_t len;
    const void *record = sql_row_blob(row, 1, &len);
    f->elements = sql_row_int(row, 0);
    if (f->number < 0 && f->elements <= 1) f->place = 0;
    if (f->number < 0 || job_decode(record, len, &spec, NULL) < 0) return 0;
    for (uint32_t i = 0; i < f->elements && f->place < 0; i++)
        if (job_element_number(&spec, i) == f->number) f->place = i;
    return 0;
}

static int take_curve(const struct sql_row *row, void *ctx, struct error *e) {
    struct trail_curve *t = ctx;
    size_t len;
    const void *body = sql_row_blob(row, 1, &len);
    t->key.attempt = (uint32_t)sql_row_int(row, 0);
    t->started_ns = sql_row_int(row, 2);
    t->ended_ns = sql_row_int(row, 3);
    return curve_decode(body, len, &t->curve, e);
}

int trail_curve(struct sql *db, int64_t job, int64_t number, uint32_t attempt, struct trail_curve *ret,
                struct error *e) {
    struct finding f = {.number = number, .place = -1};
    int r = sql_each(db, find_place, &f, e, "SELECT elements,record FROM jobs WHERE id=?", "i", job);
    if (r < 0) return r;
    if (r == 0) return fail(e, -ENOENT, "there is no job %lld", (long long)job);
    if (f.place < 0 && number < 0)
        return fail(e, -EINVAL, "element: job %lld has %lld, say of which", (long long)job, (long long)f.elements);
    if (f.place < 0) return fail(e, -ENOENT, "job %lld has no element %lld", (long long)job, (long long)number);
    ret->key = (struct wire_run_key){.job = job, .element = (uint32_t)f.place};
    return sql_each(
        db, take_curve, ret, e,
        "SELECT c.attempt,c.body,r.started,r.ended FROM curves c JOIN runs r ON r.job=c.job AND"
        " r.element=c.element AND r.attempt=c.attempt WHERE c.job=? AND c.element=? AND (?=0 OR c.attempt=?)"
        " ORDER BY c.attempt DESC LIMIT 1",
        "iiii", job, f.place, (int64_t)attempt, (int64_t)attempt);
}

struct opening {
    void (*each)(void *ctx, const struct wire_run_key *k, const struct curve *c);
    void *ctx;
};

static int open_curve(const struct sql_row *row, void *ctx, struct error *e) {
    const struct opening *o = ctx;
    static struct curve c; /* before any thread begins */
    size_t len;
    struct error ignored;
    const void *body = sql_row_blob(row, 3, &len);
    struct wire_run_key k = {sql_row_int(row, 0), (uint32_t)sql_row_int(row, 1), (uint32_t)sql_row_int(row, 2)};
    if (curve_decode(body, len, &c, &ignored) >= 0) o->each(o->ctx, &k, &c);
    return 0;
}

int trail_open_curves(struct sql *db, void (*each)(void *ctx, const struct wire_run_key *k, const struct curve *c),
                      void *ctx, struct error *e) {
    struct opening o = {each, ctx};
    int r =
        sql_each(db, open_curve, &o, e,
                 "SELECT job,element,attempt,body FROM curves WHERE job IN(SELECT id FROM jobs WHERE is_over=0)", "");
    return r < 0 ? r : 0;
}
