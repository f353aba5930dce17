/* Death and interference at every single store and load. ring.c is built into this program with its atomic stores and
 * loads counted: a writer can be stopped for good before any store, and something else can happen before any load of a
 * reader. So the promises are tried at every point, not at the points that a clock happens to hit. */
#include "tests/test.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>

static void before_store(void);
static void before_load(void);

static void put_64(_Atomic uint64_t *p, uint64_t v, memory_order o) { atomic_store_explicit(p, v, o); }
static void put_32(_Atomic uint32_t *p, uint32_t v, memory_order o) { atomic_store_explicit(p, v, o); }
static uint64_t get_64(const _Atomic uint64_t *p, memory_order o) { return atomic_load_explicit(p, o); }
static uint32_t get_32(const _Atomic uint32_t *p, memory_order o) { return atomic_load_explicit(p, o); }

#undef atomic_store_explicit
#undef atomic_load_explicit
#define atomic_store_explicit(p, v, o)                                                                                 \
    (before_store(), _Generic((p), _Atomic uint64_t * : put_64, _Atomic uint32_t * : put_32)(p, v, o))
#define atomic_load_explicit(p, o)                                                                                     \
    (before_load(), _Generic((p), _Atomic uint64_t *: get_64, const _Atomic uint64_t *: get_64,                        \
                             _Atomic uint32_t *: get_32)(p, o))

#include "model/ring.c"
#include "tests/unit/ring_pattern.h"

#define SLOTS 3u
#define ROUNDS 7u /* written before it happens; more than SLOTS */

static struct inventory cards[PATTERN_DEVICES];
static const struct ring_spec spec = {.devices = PATTERN_DEVICES, .slots = SLOTS, .inventory = cards};
static void *image, *mem; /* the ring after ROUNDS, and the one at work */
static size_t size;

/* ---- a writer that dies ---- */

static jmp_buf death;
static long stores_left = -1; /* -1: immortal */

static void before_store(void) {
    if (stores_left < 0) return;
    if (stores_left-- == 0) {
        stores_left = -1;
        longjmp(death, 1);
    }
}

/* Runs `act` and lets it die before store number n; false when it needed fewer. */
static bool dies(long n, void (*act)(void *), void *ctx) {
    stores_left = n;
    if (setjmp(death)) return true;
    act(ctx);
    stores_left = -1;
    return false;
}

/* ---- a reader that is disturbed ---- */

static long loads_left = -1;
static void (*disturb)(void *);
static void *disturb_ctx;

static void before_load(void) {
    if (loads_left < 0) return;
    if (loads_left-- == 0) {
        loads_left = -1;
        disturb(disturb_ctx);
    }
}

static void attach(struct ring *r) {
    struct error e;
    assert_int_equal(ring_attach(r, mem, size, &e), 0);
}

static int setup(void **state) {
    pattern_inventory(cards);
    size = ring_size(PATTERN_DEVICES, SLOTS);
    image = calloc(1, size);
    mem = calloc(1, size);
    struct ring w;
    ring_format(&w, mem, &spec, 1, 1);
    for (uint64_t round = 1; round <= ROUNDS; round++) pattern_write_round(&w, round);
    memcpy(image, mem, size);
    return 0;
}

static int teardown(void **state) {
    free(image);
    free(mem);
    return 0;
}

static void write_next(void *ring) { pattern_write_round(ring, ROUNDS + 1); }

static void check(const struct ring *r, uint64_t lowest, uint64_t highest, long at) {
    const char *wrong = pattern_read(r, lowest, highest);
    if (wrong) print_error("stopped before store %ld: %s\n", at, wrong);
    assert_null(wrong);
}

static void check_complete(const struct ring *r, long at) {
    for (uint32_t d = 0; d < PATTERN_DEVICES; d++) {
        struct sample s;
        for (uint64_t n = ring_head(r, d) - SLOTS + 1; n <= ring_head(r, d); n++) {
            if (!ring_sample(r, d, n, &s)) print_error("stopped before store %ld: sample missing\n", at);
            assert_int_equal(check_sample(&s, d), n);
        }
    }
}

/* What an heir must keep: what readers have seen, and an entry that was whole when its writer died. */
struct seen {
    uint64_t latest, state, processes, driver, head;
};

static struct seen see(const struct ring *r, uint32_t d, bool whole_ones) {
    struct seen s = {0};
    struct latest l = {0};
    struct ring_state st = {0};
    struct ring_processes p = {0};
    struct ring_driver dr = {0};
    struct sample newest;
    assert_true(ring_latest(r, d, &l) && ring_state(r, d, &st) && ring_processes(r, d, &p) && ring_driver(r, &dr));
    s.latest = check_latest(&l, d), s.state = check_state(&st, d);
    s.processes = check_processes(&p, d), s.driver = check_driver(&dr, 0);
    s.head = ring_head(r, d);
    assert_true(ring_sample(r, d, s.head, &newest)); /* the head never names an entry that is not whole */
    const word *next = block(r, d)->slot + s.head % SLOTS * SAMPLE_SLOT_WORDS;
    if (whole_ones && get_64(next, memory_order_relaxed) == 2 * (s.head + 1)) s.head++;
    return s;
}

static void a_writer_dies_before_any_store(void **state) {
    long at = 0;
    for (bool died = true; died; at++) {
        memcpy(mem, image, size);
        struct ring w, r;
        attach(&w);
        died = dies(at, write_next, &w);
        attach(&r);
        check(&r, ROUNDS, ROUNDS + 1, at); /* readers that live on */
        for (uint32_t d = 0; d < PATTERN_DEVICES; d++)
            assert_true(ring_head(&r, d) == ROUNDS || ring_head(&r, d) == ROUNDS + 1);

        struct seen before[PATTERN_DEVICES];
        for (uint32_t d = 0; d < PATTERN_DEVICES; d++) before[d] = see(&r, d, true);
        assert_true(ring_adopt(&w, &spec, 2, 2));
        check(&r, ROUNDS, ROUNDS + 1, at);
        for (uint32_t d = 0; d < PATTERN_DEVICES; d++) {
            struct seen after = see(&r, d, false);
            assert_memory_equal(&before[d], &after, sizeof after);
        }
        for (uint64_t round = ROUNDS + 2; round < ROUNDS + 3 + SLOTS; round++) {
            pattern_write_round(&w, round);
            check(&r, round, round, at);
        }
        check_complete(&r, at);
    }
    print_message("# tried %ld points of death\n", at);
    assert_true(at > 2 * (long)(PATTERN_DEVICES * (WORDS(struct latest) + WORDS(struct ring_state))));
}

static void the_first_write_is_torn(void **state) {
    long at = 0;
    for (bool died = true; died; at++) {
        memset(mem, 0, size);
        struct ring w, r;
        ring_format(&w, mem, &spec, 1, 1);
        died = dies(at, write_next, &w);
        attach(&r);
        for (int pass = 0; pass < 2; pass++) {
            struct latest l;
            struct ring_state st;
            if (ring_latest(&r, 0, &l)) assert_int_equal(check_latest(&l, 0), ROUNDS + 1);
            if (ring_state(&r, 0, &st)) assert_int_equal(check_state(&st, 0), ROUNDS + 1);
            assert_true(ring_adopt(&w, &spec, 2, 2));
        }
        pattern_write_round(&w, ROUNDS + 2);
        check(&r, ROUNDS + 2, ROUNDS + 2, at);
    }
}

static void adopt(void *ring) {
    if (!ring_adopt(ring, &spec, 3, 3)) abort();
}

static void who_mends_dies_too(void **state) {
    long mends = 0;
    bool died = true;
    for (long at = 0; died; at += 29) {
        bool died_again = true;
        for (long again = 0; died_again; again++) {
            memcpy(mem, image, size);
            struct ring w, r;
            attach(&w);
            died = dies(at, write_next, &w);
            died_again = dies(again, adopt, &w);
            mends += died_again;
            attach(&r);
            check(&r, ROUNDS, ROUNDS + 1, at);
            adopt(&w);
            check(&r, ROUNDS, ROUNDS + 1, at);
            if (again % 7 == 0) {
                pattern_write_round(&w, ROUNDS + 2);
                check(&r, ROUNDS + 2, ROUNDS + 2, at);
            }
        }
    }
    assert_true(mends > 1000);
}

/* ---- readers between whose loads things happen ---- */

struct meddler {
    struct ring w;
    uint64_t rounds; /* whole rounds */
    long stores;     /* then stops for good before this store of one more; -1: does not begin it */
};

static void meddle(void *ctx) {
    struct meddler *m = ctx;
    uint64_t round = ROUNDS;
    for (uint64_t i = 0; i < m->rounds; i++) pattern_write_round(&m->w, ++round);
    if (m->stores >= 0) dies(m->stores, write_next, &m->w);
}

/* Reads sample `number` with the meddler before load `load`; false when there are fewer loads. */
static bool meddled_sample(struct meddler *m, uint64_t number, long load, unsigned long *whole) {
    memcpy(mem, image, size);
    struct ring r;
    struct sample s;
    attach(&r);
    attach(&m->w);
    disturb = meddle, disturb_ctx = m, loads_left = load;
    bool got = ring_sample(&r, 0, number, &s);
    bool reached = loads_left < 0;
    loads_left = -1;
    if (got && check_sample(&s, 0) != number) {
        print_error("sample %llu torn: load %ld, %llu rounds, store %ld\n", (unsigned long long)number, load,
                    (unsigned long long)m->rounds, m->stores);
        assert_true(false);
    }
    *whole += got;
    return reached;
}

static void a_reader_is_lapped_at_any_load(void **state) {
    unsigned long whole = 0, tries = 0;
    for (uint64_t number = ROUNDS - SLOTS + 1; number <= ROUNDS; number++)
        for (uint64_t rounds = 0; rounds <= 2 * SLOTS; rounds++)
            for (long load = 0;; load++, tries++) {
                struct meddler m = {.rounds = rounds, .stores = -1};
                if (!meddled_sample(&m, number, load, &whole)) break;
            }
    assert_true(whole > 0 && whole < tries);
}

static void a_reader_meets_a_half_write_at_any_load(void **state) {
    unsigned long whole = 0;
    const long stores = 2 + (long)WORDS(struct sample);
    for (long store = 0; store <= stores; store++)
        for (long load = 0;; load++) {
            struct meddler m = {.stores = store};
            if (!meddled_sample(&m, ROUNDS - SLOTS + 1, load, &whole)) break;
        }
    assert_true(whole > 0);
}

static void what_is_kept_twice_is_always_there(void **state) {
    for (uint64_t rounds = 0; rounds <= 2; rounds++) {
        for (long store = -1; store < 4200; store += 131) {
            bool reached = true;
            for (long load = 0; reached; load += 3) {
                memcpy(mem, image, size);
                struct meddler m = {.rounds = rounds, .stores = store};
                struct ring r;
                struct latest l;
                struct ring_processes p;
                attach(&r);
                attach(&m.w);
                disturb = meddle, disturb_ctx = &m, loads_left = load;
                bool got = ring_latest(&r, 1, &l);
                bool listed = ring_processes(&r, 1, &p);
                reached = loads_left < 0;
                loads_left = -1;
                assert_true(got && listed);
                assert_in_range(check_latest(&l, 1), ROUNDS, ROUNDS + 3);
                assert_in_range(check_processes(&p, 1), ROUNDS, ROUNDS + 3);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_dies_before_any_store),
        cmocka_unit_test(the_first_write_is_torn),
        cmocka_unit_test(who_mends_dies_too),
        cmocka_unit_test(a_reader_is_lapped_at_any_load),
        cmocka_unit_test(a_reader_meets_a_half_write_at_any_load),
        cmocka_unit_test(what_is_kept_twice_is_always_there),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
