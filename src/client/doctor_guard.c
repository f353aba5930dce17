/* How each GPU is guarded: as the running guard says, else what a guard would use, by reading only. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor.h"
#include "model/guard_words.h"

static const char observe_only[] = "observe only";

static const struct ring_guard *guard_of(const struct doctor *d, const char *uuid) {
    for (size_t i = 0; i < d->daemon.count; i++)
        if (d->daemon.of[i].has_guard && strcmp(d->daemon.of[i].inventory.uuid, uuid) == 0)
            return &d->daemon.of[i].guard;
    return NULL;
}

static const char *would_use(const struct doctor *d, const struct direct_gpu *g, char *why, size_t room) {
    if (!*g->lever) {
        snprintf(why, room, "the driver tells nothing of this card");
        return "unknown";
    }
    if (d->loaded.values.guard_mode != GUARD_AUTO) {
        snprintf(why, room, "guard.mode is %s", d->loaded.values.guard_mode == GUARD_OFF ? "off" : "observe");
        return observe_only;
    }
    if (strcmp(g->lever, "none") == 0) {
        snprintf(why, room, "%s", g->lever_why);
        return observe_only;
    }
    if (geteuid() != 0)
        snprintf(why, room, "%s; but setting needs root, and this is uid %u", g->lever_why, (unsigned)geteuid());
    else
        snprintf(why, room, "%s", g->lever_why);
    return g->lever;
}

struct doctor_way doctor_workflow(const struct doctor *d, int32_t index) {
    const struct direct_gpu *g = &d->direct.shared->gpu[index];
    const struct ring_guard *guard = guard_of(d, g->device.inventory.uuid);
    struct doctor_way way = {.is_in_force = guard != NULL};
    const char *name;
    if (!guard) {
        name = would_use(d, g, way.why, sizeof way.why);
    } else {
        name = guard->mode == RING_GUARD_ACTS ? guard_lever_words(guard) : observe_only;
        snprintf(way.why, sizeof way.why, "%s", guard->why);
    }
    snprintf(way.name, sizeof way.name, "%s", name);
    return way;
}

/* ---- findings ---- */

static bool are_alike(const struct view_device *a, const struct view_device *b) {
    return a->has_guard && b->has_guard && a->guard.mode == b->guard.mode && a->guard.lever == b->guard.lever &&
           strcmp(a->guard.why, b->guard.why) == 0;
}

static bool is_first(const struct view *v, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (are_alike(&v->of[i], &v->of[at])) return false;
    return true;
}

/* One finding for all GPUs that are guarded alike. */
static void report(struct doctor *d, size_t first) {
    const struct view_device *g = &d->daemon.of[first];
    AUTO(buf_done) struct buf gpus = {0};
    bool acts = g->guard.mode == RING_GUARD_ACTS;
    for (size_t i = first; i < d->daemon.count; i++)
        if (are_alike(g, &d->daemon.of[i])) buf_printf(&gpus, " %d", (int)d->daemon.of[i].inventory.index);
    report_add(&d->report, acts ? FINDING_GOOD : FINDING_NOTE, "guard", NULL, "GPU%.120s: %s%s%s%s%s", gpus.s,
               guard_mode_word(&g->guard), acts ? " by " : "", acts ? guard_lever_words(&g->guard) : "",
               *g->guard.why ? ": " : "", g->guard.why);
}

void doctor_check_guard(struct doctor *d) {
    for (size_t i = 0; i < d->daemon.count; i++)
        if (d->daemon.of[i].has_guard && is_first(&d->daemon, i)) report(d, i);
}
