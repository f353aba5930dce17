#include "server/state.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/crash_point.h"
#include "base/thread.h"
#include "server/state_schema.h"
#include "server/state_sql.h"

enum { BATCH_MAX = 256 };

struct job {
    struct job *next;
    state_work_fn work;
    state_done_fn done;
    void *ctx;
    int result;
    struct error error;
};

struct state {
    struct sql *db;
    state_post_fn post;
    void *loop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct job *first, **last;
    int waiting;
    bool is_started, is_ending;
};

int state_open(const char *path, struct state **ret, struct error *e) {
    struct sql *db = NULL;
    int r = sql_open(path, &db, e);
    if (r == 0) r = schema_bring(db, path, e);
    if (r < 0) {
        sql_close(db);
        return r;
    }
    struct state *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->db = db;
    s->last = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
    *ret = s;
    return 0;
}

int state_run(struct state *s, state_work_fn work, void *ctx, struct error *e) {
    if (s->is_started) abort();
    int r = sql_script(s->db, "BEGIN IMMEDIATE", e);
    if (r < 0) return r;
    r = work(s->db, ctx, e);
    if (r >= 0) {
        int committed = sql_script(s->db, "COMMIT", e);
        if (committed == 0) return r;
        r = committed;
    }
    (void)!sql_script(s->db, "ROLLBACK", NULL);
    return r;
}

static void finish(void *arg) {
    struct job *j = arg;
    CRASH_POINT();
    j->done(j->ctx, j->result, &j->error);
    free(j);
}

/* Each job in a savepoint of its own: one that fails takes nothing of the others with it. */
static void do_one(struct sql *db, struct job *j) {
    j->result = sql_script(db, "SAVEPOINT job", &j->error);
    if (j->result < 0) return;
    CRASH_POINT();
    j->result = j->work(db, j->ctx, &j->error);
    CRASH_POINT();
    if (j->result < 0) (void)!sql_script(db, "ROLLBACK TO job", NULL);
    int r = sql_script(db, "RELEASE job", j->result < 0 ? NULL : &j->error);
    if (r < 0 && j->result >= 0) j->result = r;
}

static void do_batch(struct state *s, struct job *batch) {
    struct error e;
    int r = sql_script(s->db, "BEGIN IMMEDIATE", &e);
    for (struct job *j = batch; j && r == 0; j = j->next) do_one(s->db, j);
    CRASH_POINT();
    if (r == 0) r = sql_script(s->db, "COMMIT", &e);
    CRASH_POINT();
    if (r < 0) (void)!sql_script(s->db, "ROLLBACK", NULL);
    while (batch) {
        struct job *j = batch;
        batch = j->next;
        if (r < 0 && j->result >= 0) {
            j->result = r;
            j->error = e;
        }
        if (j->done)
            s->post(s->loop, finish, j);
        else
            free(j);
    }
}

/* As many as one sync may carry: what waits has waited for the one before. */
static struct job *take_batch(struct state *s) {
    pthread_mutex_lock(&s->lock);
    while (!s->first && !s->is_ending) pthread_cond_wait(&s->news, &s->lock);
    struct job *batch = s->first, **end = &batch;
    for (int n = 0; *end && n < BATCH_MAX; n++) {
        end = &(*end)->next;
        s->waiting--;
    }
    s->first = *end;
    if (!s->first) s->last = &s->first;
    *end = NULL;
    pthread_mutex_unlock(&s->lock);
    return batch;
}

static void *store_thread(void *arg) {
    struct state *s = arg;
    CRASH_POINT_CALLS(true);
    for (struct job *batch; (batch = take_batch(s));) do_batch(s, batch);
    return NULL;
}

int state_start(struct state *s, state_post_fn post, void *loop, struct error *e) {
    s->post = post;
    s->loop = loop;
    int r = thread_join_later(&s->thread, store_thread, s, 0, "the state file", e);
    s->is_started = r >= 0;
    return r;
}

int state_submit(struct state *s, state_work_fn work, state_done_fn done, void *ctx, struct error *e) {
    struct job *j = calloc(1, sizeof *j);
    if (!j) abort();
    *j = (struct job){.work = work, .done = done, .ctx = ctx};
    pthread_mutex_lock(&s->lock);
    bool is_full = s->waiting >= STATE_QUEUE_MAX || s->is_ending;
    if (!is_full) {
        *s->last = j;
        s->last = &j->next;
        s->waiting++;
        pthread_cond_signal(&s->news);
    }
    pthread_mutex_unlock(&s->lock);
    if (!is_full) return 0;
    free(j);
    return fail(e, -EAGAIN, "the server has more to write than its disk takes; try again in a moment");
}

void state_close(struct state *s) {
    if (!s) return;
    if (s->is_started) {
        pthread_mutex_lock(&s->lock);
        s->is_ending = true;
        pthread_cond_signal(&s->news);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    sql_close(s->db);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->news);
    free(s);
}
