/* Ways to reach someone. A way is a row: its name, whether the settings ask for it, how a message is put into words, how
 * those are sent. Sending blocks, on the way's own thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/message.h"
#include "model/settings.h"

struct tell_way {
    const char *name;
    bool (*is_set)(const struct settings *s);
    void (*write)(struct buf *out, const struct message *m, const struct settings *s);
    /* body: what write made, perhaps by an earlier server. */
    int (*send)(const struct settings *s, const char *body, size_t len, struct error *e);
};

enum { TELL_WAYS = 4 };
extern const struct tell_way tell_ways[TELL_WAYS];

const struct tell_way *tell_way_find(const char *name, size_t len); /* NULL: there is none */
/* Puts somebody's own address in place of the operator's; false: this is none, or the way is not for others. */
bool tell_way_address(struct settings *s, const struct tell_way *way, const char *address);

/* What was not taken is tried again, after pauses that double, and given up when it is no news any more. */
#define ANSWERED "the receiver answered " /* and its status; what it wrote stands behind a colon */
#define TELL_GIVE_UP_S (3ll * 24 * 3600)
int64_t tell_pause_ns(int64_t tries);
