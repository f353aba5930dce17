/* What `gpumgr doctor` found, one finding a sentence, each with advice where something needs attention. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/buf.h"

enum finding_level { FINDING_GOOD, FINDING_NOTE, FINDING_ATTENTION };

struct finding {
    enum finding_level level;
    const char *topic;
    char text[300];
    const char *advice; /* or NULL */
};

struct report {
    struct finding *of;
    size_t count, capacity;
};

void report_done(struct report *r);
void report_add(struct report *r, enum finding_level level, const char *topic, const char *advice, const char *fmt, ...)
    PRINTF(5, 6);
bool report_is_good(const struct report *r);

void report_print(const struct report *r, bool with_colour, struct buf *b);
void report_json(const struct report *r, struct buf *b); /* a list */
