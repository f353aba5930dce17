/* What a person asks about: all GPUs of this machine at one moment. The rings fill it (rings.h) or the driver itself
 * does (direct.h); tables and JSON only read it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"
#include "model/inventory.h"
#include "model/ring.h"
#include "model/sample.h"

enum { VIEW_EVENTS_MAX = 16 };

enum view_source { VIEW_DAEMON, VIEW_DRIVER };

struct view_device {
    struct inventory inventory; /* parent: the place in view.of */
    struct ring_state state;
    struct latest latest;
    struct ring_processes processes; /* boot_ns 0: not known */
    struct ring_xids xids;
    bool has_guard; /* whether the guard has said anything of it */
    struct ring_guard guard;
    unsigned worker;   /* whose sampler has it */
    int64_t silent_ns; /* since its writer last breathed, when that is too long; else 0 */
};

struct view {
    enum view_source source;
    int64_t boot_ns, real_ns; /* when it was taken */
    struct ring_driver driver;
    struct view_device *of; /* GPUs by index; a GPU's MIG instances follow all GPUs */
    size_t count, capacity;
    struct event events[VIEW_EVENTS_MAX]; /* newest last; device: the place in `of`, or -1 */
    size_t event_count;
};

void view_done(struct view *v);

/* Empties it for the next moment; keeps the memory. */
void view_clear(struct view *v);

/* A new zeroed entry; the pointer holds until the next one. */
struct view_device *view_add(struct view *v);

/* Puts what came from other processes' memory into bounds: texts end, counts fit, no control characters. */
void view_make_safe(struct view *v);

/* Sorts GPUs by index and drops second entries of the same UUID that are silent. */
void view_order(struct view *v);

void view_add_event(struct view *v, const struct event *ev);

static inline bool view_is_instance(const struct view_device *d) { return d->inventory.parent >= 0; }

/* "ok", "lost", ...; "stale" when its sampler went silent. The reason goes to `why` and may be empty. */
const char *view_state(const struct view_device *d, char *why, size_t room);
bool view_is_well(const struct view_device *d);

/* "H200", "RTX 4090": the name less what every card has in front; of a MIG instance its profile. */
const char *view_short_name(const struct view_device *d);
