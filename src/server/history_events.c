/* Events: those in the file, and those that wait for the next flush. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/history_query.h"

struct list {
    struct history *h;
    struct history_event *events;
    size_t n, limit;
};

static bool matches(const struct history_event *v, const struct history_events_ask *ask, int64_t first, int64_t last) {
    if (v->id < first || v->id > last || v->severity < ask->severity) return false;
    if (ask->subject && strcmp(v->subject, ask->subject) != 0) return false;
    return !ask->kind || strcmp(v->kind, ask->kind) == 0;
}

static int newest_first(const void *a, const void *b) {
    int64_t x = ((const struct history_event *)a)->id, y = ((const struct history_event *)b)->id;
    return (x < y) - (x > y);
}

/* Those that are not yet in the file. Under lock. */
static void take_waiting(struct list *l, const struct history_events_ask *ask, int64_t first, int64_t last) {
    size_t n = 0, count = l->h->event_count;
    struct history_event *found = malloc((count + 1) * sizeof *found);
    if (!found) abort();
    for (size_t i = 0; i < count; i++) {
        if (matches(&l->h->events[i], ask, first, last)) found[n++] = l->h->events[i];
    }
    qsort(found, n, sizeof *found, newest_first);
    for (size_t i = 0; i < n && l->n < l->limit; i++) l->events[l->n++] = found[i];
    free(found);
}

static int take_stored(void *ctx, const struct history_event *event, int64_t subject, struct error *e) {
    struct list *l = ctx;
    struct history_event *to = &l->events[l->n++];
    *to = *event;
    if (subject) {
        pthread_mutex_lock(&l->h->lock);
        const struct subject *s = names_subject_by_id(l->h, subject);
        if (s) snprintf(to->subject, sizeof to->subject, "%s", s->name);
        pthread_mutex_unlock(&l->h->lock);
    }
    return 0;
}

int history_events(struct history_reader *r, const struct history_events_ask *ask, struct history_event *ret,
                   struct error *e) {
    if (ask->limit == 0 || ask->limit > 1000) return fail(e, -EINVAL, "a limit of %zu, not 1 to 1000", ask->limit);
    if (ask->from_ms < 0 || ask->to_ms < 0 || ask->to_ms > HISTORY_TIME_MAX_MS || ask->from_ms > HISTORY_TIME_MAX_MS)
        return fail(e, -EINVAL, "a range from %lld to %lld ms", (long long)ask->from_ms, (long long)ask->to_ms);
    struct history *h = r->h;
    int64_t first = ask->from_ms << 16, last = (ask->to_ms ? ask->to_ms << 16 : INT64_MAX) - 1, subject = 0;
    if (ask->before > 0 && ask->before - 1 < last) last = ask->before - 1;
    /* Twice the room: those that wait and those in the file are put together before the newest are chosen. */
    struct list waiting = {.h = h, .events = calloc(2 * ask->limit, sizeof *ret), .limit = ask->limit};
    if (!waiting.events) abort();
    pthread_mutex_lock(&h->gate);
    int k = db_snapshot(r->db, e);
    pthread_mutex_lock(&h->lock);
    const struct subject *s = ask->subject ? names_subject(h, ask->subject) : NULL;
    if (s) subject = s->id;
    if (k >= 0) take_waiting(&waiting, ask, first, last);
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_unlock(&h->gate);
    if (k >= 0 && (s || !ask->subject)) k = db_events(r->db, ask, first, last, subject, take_stored, &waiting, e);
    db_rollback(r->db);
    if (k >= 0) {
        qsort(waiting.events, waiting.n, sizeof *waiting.events, newest_first);
        k = (int)(waiting.n < ask->limit ? waiting.n : ask->limit);
        memcpy(ret, waiting.events, (size_t)k * sizeof *ret);
    }
    free(waiting.events);
    return k;
}
