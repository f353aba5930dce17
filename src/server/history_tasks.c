#include "server/history_tasks.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/history_query.h"

#define WAITING_MAX 50000 /* not yet flushed: more come only when nothing can be stored */

void history_documents_free(struct history_document *d, size_t n) {
    for (size_t i = 0; i < n; i++) free(d[i].body);
}

void waiting_done(struct waiting *w) {
    free(w->text);
    *w = (struct waiting){0};
}

/* ---- in ---- */

static int waiting_add(struct history *h, const struct waiting *w, const char *gpus, const char *body) {
    int r = 0;
    pthread_mutex_lock(&h->lock);
    if (h->waiting_count == WAITING_MAX) {
        h->stats.dropped++;
        r = -ENOSPC;
    } else {
        if (h->waiting_count == h->waiting_room) {
            h->waiting_room = h->waiting_room ? 2 * h->waiting_room : 16;
            h->waiting = realloc(h->waiting, h->waiting_room * sizeof *h->waiting);
            if (!h->waiting) abort();
        }
        size_t g = strlen(gpus) + 1, n = strlen(body) + 1;
        struct waiting *to = &h->waiting[h->waiting_count++];
        *to = *w;
        to->text = malloc(g + n);
        if (!to->text) abort();
        memcpy(to->text, gpus, g);
        memcpy(to->text + g, body, n);
        to->task.gpus = to->text;
        to->task.body = to->container.body = to->text + g;
    }
    pthread_mutex_unlock(&h->lock);
    return r;
}

int history_task_put(struct history *h, const struct history_task *t) {
    if (t->start_ms < 0 || t->start_ms >= TASK_TIME_MAX_MS) return -ERANGE;
    struct waiting w = {.kind = WAITING_TASK, .task = *t};
    return waiting_add(h, &w, t->gpus, t->body);
}

int history_container_put(struct history *h, const struct history_container *c) {
    struct waiting w = {.kind = WAITING_CONTAINER, .container = *c};
    return waiting_add(h, &w, "", c->body);
}

void history_tasks_lost(struct history *h, const char *node, const char *boot_id) {
    struct waiting w = {.kind = WAITING_LOST};
    snprintf(w.task.node, sizeof w.task.node, "%s", node);
    snprintf(w.task.boot_id, sizeof w.task.boot_id, "%s", boot_id);
    waiting_add(h, &w, "", "");
}

/* The row is the start time and twenty bits of the name: known before it is stored, and in the order of time. */
int64_t task_row(const struct history_task *t) {
    uint64_t hash = 1469598103934665603ull;
    for (const char *s = t->key; *s; s++) hash = (hash ^ (uint8_t)*s) * 1099511628211ull;
    return (t->start_ms << TASK_ROW_BITS) | (int64_t)((hash >> 20) & (BIT(TASK_ROW_BITS) - 1));
}

int waiting_store(struct history *h, const struct waiting *w, size_t n, struct error *e) {
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++) {
        if (w[i].kind == WAITING_TASK)
            r = db_task_put(h->db, task_row(&w[i].task), &w[i].task, e);
        else if (w[i].kind == WAITING_CONTAINER)
            r = db_container_put(h->db, &w[i].container, e);
        else
            r = db_tasks_lost(h->db, w[i].task.node, w[i].task.boot_id, e);
    }
    return r;
}

/* ---- out ---- */

struct list {
    struct history_document *of;
    size_t n, room, waiting; /* the first `waiting` are not yet in the file */
};

static void list_add(struct list *l, int64_t row, const char *key, const char *body) {
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 64;
        l->of = realloc(l->of, l->room * sizeof *l->of);
        if (!l->of) abort();
    }
    struct history_document *d = &l->of[l->n++];
    *d = (struct history_document){.row = row, .body = body ? strdup(body) : NULL};
    snprintf(d->key, sizeof d->key, "%s", key);
}

static bool is_waiting(const struct list *l, const char *key) {
    for (size_t i = 0; i < l->waiting; i++)
        if (strcmp(l->of[i].key, key) == 0) return true;
    return false;
}

static int take_stored(void *ctx, int64_t row, const char *key, const char *body, struct error *e) {
    struct list *l = ctx;
    if (!is_waiting(l, key)) list_add(l, row, key, body);
    return 0;
}

static bool is_asked(const char *wanted, const char *has) { return !wanted || strcmp(wanted, has) == 0; }

static bool matches(const struct history_task *t, const struct history_tasks_ask *ask, int64_t first, int64_t last) {
    int64_t row = task_row(t);
    if (row < first || row > last) return false;
    if (ask->states && !(ask->states >> t->state & 1)) return false;
    if (ask->verdicts && !(ask->verdicts >> t->verdict & 1)) return false;
    if (ask->container && strcmp(ask->container, t->container) != 0 && strcmp(ask->container, t->name) != 0)
        return false;
    if (ask->gpu && !strstr(t->gpus, ask->gpu)) return false;
    return is_asked(ask->user, t->user) && is_asked(ask->node, t->node);
}

/* Those that wait, the newest word of each; one that is not asked for has no body, and hides what the file says of it.
 * Under lock. */
static void take_waiting_tasks(struct list *l, const struct history *h, const struct history_tasks_ask *ask,
                               int64_t first, int64_t last) {
    for (size_t i = h->waiting_count; i > 0; i--) {
        const struct waiting *w = &h->waiting[i - 1];
        l->waiting = l->n;
        if (w->kind != WAITING_TASK || is_waiting(l, w->task.key)) continue;
        list_add(l, task_row(&w->task), w->task.key, matches(&w->task, ask, first, last) ? w->task.body : NULL);
    }
    l->waiting = l->n;
}

static int newest_first(const void *a, const void *b) {
    int64_t x = ((const struct history_document *)a)->row, y = ((const struct history_document *)b)->row;
    return (x < y) - (x > y);
}

/* Hands over the first of them that have a body. */
static int list_give(struct list *l, struct history_document *ret, size_t limit) {
    size_t n = 0;
    if (l->n) qsort(l->of, l->n, sizeof *l->of, newest_first);
    for (size_t i = 0; i < l->n; i++) {
        if (l->of[i].body && n < limit)
            ret[n++] = l->of[i];
        else
            free(l->of[i].body);
    }
    free(l->of);
    return (int)n;
}

static void list_drop(struct list *l) {
    history_documents_free(l->of, l->n);
    free(l->of);
}

int history_tasks(struct history_reader *r, const struct history_tasks_ask *ask, struct history_document *ret,
                  struct error *e) {
    if (ask->limit == 0 || ask->limit > 1000) return fail(e, -EINVAL, "a limit of %zu, not 1 to 1000", ask->limit);
    if (ask->from_ms < 0 || ask->to_ms < 0 || ask->to_ms >= TASK_TIME_MAX_MS || ask->from_ms >= TASK_TIME_MAX_MS)
        return fail(e, -EINVAL, "a range from %lld to %lld ms", (long long)ask->from_ms, (long long)ask->to_ms);
    struct history *h = r->h;
    struct list l = {0};
    int64_t first = ask->from_ms << TASK_ROW_BITS, last = (ask->to_ms ? ask->to_ms << TASK_ROW_BITS : INT64_MAX) - 1;
    if (ask->before > 0 && ask->before - 1 < last) last = ask->before - 1;
    pthread_mutex_lock(&h->gate);
    int k = db_snapshot(r->db, e);
    pthread_mutex_lock(&h->lock);
    if (k >= 0) take_waiting_tasks(&l, h, ask, first, last);
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_unlock(&h->gate);
    if (k >= 0) k = db_tasks(r->db, ask, first, last, ask->limit + l.waiting, take_stored, &l, e);
    db_rollback(r->db);
    if (k >= 0) return list_give(&l, ret, ask->limit);
    list_drop(&l);
    return k;
}

static bool is_container(const struct history_container *c, const char *id) {
    size_t n = id ? strlen(id) : 0;
    return !id || strcmp(c->id, id) == 0 || strcmp(c->name, id) == 0 || (n >= 12 && strncmp(c->id, id, n) == 0);
}

int history_containers(struct history_reader *r, const char *id, struct history_document *ret, size_t limit,
                       struct error *e) {
    struct history *h = r->h;
    struct list l = {0};
    char key[144];
    pthread_mutex_lock(&h->gate);
    int k = db_snapshot(r->db, e);
    pthread_mutex_lock(&h->lock);
    for (size_t i = h->waiting_count; k >= 0 && i > 0; i--) {
        const struct waiting *w = &h->waiting[i - 1];
        if (w->kind != WAITING_CONTAINER) continue;
        snprintf(key, sizeof key, "%s/%s", w->container.node, w->container.id);
        if (is_waiting(&l, key)) continue;
        list_add(&l, w->container.seen_ms, key, is_container(&w->container, id) ? w->container.body : NULL);
        l.waiting = l.n;
    }
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_unlock(&h->gate);
    if (k >= 0) k = db_containers(r->db, id, limit + l.waiting, take_stored, &l, e);
    db_rollback(r->db);
    if (k >= 0) return list_give(&l, ret, limit);
    list_drop(&l);
    return k;
}
