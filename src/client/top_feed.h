/* Where the data of `gpumgr top` come from: the rings of this machine, its driver where nothing runs, or a server. None
 * of them ever keeps the person at the keys waiting: what may take time is done in a thread of its own. */
#pragma once

#include "client/source.h"
#include "client/top_state.h"

struct top_feed;

struct top_feed_kind {
    /* Begins to fetch what is new. */
    void (*ask)(struct top_feed *f);
    /* Takes what has come; false when there is nothing new. Paused: keeps the history whole and changes nothing else. */
    bool (*take)(struct top_feed *f, struct top_data *d, bool is_paused);
    void (*close)(struct top_feed *f);
};

/* The beginning of each kind's own struct. */
struct top_feed {
    const struct top_feed_kind *kind;
    int fd; /* readable when something has come, or -1 */
};

/* The source stays the caller's and must outlive it. */
struct top_feed *top_feed_rings(struct source *s);
struct top_feed *top_feed_driver(struct source *s);

/* For a single frame: waits until there is something, or says why there is not. */
int top_feed_once(struct top_feed *f, struct top_data *d, int64_t timeout_ns, struct error *e) MUST_CHECK;
void top_feed_close(struct top_feed *f);

/* When the newest reading of a view was made. */
int64_t top_newest_ns(const struct view *v);

/* Puts what a view says now into the history, for sources that tell no samples. */
void top_remember(struct history *h, const struct view *v);
