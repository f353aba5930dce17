/* The reading half of queue_store.h. */
#include <errno.h>
#include <string.h>

#include "server/queue_store.h"

#define JOB_COLUMNS                                                                                                    \
    "id,submitted,uid,user,account,node,origin,priority,elements,at_once,is_held,state,ended,text,record,parent_kind," \
    "parent,behind"
#define RUN_COLUMNS                                                                                                    \
    "job,element,attempt,state,again,stop,gpus,granted,started,ended,reason,has_exit,code,signal,gpu_seconds,"         \
    "energy_joules,cpu_seconds,gpu_ratio,cpu_ratio,memory_peak,memory_total,host_peak,log_bytes,text"

struct walk {
    const struct queue_reader *reader;
    struct sql *db;
    uint32_t runs_most;
    int64_t number; /* of an element, as people see it; below 0: all */
};

static int tell_run(const struct sql_row *row, void *ctx, struct error *e) {
    const struct walk *w = ctx;
    struct queue_run_row r = {.state = (uint8_t)sql_row_int(row, 3),
                              .again = sql_row_int(row, 4) != 0,
                              .stop = (uint8_t)sql_row_int(row, 5),
                              .gpus = sql_row_text(row, 6),
                              .granted_ns = sql_row_int(row, 7)};
    struct wire_run *of = &r.of;
    of->key = (struct wire_run_key){sql_row_int(row, 0), (uint32_t)sql_row_int(row, 1), (uint32_t)sql_row_int(row, 2)};
    of->start_ns = sql_row_int(row, 8);
    of->end_ns = sql_row_int(row, 9);
    of->reason = (uint8_t)sql_row_int(row, 10);
    of->has_exit = sql_row_int(row, 11) != 0;
    of->code = (int32_t)sql_row_int(row, 12);
    of->signal = (int32_t)sql_row_int(row, 13);
    of->gpu_seconds = sql_row_real(row, 14);
    of->energy_joules = sql_row_real(row, 15);
    of->cpu_seconds = sql_row_real(row, 16);
    of->gpu_ratio = sql_row_real(row, 17);
    of->cpu_ratio = sql_row_real(row, 18);
    of->memory_peak_bytes = (uint64_t)sql_row_int(row, 19);
    of->memory_total_bytes = (uint64_t)sql_row_int(row, 20);
    of->host_peak_bytes = (uint64_t)sql_row_int(row, 21);
    of->log_bytes = (uint64_t)sql_row_int(row, 22);
    const char *text = sql_row_text(row, 23);
    size_t n = strnlen(text, sizeof of->text - 1);
    memcpy(of->text, text, n);
    return w->reader->run(w->reader->ctx, &r, e);
}

/* The place of the element that is asked for; -1: there is none. */
static int64_t place_of(const struct queue_job_row *j, int64_t number) {
    struct job_spec spec;
    if (job_decode(j->record, j->record_len, &spec, NULL) < 0) return -1;
    for (uint32_t i = 0; i < j->elements; i++)
        if (job_element_number(&spec, i) == number) return i;
    return -1;
}

static int tell_runs(struct walk *w, const struct queue_job_row *j, struct error *e) {
    int r;
    if (w->runs_most == 1) /* one that goes on has no end yet */
        r = sql_each(w->db, tell_run, w, e,
                     "SELECT " RUN_COLUMNS " FROM runs WHERE job=?"
                     " ORDER BY ended=0 DESC,(state=? AND again=0) DESC,ended DESC,attempt DESC LIMIT 1",
                     "ii", j->id, (int64_t)j->state);
    else if (w->number >= 0)
        r = sql_each(w->db, tell_run, w, e,
                     "SELECT " RUN_COLUMNS " FROM runs WHERE job=? AND element=? ORDER BY attempt LIMIT ?", "iii",
                     j->id, place_of(j, w->number), (int64_t)w->runs_most);
    else
        r = sql_each(w->db, tell_run, w, e,
                     "SELECT " RUN_COLUMNS " FROM runs WHERE job=? ORDER BY element,attempt LIMIT ?", "ii", j->id,
                     (int64_t)w->runs_most);
    return r < 0 ? r : 0;
}

static int take_count(const struct sql_row *row, void *ctx, struct error *e) {
    int64_t state = sql_row_int(row, 0);
    if (state >= 0 && state < JOB_STATE_COUNT) ((uint32_t *)ctx)[state] = (uint32_t)sql_row_int(row, 1);
    return 0;
}

/* How its elements ended. Those that a cancel of the whole job kept from running have no row. */
static int count_elements(struct sql *db, struct queue_job_row *j, struct error *e) {
    uint32_t known = 0;
    int r = sql_each(db, take_count, j->counts, e,
                     "SELECT state,count(*) FROM runs WHERE job=? AND again=0 GROUP BY state", "i", j->id);
    for (int s = 0; s < JOB_STATE_COUNT; s++) known += j->counts[s];
    if (known < j->elements) j->counts[JOB_CANCELLED] += j->elements - known;
    return r < 0 ? r : 0;
}

static int tell_job(const struct sql_row *row, void *ctx, struct error *e) {
    struct walk *w = ctx;
    struct queue_job_row j = {.id = sql_row_int(row, 0),
                              .submitted_ns = sql_row_int(row, 1),
                              .uid = (uint32_t)sql_row_int(row, 2),
                              .user = sql_row_text(row, 3),
                              .account = sql_row_text(row, 4),
                              .node = sql_row_text(row, 5),
                              .origin = (uint8_t)sql_row_int(row, 6),
                              .priority = (int)sql_row_int(row, 7),
                              .elements = (uint32_t)sql_row_int(row, 8),
                              .at_once = (uint32_t)sql_row_int(row, 9),
                              .is_held = sql_row_int(row, 10) != 0,
                              .state = (uint8_t)sql_row_int(row, 11),
                              .ended_ns = sql_row_int(row, 12),
                              .text = sql_row_text(row, 13),
                              .parent_kind = (uint8_t)sql_row_int(row, 15),
                              .parent = sql_row_int(row, 16),
                              .behind = sql_row_int(row, 17)};
    j.record = sql_row_blob(row, 14, &j.record_len);
    if (w->reader->fits && !w->reader->fits(w->reader->ctx, &j)) return 0;
    int r = j.elements > 1 && j.ended_ns && w->runs_most ? count_elements(w->db, &j, e) : 0;
    if (r >= 0) r = w->reader->job(w->reader->ctx, &j, e);
    return r < 0 || !w->runs_most ? r : tell_runs(w, &j, e);
}

static int tell_cordon(const struct sql_row *row, void *ctx, struct error *e) {
    const struct queue_reader *r = ((const struct walk *)ctx)->reader;
    r->cordon(r->ctx, sql_row_text(row, 0), sql_row_text(row, 1), sql_row_text(row, 2), sql_row_int(row, 3));
    return 0;
}

static int tell_usage(const struct sql_row *row, void *ctx, struct error *e) {
    const struct queue_reader *r = ((const struct walk *)ctx)->reader;
    r->usage(r->ctx, sql_row_text(row, 0), sql_row_int(row, 1), sql_row_real(row, 2));
    return 0;
}

int queue_store_read(struct sql *db, int64_t since_hour, const struct queue_reader *reader, struct error *e) {
    struct walk w = {.reader = reader, .db = db, .runs_most = 0, .number = -1};
    int r = sql_each(db, tell_job, &w, e, "SELECT " JOB_COLUMNS " FROM jobs WHERE is_over=0 ORDER BY id", "");
    /* one walk for the runs of all of them: most jobs that wait have none */
    if (r >= 0)
        r = sql_each(db, tell_run, &w, e,
                     "SELECT " RUN_COLUMNS " FROM runs WHERE job IN(SELECT id FROM jobs WHERE is_over=0)"
                     " ORDER BY job,element,attempt",
                     "");
    if (r >= 0) r = sql_each(db, tell_cordon, &w, e, "SELECT uuid,reason,who,since FROM cordons ORDER BY uuid", "");
    if (r >= 0)
        r = sql_each(db, tell_usage, &w, e, "SELECT user,hour,held_s FROM usage WHERE hour>=?", "i", since_hour);
    return r < 0 ? r : 0;
}

int queue_store_list(struct sql *db, const struct queue_ask *a, const struct queue_reader *reader, struct error *e) {
    struct walk w = {.reader = reader, .db = db, .runs_most = a->runs_most, .number = -1};
    if (a->has_number) w.number = a->number;
    if (a->only) return sql_each(db, tell_job, &w, e, "SELECT " JOB_COLUMNS " FROM jobs WHERE id=?", "i", a->only);
    return sql_each(db, tell_job, &w, e,
                    "SELECT " JOB_COLUMNS " FROM jobs WHERE id<? AND (?=0 OR (1<<state)&?) AND (?=0 OR (1<<origin)&?)"
                    " AND (? IS NULL OR user=?) ORDER BY id DESC LIMIT ?",
                    "iiiiissi", a->before ? a->before : INT64_MAX, (int64_t)a->states, (int64_t)a->states,
                    (int64_t)a->origins, (int64_t)a->origins, a->user, a->user, (int64_t)a->limit);
}

int queue_store_state(struct sql *db, int64_t job, struct error *e) {
    int64_t state;
    int r = sql_int(db, &state, e, "SELECT state FROM jobs WHERE id=?", "i", job);
    return r < 0 ? r : (int)state;
}

int queue_store_last_attempt(struct sql *db, int64_t job, uint32_t element, struct error *e) {
    int64_t attempt;
    int r = sql_int(db, &attempt, e, "SELECT coalesce(max(attempt),0) FROM runs WHERE job=? AND element=? AND gpus<>''",
                    "ii", job, (int64_t)element);
    return r < 0 ? r : (int)attempt;
}

struct reporting {
    void (*each)(void *ctx, const struct queue_report_row *row);
    void *ctx;
};

static int tell_report(const struct sql_row *row, void *ctx, struct error *e) {
    const struct reporting *r = ctx;
    const struct queue_report_row out = {.user = sql_row_text(row, 0),
                                         .held_s = sql_row_real(row, 1),
                                         .used_s = sql_row_real(row, 2),
                                         .energy_j = sql_row_real(row, 3),
                                         .wait_s = sql_row_real(row, 4),
                                         .runs = sql_row_int(row, 5),
                                         .failed = sql_row_int(row, 6)};
    r->each(r->ctx, &out);
    return 0;
}

int queue_store_report(struct sql *db, int64_t from_hour, int64_t to_hour,
                       void (*each)(void *ctx, const struct queue_report_row *row), void *ctx, struct error *e) {
    struct reporting r = {each, ctx};
    int n = sql_each(db, tell_report, &r, e,
                     "SELECT user,sum(held_s),sum(used_s),sum(energy_j),sum(wait_s),sum(runs),sum(failed) FROM usage"
                     " WHERE hour>=? AND hour<? GROUP BY user",
                     "ii", from_hour, to_hour);
    return n < 0 ? n : 0;
}
