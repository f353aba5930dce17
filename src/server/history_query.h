/* Between the two halves of a query: what was gathered of a subject (history_query.c), and the points that are made of it
 * (history_answer.c, pure). */
#pragma once

#include "server/history_own.h"

struct history_reader {
    struct history *h;
    struct history_db *db;
    struct series_coder *coder;
    struct points p;
};

struct wanted {
    uint64_t id;
    double scale;
};

/* Readings (count 1) and rollups of one subject, in the unit, in no order; several series when a scale has changed. */
struct gathered {
    int64_t subject;
    struct wanted *series;
    size_t series_count;
    struct roll *rolls;
    size_t n, room, memory;
};

/* The points, from an answer that has its tier and step: as they were read, when that is what is wanted and true is
 * returned, else as a grid that each subject is added to. */
bool answer_is_readings(struct history_answer *a, const struct history_ask *ask, struct gathered *g);
struct sum *answer_begin(struct history_answer *a, const struct history_ask *ask);
void answer_add(struct history_answer *a, const struct history_ask *ask, struct sum *sum, struct gathered *g);
void answer_end(struct history_answer *a, const struct history_ask *ask,
                struct sum *sum); /* frees it; NULL is allowed */
