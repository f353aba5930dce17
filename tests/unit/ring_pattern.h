/* What the ring's tests write: every word of every structure follows from a version and a device, so that a reader can
 * tell a whole value from a torn or invented one. Versions begin at 1. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/auto.h"
#include "model/ring.h"

#define PATTERN_DEVICES 2u
#define PATTERN_TORN UINT64_MAX

static inline uint64_t pattern_word(uint64_t v, uint32_t device, size_t i) {
    uint64_t x = v * 0x9e3779b97f4a7c15ull + device * 0xbf58476d1ce4e5b9ull + i * 0x94d049bb133111ebull;
    return x ^ x >> 29;
}

static inline void pattern_words(void *to, size_t n, uint64_t v, uint32_t device) {
    for (size_t i = 0; i < n / sizeof(uint64_t); i++) {
        uint64_t w = i ? pattern_word(v, device, i) : v;
        memcpy((char *)to + i * sizeof w, &w, sizeof w);
    }
}

static inline void pattern_text(char *to, size_t room, uint64_t v, uint32_t device) {
    for (size_t i = 0; i < room - 1; i++) to[i] = (char)('a' + pattern_word(v, device, i) % 26);
    to[room - 1] = 0;
}

/* A structure's first word is its version; fill_X makes one, check_X says which version a copy is of. */
#define PATTERN_CHECK(type, name)                                                                                      \
    static inline uint64_t check_##name(const type *got, uint32_t device) {                                            \
        uint64_t v;                                                                                                    \
        type want;                                                                                                     \
        memcpy(&v, got, sizeof v);                                                                                     \
        fill_##name(&want, v, device);                                                                                 \
        return memcmp(&want, got, sizeof want) == 0 ? v : PATTERN_TORN;                                                \
    }

static inline void fill_sample(struct sample *s, uint64_t v, uint32_t d) { pattern_words(s, sizeof *s, v, d); }
static inline void fill_latest(struct latest *l, uint64_t v, uint32_t d) { pattern_words(l, sizeof *l, v, d + 10); }

static inline void fill_state(struct ring_state *s, uint64_t v, uint32_t d) {
    pattern_words(s, sizeof *s, v, d + 20);
    s->state = v % (DEVICE_FORBIDDEN + 1);
    pattern_text(s->text, sizeof s->text, v, d);
}

static inline void fill_driver(struct ring_driver *s, uint64_t v, uint32_t d) {
    pattern_words(s, sizeof *s, v, d + 30);
    s->state = v % (DRIVER_ABSENT + 1);
    pattern_text(s->text, sizeof s->text, v, d);
}

static inline void fill_xids(struct ring_xids *x, uint64_t v, uint32_t d) {
    pattern_words(x, sizeof *x, v, d + 40);
    x->count = v % (RING_XIDS_MAX + 1);
}

static inline void fill_event(struct event *ev, uint64_t v, uint32_t d) {
    pattern_words(ev, sizeof *ev, v, d + 50);
    ev->severity = (int32_t)(v % (EVENT_CRITICAL + 1));
    ev->device = (int32_t)(v % PATTERN_DEVICES);
    pattern_text(ev->kind, sizeof ev->kind, v, d);
    pattern_text(ev->text, sizeof ev->text, v, d);
}

/* Lists of all lengths, full and empty included. */
static inline void fill_processes(struct ring_processes *p, uint64_t v, uint32_t d) {
    pattern_words(p, sizeof *p, v, d + 60);
    p->count = (uint32_t)(v * 37 % (RING_PROCESSES_MAX + 1));
    p->total = p->count + (uint32_t)(v % 3);
}

PATTERN_CHECK(struct sample, sample)
PATTERN_CHECK(struct latest, latest)
PATTERN_CHECK(struct ring_state, state)
PATTERN_CHECK(struct ring_driver, driver)
PATTERN_CHECK(struct event, event)

/* Its first word is a count, so the version is looked for among those that it can be. */
static inline uint64_t check_xids(const struct ring_xids *got, uint32_t device, uint64_t lowest, uint64_t highest) {
    struct ring_xids want;
    for (uint64_t v = lowest; v <= highest; v++) {
        fill_xids(&want, v, device);
        if (memcmp(&want, got, sizeof want) == 0) return v;
    }
    return PATTERN_TORN;
}

/* Entries past the count are left from longer lists and mean nothing. */
static inline uint64_t check_processes(const struct ring_processes *got, uint32_t device) {
    struct ring_processes want;
    uint64_t v = (uint64_t)got->boot_ns;
    fill_processes(&want, v, device);
    size_t n = offsetof(struct ring_processes, of) + want.count * sizeof want.of[0];
    return memcmp(&want, got, n) == 0 ? v : PATTERN_TORN;
}

/* What two cards of a test are. */
static inline void pattern_inventory(struct inventory of[PATTERN_DEVICES]) {
    memset(of, 0, PATTERN_DEVICES * sizeof of[0]);
    for (uint32_t d = 0; d < PATTERN_DEVICES; d++) {
        of[d].index = (int32_t)d;
        of[d].parent = of[d].gi = of[d].ci = -1;
        of[d].memory_clocks = 1;
        of[d].clocks[0].graphics_count = GRAPHICS_CLOCKS_MAX;
        pattern_text(of[d].uuid, sizeof of[d].uuid, 1, d);
    }
}

/* One round of a sampler: everything once. Samples and events carry their number, the rest the round's. */
static inline void pattern_write_device(struct ring *r, uint32_t d, uint64_t round) {
    struct sample s;
    struct latest l;
    struct ring_state st;
    struct ring_processes p;
    struct ring_xids x;
    fill_sample(&s, ring_head(r, d) + 1, d);
    ring_put_sample(r, d, &s);
    fill_latest(&l, round, d);
    ring_put_latest(r, d, &l);
    fill_state(&st, round, d);
    ring_put_state(r, d, &st);
    fill_processes(&p, round, d);
    ring_put_processes(r, d, &p);
    fill_xids(&x, round, d);
    ring_put_xids(r, d, &x);
}

static inline void pattern_write_machine(struct ring *r, uint64_t round) {
    struct ring_driver dr;
    struct event ev;
    fill_driver(&dr, round, 0);
    ring_put_driver(r, &dr);
    fill_event(&ev, ring_event_head(r) + 1, 0);
    ring_put_event(r, &ev);
    ring_beat(r, (int64_t)round);
    ring_toll(r);
}

static inline void pattern_write_round(struct ring *r, uint64_t round) {
    for (uint32_t d = 0; d < PATTERN_DEVICES; d++) pattern_write_device(r, d, round);
    pattern_write_machine(r, round);
}

/* Reads all there is. Returns what is wrong with it, or NULL. Versions of what is overwritten in place must lie in
 * lowest..highest, and are never absent unless lowest is 0. Of the samples at most one may be missing: the slot that a
 * writer is in. */
static inline const char *pattern_read(const struct ring *r, uint64_t lowest, uint64_t highest) {
#define IN_PLACE(read, check, what)                                                                                    \
    do {                                                                                                               \
        if (!(read)) {                                                                                                 \
            if (lowest) return "no whole " what;                                                                       \
        } else {                                                                                                       \
            uint64_t v = (check);                                                                                      \
            if (v == PATTERN_TORN) return "torn " what;                                                                \
            if (v < lowest || v > highest) return "a " what " of another time";                                        \
        }                                                                                                              \
    } while (0)
    for (uint32_t d = 0; d < PATTERN_DEVICES; d++) {
        struct sample s;
        struct latest l;
        struct ring_state st;
        struct ring_processes p;
        struct ring_xids x;
        IN_PLACE(ring_latest(r, d, &l), check_latest(&l, d), "latest");
        IN_PLACE(ring_state(r, d, &st), check_state(&st, d), "state");
        IN_PLACE(ring_processes(r, d, &p), check_processes(&p, d), "process list");
        IN_PLACE(ring_xids(r, d, &x), check_xids(&x, d, highest > 8 ? highest - 8 : 0, highest), "XID list");
        uint64_t head = ring_head(r, d), missing = 0;
        for (uint64_t n = head > ring_slots(r) ? head - ring_slots(r) + 1 : 1; n <= head; n++) {
            if (!ring_sample(r, d, n, &s))
                missing++;
            else if (check_sample(&s, d) != n)
                return "torn sample";
        }
        if (missing > 1) return "samples are missing";
    }
    struct ring_driver dr;
    struct event ev;
    IN_PLACE(ring_driver(r, &dr), check_driver(&dr, 0), "driver");
    uint64_t head = ring_event_head(r), missing = 0;
    for (uint64_t n = head > RING_EVENTS ? head - RING_EVENTS + 1 : 1; n <= head; n++) {
        if (!ring_event(r, n, &ev))
            missing++;
        else if (check_event(&ev, 0) != n)
            return "torn event";
    }
    return missing > 1 ? "events are missing" : NULL;
#undef IN_PLACE
}
