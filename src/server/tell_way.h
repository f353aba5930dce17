/* Ways to reach someone. A way is a row: its name, whether the settings ask for it, how a message is put into words, how
 * those are sent. Sending blocks, on the way's own thread. */
#pragma once

#include <stdbool.h>

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
