/* The ring as one writer and one reader see it: attaching to foreign memory, adopting, overwriting the oldest, and
 * contents that are out of bounds. Built with ring.c inside, to reach its layout. */
#include "tests/test.h"

#include <stdlib.h>

#include "model/ring.c"
#include "tests/unit/ring_pattern.h"

#define SLOTS 5u

static struct inventory cards[PATTERN_DEVICES];
static const struct ring_spec spec = {.devices = PATTERN_DEVICES, .slots = SLOTS, .inventory = cards};

struct fixture {
    void *mem;
    size_t size;
    struct ring w;
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    pattern_inventory(cards);
    f->size = ring_size(PATTERN_DEVICES, SLOTS);
    f->mem = calloc(1, f->size);
    ring_format(&f->w, f->mem, &spec, 77, 5);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    free(f->mem);
    free(f);
    return 0;
}

static void empty(void **state) {
    struct fixture *f = *state;
    struct ring r;
    struct error e = {0};
    assert_int_equal(ring_attach(&r, f->mem, f->size, &e), 0);
    assert_int_equal(ring_devices(&r), PATTERN_DEVICES);
    assert_int_equal(ring_slots(&r), SLOTS);
    assert_int_equal(ring_writer(&r), 77);
    assert_int_equal(ring_beat_ns(&r), 5);
    assert_memory_equal(ring_inventory(&r, 1), &cards[1], sizeof cards[1]);
    for (uint32_t d = 0; d < PATTERN_DEVICES; d++) {
        struct sample s, zero = {0};
        struct latest l;
        struct ring_state st;
        struct ring_processes p;
        struct ring_xids x;
        memset(&s, 0xaa, sizeof s);
        assert_int_equal(ring_head(&r, d), 0);
        for (uint64_t n = 0; n < 8; n++) assert_false(ring_sample(&r, d, n, &s));
        assert_false(ring_sample(&r, d, UINT64_MAX, &s));
        assert_memory_equal(&s, &zero, sizeof s); /* a failed read leaves nothing that could be taken for a value */
        assert_false(ring_latest(&r, d, &l));
        assert_false(ring_state(&r, d, &st));
        assert_false(ring_processes(&r, d, &p));
        assert_false(ring_xids(&r, d, &x));
    }
    struct ring_driver dr;
    struct event ev;
    assert_false(ring_driver(&r, &dr));
    assert_int_equal(ring_event_head(&r), 0);
    assert_false(ring_event(&r, 1, &ev));
}

/* Each row spoils one thing. */
static void spoil_magic(struct ring_header *h) { h->magic ^= 1; }
static void spoil_version(struct ring_header *h) { h->version++; }
static void spoil_catalogue(struct ring_header *h) { h->catalogue++; }
static void spoil_events(struct ring_header *h) { h->events--; }
static void no_slots(struct ring_header *h) { h->slots = 0; }
static void more_slots(struct ring_header *h) { h->slots++; }
static void most_slots(struct ring_header *h) { h->slots = UINT32_MAX; }
static void more_devices(struct ring_header *h) { h->devices++; }
static void most_devices(struct ring_header *h) { h->devices = UINT32_MAX; }
static void larger(struct ring_header *h) { h->size_bytes += 64; }
static void smaller(struct ring_header *h) { h->size_bytes = 64; }
static void honest_but_larger(struct ring_header *h) {
    h->devices = DEVICE_MAX;
    h->size_bytes = ring_size(DEVICE_MAX, SLOTS);
}
static struct inventory *first_card(struct ring_header *h) {
    return &block(&(struct ring){.h = h, .slots = SLOTS}, 0)->inventory;
}
static void endless_name(struct ring_header *h) { memset(first_card(h)->name, 'x', sizeof first_card(h)->name); }
static void endless_last(struct ring_header *h) {
    memset(first_card(h)->architecture, 'x', sizeof first_card(h)->architecture);
}
static void many_clocks(struct ring_header *h) { first_card(h)->memory_clocks = MEMORY_CLOCKS_MAX + 1; }
static void negative_clocks(struct ring_header *h) { first_card(h)->memory_clocks = -1; }
static void many_graphics(struct ring_header *h) { first_card(h)->clocks[0].graphics_count = 300; }
static void strange_parent(struct ring_header *h) { first_card(h)->parent = PATTERN_DEVICES; }

static void attaching_to_bad_memory(void **state) {
    static const struct {
        const char *name;
        void (*spoil)(struct ring_header *h);
        const char *says;
    } rows[] = {
        {"bad magic",           spoil_magic,       "not a ring"          },
        {"wrong version",       spoil_version,     "another version"     },
        {"catalogue mismatch",  spoil_catalogue,   "another version"     },
        {"other event count",   spoil_events,      "another version"     },
        {"no slots",            no_slots,          "impossible sizes"    },
        {"one slot more",       more_slots,        "impossible sizes"    },
        {"slots overflow",      most_slots,        "impossible sizes"    },
        {"one device more",     more_devices,      "impossible sizes"    },
        {"devices overflow",    most_devices,      "impossible sizes"    },
        {"larger than it is",   larger,            "impossible sizes"    },
        {"smaller than it is",  smaller,           "impossible sizes"    },
        {"file too short",      honest_but_larger, "impossible sizes"    },
        {"name without end",    endless_name,      "impossible inventory"},
        {"last text",           endless_last,      "impossible inventory"},
        {"too many clocks",     many_clocks,       "impossible inventory"},
        {"negative clocks",     negative_clocks,   "impossible inventory"},
        {"too many steps",      many_graphics,     "impossible inventory"},
        {"parent out of range", strange_parent,    "impossible inventory"},
    };
    struct fixture *f = *state;
    void *copy = malloc(f->size);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ring r = {0};
        struct error e = {0};
        memcpy(copy, f->mem, f->size);
        rows[i].spoil(copy);
        int got = ring_attach(&r, copy, f->size, &e);
        if (got != -EPROTO || !strstr(e.text, rows[i].says)) print_error("%s: %d %s\n", rows[i].name, got, e.text);
        assert_int_equal(got, -EPROTO);
        assert_non_null(strstr(e.text, rows[i].says));
        assert_null(r.h);
    }
    free(copy);
}

static void attaching_to_a_part(void **state) {
    struct fixture *f = *state;
    struct ring r;
    struct error e;
    for (size_t n = 0; n < f->size; n += n < 64 ? 1 : 509) {
        void *part = malloc(n ? n : 1); /* of its own, so that a sanitizer sees a look past the end */
        memcpy(part, f->mem, n);
        assert_int_equal(ring_attach(&r, part, n, &e), -EPROTO);
        free(part);
    }
    assert_int_equal(ring_attach(&r, f->mem, f->size, &e), 0);
}

static void the_newest_overwrites_the_oldest(void **state) {
    struct fixture *f = *state;
    struct sample s;
    for (uint64_t round = 1; round < 4 * SLOTS; round++) {
        pattern_write_round(&f->w, round);
        const char *wrong = pattern_read(&f->w, round, round);
        if (wrong) print_error("%s\n", wrong);
        assert_null(wrong);
        assert_int_equal(ring_head(&f->w, 1), round);
        assert_true(ring_sample(&f->w, 1, round, &s));
        assert_false(ring_sample(&f->w, 1, round + 1, &s));
        if (round > SLOTS) {
            assert_true(ring_sample(&f->w, 1, round - SLOTS + 1, &s));
            assert_false(ring_sample(&f->w, 1, round - SLOTS, &s));
        }
    }
}

static void adopting(void **state) {
    struct fixture *f = *state;
    struct ring r;
    struct error e;
    struct inventory others[PATTERN_DEVICES + 1];
    memset(others, 0, sizeof others);
    pattern_inventory(others);
    pattern_write_round(&f->w, 1);
    assert_int_equal(ring_attach(&r, f->mem, f->size, &e), 0);

    assert_false(ring_adopt(&r, &(struct ring_spec){PATTERN_DEVICES + 1, SLOTS, others}, 9, 9));
    assert_false(ring_adopt(&r, &(struct ring_spec){PATTERN_DEVICES - 1, SLOTS, others}, 9, 9));
    assert_false(ring_adopt(&r, &(struct ring_spec){PATTERN_DEVICES, SLOTS + 1, others}, 9, 9));
    others[1].uuid[0] ^= 1;
    assert_false(ring_adopt(&r, &(struct ring_spec){PATTERN_DEVICES, SLOTS, others}, 9, 9));
    assert_int_equal(ring_writer(&r), 77); /* what was refused was not touched */

    assert_true(ring_adopt(&r, &spec, 9, 8));
    assert_int_equal(ring_writer(&r), 9);
    assert_int_equal(ring_beat_ns(&r), 8);
    assert_null(pattern_read(&r, 1, 1));

    atomic_store(&block(&r, 1)->latest[0], 11);
    atomic_store(&block(&r, 1)->latest[1 + WORDS(struct latest)], 13);
    assert_false(ring_adopt(&r, &spec, 9, 8)); /* nothing whole to mend it from */
}

/* Marks grow through a file and on into the next one; what a mark has not seen comes after it. */
static void marks(void **state) {
    static struct inventory fleet[PATTERN_DEVICES];
    const struct ring_spec one = {PATTERN_DEVICES, SLOTS, fleet};
    size_t size = ring_size(PATTERN_DEVICES, SLOTS);
    void *first = calloc(1, size), *second = calloc(1, size);
    struct ring a, b;
    ring_format(&a, first, &one, 1, 1000000);
    ring_format(&b, second, &one, 2, 2000000);
    assert_int_equal(ring_after(&a, 0), 1);
    for (uint64_t n = 1; n < 1000; n++) {
        assert_true(ring_mark(&a, n) > ring_mark(&a, n - 1));
        assert_true(ring_mark(&b, 1) > ring_mark(&a, n));
        assert_int_equal(ring_after(&a, ring_mark(&a, n)), n + 1);
        assert_int_equal(ring_after(&b, ring_mark(&a, n)), 1); /* a new file: all of it is new */
    }
    assert_true(ring_adopt(&a, &one, 3, 5000000)); /* another writer, the same places */
    assert_int_equal(ring_after(&a, ring_mark(&b, 1) - 1000000), 2);
    assert_true(ring_mark(&a, UINT64_MAX) > 0);
    free(first);
    free(second);
}

/* As a sampler does that finds no driver: it takes over whatever cards the ring has. */
static void inheriting(void **state) {
    struct fixture *f = *state;
    struct ring r;
    struct error e;
    struct latest l;
    pattern_write_round(&f->w, 1);
    atomic_store(&block(&f->w, 1)->latest[0], 11); /* half-written by the one before */
    assert_int_equal(ring_attach(&r, f->mem, f->size, &e), 0);
    assert_true(ring_inherit(&r, 9, 8));
    assert_int_equal(ring_writer(&r), 9);
    assert_int_equal(ring_beat_ns(&r), 8);
    assert_int_equal(atomic_load(&block(&r, 1)->latest[0]) & 1, 0);
    assert_true(ring_latest(&r, 1, &l));
    assert_int_equal(check_latest(&l, 1), 1);
}

static void contents_out_of_bounds(void **state) {
    struct fixture *f = *state;
    struct ring_processes p = {.boot_ns = 1, .count = 5000, .total = 5000};
    struct ring_xids x = {.count = 1ull << 40};
    struct ring_state st = {.since_boot_ns = 1, .state = 99};
    struct ring_driver dr = {.since_real_ns = 1, .state = 99};
    struct event ev = {.boot_ns = 1, .severity = -7, .device = 12};
    memset(st.text, 'x', sizeof st.text);
    memset(dr.text, 'x', sizeof dr.text);
    memset(ev.kind, 'x', sizeof ev.kind);
    memset(ev.text, 'x', sizeof ev.text);
    ring_put_processes(&f->w, 0, &p);
    ring_put_xids(&f->w, 0, &x);
    ring_put_state(&f->w, 0, &st);
    ring_put_driver(&f->w, &dr);
    ring_put_event(&f->w, &ev);
    assert_true(ring_processes(&f->w, 0, &p));
    assert_int_equal(p.count, RING_PROCESSES_MAX);
    assert_false(ring_processes(&f->w, 1, &p)); /* the neighbour was not written over */
    assert_true(ring_xids(&f->w, 0, &x));
    assert_int_equal(x.count, RING_XIDS_MAX);
    assert_true(ring_state(&f->w, 0, &st));
    assert_int_equal(st.state, DEVICE_STARTING);
    assert_int_equal(strlen(st.text), sizeof st.text - 1);
    assert_true(ring_driver(&f->w, &dr));
    assert_int_equal(dr.state, DRIVER_STARTING);
    assert_int_equal(strlen(dr.text), sizeof dr.text - 1);
    assert_true(ring_event(&f->w, 1, &ev));
    assert_int_equal(ev.severity, EVENT_ERROR);
    assert_int_equal(ev.device, -1);
    assert_int_equal(strlen(ev.kind), sizeof ev.kind - 1);
    assert_int_equal(strlen(ev.text), sizeof ev.text - 1);
    assert_string_equal(event_severity_name((enum event_severity)99), "unknown");
    assert_string_equal(event_severity_name(EVENT_CRITICAL), "critical");
    assert_string_equal(device_state_name((enum device_state)99), "unknown");
    assert_string_equal(device_state_name(DEVICE_FENCED), "fenced");
    assert_string_equal(device_state_name(DEVICE_FORBIDDEN), "forbidden");
}

static void a_header_that_changes_later(void **state) {
    struct fixture *f = *state;
    struct ring r;
    struct error e;
    pattern_write_round(&f->w, 1);
    assert_int_equal(ring_attach(&r, f->mem, f->size, &e), 0);
    f->w.h->slots = 8000;
    f->w.h->devices = 120;
    assert_int_equal(ring_devices(&r), PATTERN_DEVICES);
    assert_null(pattern_read(&r, 1, 1));
}

static void the_bell(void **state) {
    struct fixture *f = *state;
    uint32_t before = atomic_load(ring_bell(&f->w));
    ring_toll(&f->w);
    assert_int_equal(atomic_load(ring_bell(&f->w)), before + 1);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(empty),
        T(attaching_to_bad_memory),
        T(attaching_to_a_part),
        T(the_newest_overwrites_the_oldest),
        T(adopting),
        T(marks),
        T(inheriting),
        T(contents_out_of_bounds),
        T(a_header_that_changes_later),
        T(the_bell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
