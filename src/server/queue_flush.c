/* What the queue has to write, and what may be said once it is written. One commit is under way at a time: what happens
 * meanwhile goes with the next. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/log.h"
#include "server/queue_own.h"
#include "server/queue_trail.h"

enum then_kind { THEN_GRANT, THEN_STORED, THEN_CALL };

struct then {
    enum then_kind kind;
    struct wire_run_key key;
    char node[64];
    struct buf seal;
    queue_done_fn done;
    void *ctx;
};

struct run_item {
    struct queue_run_row row;
    char *gpus;
    struct buf curve; /* of one that is over */
};

struct job_item {
    struct queue_job_row row;
    char *text;
};

struct usage_item {
    struct queue_usage usage;
    char *user;
};

#define LIST(type)                                                                                                     \
    struct {                                                                                                           \
        type *of;                                                                                                      \
        size_t count, cap;                                                                                             \
    }

struct flush {
    struct queue *queue;
    LIST(struct run_item) runs;
    LIST(struct job_item) jobs;
    LIST(struct usage_item) usages;
    LIST(struct letter_row) letters; /* with texts of their own */
    LIST(struct then) thens;
    LIST(int64_t) touched; /* numbers of jobs whose rows are made when it is written */
};

/* The place of a further item, zeroed. */
#define ADD(list)                                                                                                      \
    ({                                                                                                                 \
        if ((list)->count == (list)->cap) {                                                                            \
            (list)->cap = (list)->cap ? 2 * (list)->cap : 16;                                                          \
            (list)->of = realloc((list)->of, (list)->cap * sizeof *(list)->of);                                        \
            if (!(list)->of) abort();                                                                                  \
        }                                                                                                              \
        memset(&(list)->of[(list)->count], 0, sizeof *(list)->of);                                                     \
        &(list)->of[(list)->count++];                                                                                  \
    })

static struct flush *pending(struct queue *q) {
    if (q->flush) return q->flush;
    q->flush = calloc(1, sizeof *q->flush);
    if (!q->flush) abort();
    q->flush->queue = q;
    return q->flush;
}

void queue_flush_free(struct flush *f) {
    if (!f) return;
    for (size_t i = 0; i < f->runs.count; i++) {
        free(f->runs.of[i].gpus);
        buf_done(&f->runs.of[i].curve);
    }
    for (size_t i = 0; i < f->jobs.count; i++) free(f->jobs.of[i].text);
    for (size_t i = 0; i < f->usages.count; i++) free(f->usages.of[i].user);
    for (size_t i = 0; i < f->letters.count; i++) queue_letter_done(&f->letters.of[i]);
    for (size_t i = 0; i < f->thens.count; i++) buf_done(&f->thens.of[i].seal);
    free(f->runs.of);
    free(f->jobs.of);
    free(f->usages.of);
    free(f->letters.of);
    free(f->thens.of);
    free(f->touched.of);
    free(f);
}

/* ---- what changed ---- */

static void settle(void *ctx);

void queue_settle_soon(struct queue *q) {
    if (q->is_posted || q->is_stopping) return;
    q->is_posted = true;
    loop_post(q->loop, settle, q);
}

void queue_want_pass(struct queue *q) {
    q->wants_pass = true;
    queue_settle_soon(q);
}

void queue_touch(struct queue *q, struct queue_job *j) {
    j->is_changed = true;
    if (!j->is_touched) {
        j->is_touched = true;
        struct flush *f = pending(q);
        *ADD(&f->touched) = j->id;
    }
    queue_settle_soon(q);
}

void queue_run_row(const struct queue_run *r, struct buf *gpus, struct queue_run_row *ret) {
    for (uint16_t i = 0; i < r->gpus; i++) buf_printf(gpus, "%s%s", i ? "," : "", r->uuid[i]);
    *ret =
        (struct queue_run_row){.of = r->of, .state = (uint8_t)r->state, .stop = r->stop, .granted_ns = r->granted_ns};
    ret->gpus = gpus->s ? gpus->s : "";
    if (r->now.key.attempt && !job_state_is_over(r->state)) ret->now = &r->now;
}

static void run_add(struct queue *q, const struct queue_run *r, bool again) {
    struct buf gpus = {0};
    struct flush *f = pending(q);
    struct run_item *item = ADD(&f->runs);
    queue_run_row(r, &gpus, &item->row);
    item->row.again = again;
    item->row.now = NULL; /* the run may be gone when this is written */
    item->gpus = gpus.s;
    if (r->curve && job_state_is_over(r->state)) curve_encode(r->curve, &item->curve);
}

void queue_touch_run(struct queue *q, struct queue_run *r) {
    run_add(q, r, false);
    r->job->is_changed = true;
    queue_settle_soon(q);
}

void queue_end_row(struct queue *q, struct queue_run *r, bool again) {
    run_add(q, r, again);
    queue_settle_soon(q);
}

void queue_add_usage(struct queue *q, const struct queue_usage *u) {
    struct flush *f = pending(q);
    struct usage_item *item = ADD(&f->usages);
    item->usage = *u;
    item->usage.user = item->user = queue_copy(u->user);
}

void queue_add_letter(struct queue *q, const struct letter_row *l) {
    struct flush *f = pending(q);
    *ADD(&f->letters) = queue_letter_copy(l);
    queue_settle_soon(q);
}

void queue_then_grant(struct queue *q, const struct wire_run_key *k) {
    struct flush *f = pending(q);
    *ADD(&f->thens) = (struct then){.kind = THEN_GRANT, .key = *k};
    queue_settle_soon(q);
}

void queue_then_stored(struct queue *q, const char *node, const struct wire_run_key *k) {
    struct flush *f = pending(q);
    struct then *t = ADD(&f->thens);
    *t = (struct then){.kind = THEN_STORED, .key = *k};
    snprintf(t->node, sizeof t->node, "%s", node);
    queue_settle_soon(q);
}

void queue_then(struct queue *q, queue_done_fn done, void *ctx) {
    struct flush *f = pending(q);
    *ADD(&f->thens) = (struct then){.kind = THEN_CALL, .done = done, .ctx = ctx};
    queue_settle_soon(q);
}

/* ---- on the store thread ---- */

static int work(struct sql *db, void *ctx, struct error *e) {
    struct flush *f = ctx;
    int r = 0;
    CRASH_POINT();
    for (size_t i = 0; r >= 0 && i < f->runs.count; i++) {
        const struct run_item *item = &f->runs.of[i];
        r = queue_store_run(db, &item->row, e);
        if (r >= 0 && item->curve.len) r = trail_store_curve(db, &item->row.of.key, item->curve.s, item->curve.len, e);
    }
    CRASH_POINT();
    for (size_t i = 0; r >= 0 && i < f->jobs.count; i++) r = queue_store_job(db, &f->jobs.of[i].row, e);
    for (size_t i = 0; r >= 0 && i < f->usages.count; i++) r = queue_store_usage(db, &f->usages.of[i].usage, e);
    for (size_t i = 0; r >= 0 && i < f->letters.count; i++)
        r = letters_store_add(db, &f->letters.of[i], &f->letters.of[i].id, e);
    CRASH_POINT();
    for (size_t i = 0; r >= 0 && i < f->thens.count; i++) {
        struct then *t = &f->thens.of[i];
        buf_clear(&t->seal);
        if (t->kind == THEN_GRANT) r = queue_store_seal(db, t->key.job, &t->seal, e);
    }
    return r < 0 ? r : 0;
}

/* ---- after the commit ---- */

static void then_stored(struct queue *q, const struct then *t) {
    AUTO(buf_done) struct buf b = {0};
    struct live_node *n = live_find_node(q->live, t->node);
    struct error e;
    wire_put_stored(&b, &t->key);
    if (n && link_send(q->links, n, &b, &e) < 0) return; /* it tells the end again when it comes back */
}

static void then_do(struct queue *q, struct then *t) {
    struct error none = {0};
    CRASH_POINT();
    if (t->kind == THEN_GRANT)
        queue_send_grant(q, &t->key, &t->seal);
    else if (t->kind == THEN_STORED)
        then_stored(q, t);
    else
        t->done(t->ctx, 0, &none);
}

/* Nothing of it is in the file: it goes with the next commit, before what came meanwhile. Who asked hears of it now. */
static void put_back(struct queue *q, struct flush *f, const struct error *e) {
    struct flush *later = q->flush;
    size_t kept = 0;
    for (size_t i = 0; i < f->jobs.count; i++) {
        struct queue_job *j = queue_find(q, f->jobs.of[i].row.id);
        free(f->jobs.of[i].text);
        if (!j || j->is_touched) continue;
        j->is_touched = true;
        *ADD(&f->touched) = j->id;
    }
    f->jobs.count = 0;
    for (size_t i = 0; i < f->thens.count; i++) {
        struct then t = f->thens.of[i];
        if (t.kind == THEN_CALL)
            t.done(t.ctx, e->code, e);
        else
            f->thens.of[kept++] = t;
    }
    f->thens.count = kept;
    q->flush = f;
    if (!later) return;
    for (size_t i = 0; i < later->runs.count; i++) *ADD(&f->runs) = later->runs.of[i];
    for (size_t i = 0; i < later->usages.count; i++) *ADD(&f->usages) = later->usages.of[i];
    for (size_t i = 0; i < later->letters.count; i++) *ADD(&f->letters) = later->letters.of[i];
    for (size_t i = 0; i < later->thens.count; i++) *ADD(&f->thens) = later->thens.of[i];
    for (size_t i = 0; i < later->touched.count; i++) *ADD(&f->touched) = later->touched.of[i];
    later->runs.count = later->usages.count = later->letters.count = later->thens.count = 0;
    queue_flush_free(later);
}

static void done(void *ctx, int result, const struct error *e) {
    struct flush *f = ctx;
    struct queue *q = f->queue;
    q->is_writing = false;
    if (result < 0) {
        log_line(LOG_ERROR, "queue_store", -1, "what happened in the queue cannot be stored, and is tried again: %s",
                 e->text);
        put_back(q, f, e);
        return; /* the next change or second tries again */
    }
    for (size_t i = 0; i < f->thens.count; i++) then_do(q, &f->thens.of[i]);
    for (size_t i = 0; i < f->letters.count; i++) queue_letter_stored(q, &f->letters.of[i]);
    f->letters.count = 0;
    CRASH_POINT();
    for (size_t i = 0; i < f->jobs.count; i++) queue_waits_look(q, f->jobs.of[i].row.id);
    queue_flush_free(f);
    if (q->flush) queue_settle_soon(q);
}

static void write_all(struct queue *q) {
    struct flush *f = q->flush;
    struct error e;
    if (!f || q->is_writing) return;
    for (size_t i = 0; i < f->touched.count; i++) {
        struct queue_job *j = queue_find(q, f->touched.of[i]);
        if (!j) continue;
        struct job_item *item = ADD(&f->jobs);
        j->is_touched = false;
        item->text = queue_copy(j->text);
        item->row = (struct queue_job_row){.id = j->id,
                                           .state = (uint8_t)queue_job_state(j),
                                           .ended_ns = j->ended_ns,
                                           .text = item->text,
                                           .priority = j->priority,
                                           .is_held = j->is_held};
    }
    f->touched.count = 0;
    q->flush = NULL;
    q->is_writing = true;
    int r = state_submit(q->state, work, done, f, &e);
    if (r < 0) done(f, r, &e);
}

static void settle(void *ctx) {
    struct queue *q = ctx;
    q->is_posted = false;
    if (q->is_stopping) return;
    if (q->wants_pass) {
        q->wants_pass = false;
        queue_pass(q);
    }
    write_all(q);
}
