/* Calls that are answered from the history: `run` on its reading thread, the answer on the loop. The struct is the first
 * member of a handler's own, which `drop` frees. */
#pragma once

#include "server/call.h"
#include "server/history.h"

struct later {
    struct call *call;
    struct history_reader *reader;
    struct buf out;
    struct error error;
    int result;                      /* negative: error is the answer, out is dropped */
    void (*run)(struct later *l);    /* on the reading thread: writes out, sets result */
    void (*drop)(struct later *own); /* frees what is the handler's own, and itself */
};

void later_init(struct later *l, struct call *c, void (*run)(struct later *l), void (*drop)(struct later *own));

/* Hands it over, unless r says that the question was no good. What the handler returns. It is gone afterwards. */
int later_submit(struct later *l, int r, struct error *e) MUST_CHECK;

/* The cursor that ends a list's object: `next`, a text, since it has more digits than numbers in browsers do; null at the
 * end. */
void later_put_next(struct later *l, int64_t next);

/* ---- what lists are asked ---- */

enum { LATER_LIMIT_MAX = 1000, LATER_LIMIT_USUAL = 100 };
#define LATER_PAGE_FIELDS(before)                                                                                      \
    {"limit", FIELD_NUMBER, false, "How many at most: 100 where it is not given, 1000"}, {                             \
        "before", FIELD_NUMBER, false, before                                                                          \
    }

/* `limit` and `before` of LATER_PAGE_FIELDS. */
int later_page(const struct call *c, size_t *ret_limit, int64_t *ret_before, struct error *e) MUST_CHECK;
/* Unix seconds; below zero: before now. Not given: *ret stays. */
int later_time(const struct call *c, const char *name, int64_t *ret_ms, struct error *e) MUST_CHECK;
/* A word, copied into room, which *ret is then. Not given: *ret stays. */
int later_text(const struct call *c, const char *name, char *room, size_t size, const char **ret, struct error *e)
    MUST_CHECK;
