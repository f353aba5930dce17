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

/* Sorts what was gathered, and fills in the points. a has its tier and step. */
void answer_make(struct history_answer *a, const struct history_ask *ask, struct gathered *g);
