#include "client/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

void view_done(struct view *v) {
    free(v->of);
    *v = (struct view){0};
}

void view_clear(struct view *v) { *v = (struct view){.of = v->of, .capacity = v->capacity}; }

struct view_device *view_add(struct view *v) {
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? 2 * v->capacity : 16;
        struct view_device *more = realloc(v->of, capacity * sizeof *more);
        if (!more) abort();
        v->of = more;
        v->capacity = capacity;
    }
    struct view_device *d = &v->of[v->count++];
    memset(d, 0, sizeof *d);
    return d;
}

void view_add_event(struct view *v, const struct event *ev) {
    size_t at = v->event_count;
    while (at > 0 && v->events[at - 1].real_ns > ev->real_ns) at--;
    if (v->event_count == VIEW_EVENTS_MAX) {
        if (at == 0) return;
        memmove(&v->events[0], &v->events[1], (--at) * sizeof v->events[0]);
        v->events[at] = *ev;
        return;
    }
    memmove(&v->events[at + 1], &v->events[at], (v->event_count - at) * sizeof v->events[0]);
    v->events[at] = *ev;
    v->event_count++;
}

/* ---- safety ---- */

static void safe_text(char *s, size_t room) {
    s[room - 1] = 0;
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = '?';
}
#define SAFE_TEXT(field) safe_text((field), sizeof(field))

/* One that can be added to and subtracted from. */
static int64_t safe_time(int64_t ns) { return ns < 0 || ns > INT64_MAX / 4 ? 0 : ns; }

static void safe_device(struct view_device *d, size_t count) {
    struct inventory *i = &d->inventory;
    SAFE_TEXT(i->uuid);
    SAFE_TEXT(i->name);
    SAFE_TEXT(i->serial);
    SAFE_TEXT(i->vbios);
    SAFE_TEXT(i->board_part);
    SAFE_TEXT(i->inforom);
    SAFE_TEXT(i->driver);
    SAFE_TEXT(i->library);
    SAFE_TEXT(i->pci);
    SAFE_TEXT(i->architecture);
    SAFE_TEXT(d->state.text);
    SAFE_TEXT(d->guard.why);
    d->guard.since_real_ns = safe_time(d->guard.since_real_ns);
    d->guard.manual_until_ns = safe_time(d->guard.manual_until_ns);
    d->guard.confirm_by_ns = safe_time(d->guard.confirm_by_ns);
    if (i->parent >= (int32_t)count) i->parent = -1;
    if (d->processes.count > RING_PROCESSES_MAX) d->processes.count = RING_PROCESSES_MAX;
    if (d->processes.total < d->processes.count) d->processes.total = d->processes.count;
    if (d->xids.count > RING_XIDS_MAX) d->xids.count = RING_XIDS_MAX;
    ring_guard_bound(&d->guard);
}

void view_make_safe(struct view *v) {
    SAFE_TEXT(v->driver.text);
    for (size_t i = 0; i < v->count; i++) safe_device(&v->of[i], v->count);
    for (size_t i = 0; i < v->event_count; i++) {
        SAFE_TEXT(v->events[i].kind);
        SAFE_TEXT(v->events[i].text);
        if (v->events[i].severity < EVENT_INFO || v->events[i].severity > EVENT_CRITICAL)
            v->events[i].severity = EVENT_WARNING;
        if (v->events[i].device >= (int32_t)v->count) v->events[i].device = -1;
    }
}

/* ---- order ---- */

static bool is_double(const struct view *v, size_t at) {
    const struct view_device *d = &v->of[at];
    for (size_t i = 0; d->silent_ns && *d->inventory.uuid && i < v->count; i++)
        if (i != at && !v->of[i].silent_ns && strcmp(v->of[i].inventory.uuid, d->inventory.uuid) == 0) return true;
    return false;
}

static bool goes_before(const struct view_device *a, const struct view_device *b) {
    if (view_is_instance(a) != view_is_instance(b)) return !view_is_instance(a);
    if (a->inventory.parent != b->inventory.parent) return a->inventory.parent < b->inventory.parent;
    return a->inventory.index < b->inventory.index;
}

/* place[old] = new, or -1 where an entry was dropped. */
static void renumber(struct view *v, const int32_t *place) {
    for (size_t i = 0; i < v->count; i++)
        if (view_is_instance(&v->of[i])) v->of[i].inventory.parent = place[v->of[i].inventory.parent];
    for (size_t i = 0; i < v->event_count; i++)
        if (v->events[i].device >= 0) v->events[i].device = place[v->events[i].device];
}

void view_order(struct view *v) {
    if (v->count == 0) return;
    size_t *order = calloc(v->count, sizeof *order), n = 0;
    int32_t *place = calloc(v->count, sizeof *place);
    struct view_device *sorted = calloc(v->count, sizeof *sorted);
    if (!order || !place || !sorted) abort();
    for (size_t i = 0; i < v->count; i++) {
        place[i] = -1;
        if (is_double(v, i)) continue;
        size_t at = n++;
        for (; at > 0 && goes_before(&v->of[i], &v->of[order[at - 1]]); at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i] = v->of[order[i]];
        place[order[i]] = (int32_t)i;
    }
    free(v->of);
    v->of = sorted;
    v->capacity = v->count;
    v->count = n;
    renumber(v, place);
    free(order);
    free(place);
}

/* ---- what to call things ---- */

const char *view_state(const struct view_device *d, char *why, size_t room) {
    if (d->silent_ns) {
        char age[32];
        number_age(d->silent_ns, age, sizeof age);
        snprintf(why, room, "its sampler has said nothing for %s", age);
        return "stale";
    }
    snprintf(why, room, "%s", d->state.text);
    return device_state_name((enum device_state)d->state.state);
}

bool view_is_well(const struct view_device *d) {
    return !d->silent_ns && (d->state.state == DEVICE_OK || d->state.state == DEVICE_STARTING);
}

const char *view_short_name(const struct view_device *d) {
    static const char *const common[] = {"NVIDIA ", "GeForce ", "Tesla ", "Quadro "};
    const char *name = d->inventory.name, *profile = strstr(name, "MIG ");
    if (view_is_instance(d) && profile) return profile + 4;
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        if (strncmp(name, common[i], strlen(common[i])) == 0) name += strlen(common[i]);
    return *name ? name : "?";
}
