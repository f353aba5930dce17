/* Readings in memory, until they are blocks: each series its values, each subject its rounds. */
#include <stdlib.h>
#include <string.h>

#include "server/history_own.h"

static void *grown(void *have, size_t n, size_t each) {
    void *more = realloc(have, n * each);
    if (!more) abort();
    return more;
}

/* By a quarter: there are many of these, and what is unused is memory that others lack. */
static uint32_t more_room(uint32_t room) { return room < 32 ? 32 : room + room / 4; }

void run_done(struct run *r) {
    free(r->v);
    free(r->round);
    *r = (struct run){0};
}

void rounds_done(struct rounds *r) {
    free(r->at_ms);
    *r = (struct rounds){0};
}

/* A round that is sealed for a flush gets no more readings, even of the same time: it would have to be flushed again. */
static uint32_t round_of(struct rounds *r, int64_t at_ms) {
    if (r->n > r->flushing && r->at_ms[r->n - 1] == at_ms) return r->n - 1;
    if (r->n == r->room) {
        r->room = more_room(r->room);
        r->at_ms = grown(r->at_ms, r->room, sizeof *r->at_ms);
    }
    r->at_ms[r->n] = at_ms;
    return r->n++;
}

void memory_add(struct history *h, struct named_series *s, int64_t at_ms, double v) {
    struct run *r = &s->now;
    if (r->n == r->room) {
        r->room = more_room(r->room);
        r->v = grown(r->v, r->room, sizeof *r->v);
        r->round = grown(r->round, r->room, sizeof *r->round);
    }
    uint32_t round = round_of(&s->subject->now, at_ms);
    if (r->n > r->flushing && r->round[r->n - 1] == round) { /* twice in one round: the later counts */
        r->v[r->n - 1] = v;
        return;
    }
    r->round[r->n] = round;
    r->v[r->n++] = v;
    h->samples++;
}

static void cut_series(struct named_series *s, uint32_t rounds) {
    struct run *now = &s->now, rest = {0};
    rest.n = now->n - now->flushed;
    rest.flushing = now->flushing - now->flushed;
    if (rest.n) {
        rest.room = more_room(rest.n);
        rest.v = grown(NULL, rest.room, sizeof *rest.v);
        rest.round = grown(NULL, rest.room, sizeof *rest.round);
        memcpy(rest.v, now->v + now->flushed, rest.n * sizeof *rest.v);
        for (uint32_t i = 0; i < rest.n; i++) rest.round[i] = now->round[now->flushed + i] - rounds;
    }
    s->old = *now;
    s->old.n = now->flushed;
    s->now = rest;
}

void memory_cut(struct history *h) {
    h->old_samples = 0;
    for (size_t i = 0; i < h->subject_count; i++) {
        struct subject *s = h->subjects[i];
        if (s->now.flushed == 0) continue;
        struct rounds rest = {.n = s->now.n - s->now.flushed, .flushing = s->now.flushing - s->now.flushed};
        if (rest.n) {
            rest.room = more_room(rest.n);
            rest.at_ms = grown(NULL, rest.room, sizeof *rest.at_ms);
            memcpy(rest.at_ms, s->now.at_ms + s->now.flushed, rest.n * sizeof *rest.at_ms);
        }
        for (size_t k = 0; k < s->series_count; k++) {
            cut_series(s->series[k], s->now.flushed);
            h->old_samples += s->series[k]->old.n;
        }
        s->old = s->now;
        s->old.n = s->now.flushed;
        s->now = rest;
    }
}

void memory_drop_old(struct history *h) {
    for (size_t i = 0; i < h->subject_count; i++) rounds_done(&h->subjects[i]->old);
    for (size_t i = 0; i < h->series_count; i++) run_done(&h->series[i]->old);
    h->samples -= h->old_samples;
    h->old_samples = 0;
}
