/* Who and what: subjects and series by name. Handles and ids are given in the order of first sight and never change;
 * new ones are stored with the next flush, before anything can refer to them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/history_own.h"

#define NAME_MAX_BYTES 200
#define SERIES_MAX (1u << 20)

static uint64_t hash(const char *text, uint64_t h) {
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
    return h ^ h >> 29;
}

static uint64_t hash_series(const struct subject *s, const char *name) {
    return hash(name, 0xcbf29ce484222325ull + (uint64_t)s->id * 0x9e3779b97f4a7c15ull);
}

static void *grown(void *have, size_t *room, size_t each) {
    *room = *room ? 2 * *room : 16;
    void *more = realloc(have, *room * each);
    if (!more) abort();
    return more;
}

/* Makes a table of at least twice the entries. The caller fills it anew. */
static bool table_grow(uint32_t **places, size_t *room, size_t count) {
    if (*places && 2 * count < *room) return false;
    free(*places);
    *room = *room ? 2 * *room : 64;
    if (!(*places = calloc(*room, sizeof **places))) abort();
    return true;
}

static void place(uint32_t *places, size_t room, uint64_t h, size_t index) {
    size_t at = h & (room - 1);
    while (places[at]) at = (at + 1) & (room - 1);
    places[at] = (uint32_t)index + 1;
}

struct subject *names_subject(struct history *h, const char *name) {
    if (!h->subject_places) return NULL;
    size_t at = hash(name, 0xcbf29ce484222325ull) & (h->subject_places_room - 1);
    for (; h->subject_places[at]; at = (at + 1) & (h->subject_places_room - 1)) {
        struct subject *s = h->subjects[h->subject_places[at] - 1];
        if (strcmp(s->name, name) == 0) return s;
    }
    return NULL;
}

static void index_subjects(struct history *h, size_t from) {
    if (table_grow(&h->subject_places, &h->subject_places_room, h->subject_count)) from = 0;
    for (; from < h->subject_count; from++)
        place(h->subject_places, h->subject_places_room, hash(h->subjects[from]->name, 0xcbf29ce484222325ull), from);
}

static void index_series(struct history *h, size_t from) {
    if (table_grow(&h->places, &h->places_room, h->series_count)) from = 0;
    for (; from < h->series_count; from++)
        place(h->places, h->places_room, hash_series(h->series[from]->subject, h->series[from]->name), from);
}

static struct subject *push_subject(struct history *h, const char *name) {
    size_t len = strlen(name) + 1;
    struct subject *s = calloc(1, sizeof *s + len);
    if (!s) abort();
    if (h->subject_count == h->subject_room) h->subjects = grown(h->subjects, &h->subject_room, sizeof(void *));
    s->id = (int64_t)h->subject_count + 1;
    memcpy(s->name, name, len);
    h->subjects[h->subject_count++] = s;
    index_subjects(h, h->subject_count - 1);
    return s;
}

static struct named_series *push_series(struct history *h, struct subject *of, const char *name, double scale) {
    size_t len = strlen(name) + 1;
    struct named_series *s = calloc(1, sizeof *s + len);
    if (!s) abort();
    if (h->series_count == h->series_room) h->series = grown(h->series, &h->series_room, sizeof(void *));
    if (of->series_count == of->series_room) of->series = grown(of->series, &of->series_room, sizeof(void *));
    s->id = HISTORY_SERIES_BASE + (int64_t)h->series_count;
    s->subject = of;
    s->scale = scale;
    memcpy(s->name, name, len);
    of->series[of->series_count++] = s;
    h->series[h->series_count++] = s;
    index_series(h, h->series_count - 1);
    return s;
}

static bool is_name(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX_BYTES) return false;
    for (; *name; name++)
        if ((unsigned char)*name < 0x20) return false;
    return true;
}

struct subject *names_subject_make(struct history *h, const char *name, struct error *e) {
    struct subject *s = names_subject(h, name);
    if (s) return s;
    if (!is_name(name)) {
        fail(e, -EINVAL, "history: \"%.60s\" cannot be a name (1 to %d bytes)", name, NAME_MAX_BYTES);
        return NULL;
    }
    if (h->subject_count + 1 >= (size_t)HISTORY_SERIES_BASE) {
        fail(e, -ENOSPC, "history: there are %zu subjects already", h->subject_count);
        return NULL;
    }
    return push_subject(h, name);
}

static int series_make(struct history *h, const char *subject, const char *metric, double scale, struct error *e) {
    struct error why = {.code = -EINVAL};
    struct subject *s = names_subject_make(h, subject, &why);
    if (!s) {
        if (e) *e = why;
        return why.code;
    }
    if (h->places)
        for (size_t at = hash_series(s, metric) & (h->places_room - 1); h->places[at];
             at = (at + 1) & (h->places_room - 1)) {
            const struct named_series *known = h->series[h->places[at] - 1];
            if (known->subject == s && known->scale == scale && strcmp(known->name, metric) == 0)
                return (int)h->places[at] - 1;
        }
    if (!is_name(metric)) return fail(e, -EINVAL, "history: \"%.60s\" cannot be a name", metric);
    if (s->series_count == BLOCK_SERIES_MAX)
        return fail(e, -ENOSPC, "history: %.60s has %u series already", subject, BLOCK_SERIES_MAX);
    if (h->series_count == SERIES_MAX) return fail(e, -ENOSPC, "history: there are %u series already", SERIES_MAX);
    push_series(h, s, metric, scale);
    return (int)h->series_count - 1;
}

int history_handle(struct history *h, const char *subject, const char *metric, double scale, struct error *e) {
    if (!isfinite(scale) || scale < 0) return fail(e, -EINVAL, "history: a step of %g", scale);
    pthread_mutex_lock(&h->lock);
    int r = series_make(h, subject, metric, scale, e);
    pthread_mutex_unlock(&h->lock);
    return r;
}

struct subject *names_subject_by_id(struct history *h, int64_t id) {
    return id >= 1 && (size_t)id <= h->subject_count ? h->subjects[id - 1] : NULL;
}

struct named_series *names_series_by_id(struct history *h, int64_t id) {
    int64_t at = id - HISTORY_SERIES_BASE;
    return at >= 0 && (size_t)at < h->series_count ? h->series[at] : NULL;
}

/* Rows come in the order of their ids: subjects first, then series, each without holes, as they were written. */
static int load_name(void *ctx, int64_t id, int64_t subject, const char *text, double scale, struct error *e) {
    struct history *h = ctx;
    struct subject *of = names_subject_by_id(h, subject);
    if (subject == 0 && id == (int64_t)h->subject_count + 1 && id < HISTORY_SERIES_BASE) {
        push_subject(h, text);
    } else if (of && id == HISTORY_SERIES_BASE + (int64_t)h->series_count && isfinite(scale) && scale >= 0) {
        push_series(h, of, text, scale);
    } else {
        return fail(e, -EBADMSG, "%s: its names are damaged at number %lld", h->path, (long long)id);
    }
    return 0;
}

int names_load(struct history *h, struct error *e) {
    int r = db_names(h->db, load_name, h, e);
    h->stored_subjects = h->subject_count;
    h->stored_series = h->series_count;
    return r;
}

void names_free(struct history *h) {
    for (size_t i = 0; i < h->subject_count; i++) {
        rounds_done(&h->subjects[i]->now);
        rounds_done(&h->subjects[i]->old);
        free(h->subjects[i]->series);
        free(h->subjects[i]);
    }
    for (size_t i = 0; i < h->series_count; i++) {
        run_done(&h->series[i]->now);
        run_done(&h->series[i]->old);
        free(h->series[i]);
    }
    free(h->subjects);
    free(h->series);
    free(h->places);
    free(h->subject_places);
}
