/* When to tell a person: turns events into few messages. A condition (a card lost, a card held back by the guard) is told
 * when it begins and when it is over, not each time it is seen; one that comes and goes is told again only after a
 * while; one that has no end (an XID) is told once, then counted. Pure: time is an argument, the book is the caller's,
 * who keeps it over a restart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"

#define NOTICE_BOOK_MAX 512

enum notice_effect {
    NOTICE_SILENT,   /* for the list of events only */
    NOTICE_OPENS,    /* a condition begins, or goes on */
    NOTICE_CLOSES,   /* it is over */
    NOTICE_ONCE,     /* happened; there is nothing to wait for */
    NOTICE_SEVERITY, /* opens it, unless it is of EVENT_INFO: that closes it */
};

struct event_row {
    const char *kind, *topic;
    enum notice_effect effect;
    enum event_severity least; /* told as at least this severe */
    const char *title;         /* "GPU lost" */
};
extern const struct event_row event_rows[];
extern const unsigned event_rows_count;

/* The row of a kind; one that nobody listed is told by its severity under its own name. */
struct event_row event_row(const char *kind);

struct notice_policy {
    enum event_severity least; /* what is below is not told */
    int64_t again_ns;          /* the same thing is not told again sooner */
};

/* One condition of one subject ("gpu:UUID", "node:NAME"). Plain values, so that it can be stored as it is. */
struct notice {
    char subject[96], topic[24], title[48], text[168];
    int32_t code, severity;
    uint32_t count;  /* events since it was last told ... */
    uint32_t silent; /* ... and how many the last telling stood for */
    uint8_t is_open, is_owed, is_told;
    int64_t opened_ns, told_ns, seen_ns; /* real time */
};

enum notice_word { NOTICE_NOTHING, NOTICE_TELL, NOTICE_TELL_OVER };

struct notice_book {
    uint32_t count;
    struct notice of[NOTICE_BOOK_MAX];
};

/* Takes an event. *ret_at is the notice that changed, or -1; what it says is to be sent when the word asks for it. */
enum notice_word notice_take(struct notice_book *b, const struct notice_policy *p, const char *subject,
                             const struct event *ev, int64_t now_ns, int *ret_at);

/* Time passed: a condition that was held back and still lasts. To be called until it says NOTICE_NOTHING. */
enum notice_word notice_tick(struct notice_book *b, const struct notice_policy *p, int64_t now_ns, int *ret_at);
