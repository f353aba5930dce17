/* A writer thread per device and many readers in one process, for ThreadSanitizer and for the memory model: fast
 * readers, slow ones that are lapped, and ones that wait for the bell. */
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/shm.h"
#include "tests/unit/ring_pattern.h"

#define SLOTS 4u
#define ROUNDS 5000u
#define READERS 6

static struct ring ring;
static _Atomic unsigned writers_left = PATTERN_DEVICES;
static pthread_mutex_t machine = PTHREAD_MUTEX_INITIALIZER; /* events and driver have one writer at a time */

static void *writer(void *arg) {
    uint32_t d = *(const uint32_t *)arg;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        pattern_write_device(&ring, d, round);
        if (d == 0) {
            pthread_mutex_lock(&machine);
            pattern_write_machine(&ring, round);
            pthread_mutex_unlock(&machine);
        } else if (round % 16 == 0) {
            struct event ev;
            pthread_mutex_lock(&machine);
            fill_event(&ev, ring_event_head(&ring) + 1, 0);
            ring_put_event(&ring, &ev);
            ring_toll(&ring);
            pthread_mutex_unlock(&machine);
        }
        shm_wake(ring_bell(&ring));
    }
    atomic_fetch_sub(&writers_left, 1);
    ring_toll(&ring);
    shm_wake(ring_bell(&ring));
    return NULL;
}

struct reader {
    int which;
    uint64_t whole, missed;
    const char *wrong;
};

static const char *look(struct reader *me, uint64_t newest[PATTERN_DEVICES]) {
    for (uint32_t d = 0; d < PATTERN_DEVICES; d++) {
        struct sample s;
        struct latest l;
        struct ring_state st;
        struct ring_processes p;
        /* odd ones walk from the oldest slot, so that the writer runs them over */
        uint64_t head = ring_head(&ring, d), from = me->which % 2 && head > SLOTS ? head - SLOTS + 1 : head;
        for (uint64_t n = from; n && n <= head; n++) {
            bool got = ring_sample(&ring, d, n, &s);
            me->whole += got;
            me->missed += !got;
            if (got && check_sample(&s, d) != n) return "torn sample";
        }
        if (ring_latest(&ring, d, &l)) {
            uint64_t v = check_latest(&l, d);
            if (v == PATTERN_TORN) return "torn latest";
            if (v < newest[d]) return "latest went back";
            newest[d] = v;
        }
        if (ring_state(&ring, d, &st) && check_state(&st, d) == PATTERN_TORN) return "torn state";
        if (ring_processes(&ring, d, &p) && check_processes(&p, d) == PATTERN_TORN) return "torn process list";
    }
    struct ring_driver dr;
    struct event ev;
    uint64_t head = ring_event_head(&ring);
    if (ring_driver(&ring, &dr) && check_driver(&dr, 0) == PATTERN_TORN) return "torn driver";
    if (ring_event(&ring, head, &ev) && check_event(&ev, 0) != head) return "torn event";
    return NULL;
}

static void *reader(void *arg) {
    struct reader *me = arg;
    uint64_t newest[PATTERN_DEVICES] = {0};
    bool is_last; /* one that got no processor while they wrote looks once, when they have */
    do {
        is_last = !atomic_load(&writers_left);
        uint32_t seen = atomic_load(ring_bell(&ring));
        me->wrong = look(me, newest);
        if (me->which % 3 == 0 && !is_last) shm_wait(ring_bell(&ring), seen, NS_PER_S);
    } while (!is_last && !me->wrong);
    return NULL;
}

static void many_readers_and_two_writers(void **state) {
    static const uint32_t numbers[PATTERN_DEVICES] = {0, 1};
    struct inventory cards[PATTERN_DEVICES];
    pattern_inventory(cards);
    void *mem = calloc(1, ring_size(PATTERN_DEVICES, SLOTS));
    ring_format(&ring, mem, &(struct ring_spec){PATTERN_DEVICES, SLOTS, cards}, 1, 1);

    pthread_t writers[PATTERN_DEVICES], threads[READERS];
    struct reader readers[READERS] = {0};
    for (int i = 0; i < READERS; i++) {
        readers[i].which = i;
        assert_int_equal(pthread_create(&threads[i], NULL, reader, &readers[i]), 0);
    }
    for (size_t d = 0; d < PATTERN_DEVICES; d++) {
        void *arg = (void *)(uintptr_t)&numbers[d];
        assert_int_equal(pthread_create(&writers[d], NULL, writer, arg), 0);
    }
    for (size_t d = 0; d < PATTERN_DEVICES; d++) pthread_join(writers[d], NULL);
    for (int i = 0; i < READERS; i++) pthread_join(threads[i], NULL);
    uint64_t whole = 0, missed = 0;
    for (int i = 0; i < READERS; i++) {
        if (readers[i].wrong) print_error("reader %d: %s\n", i, readers[i].wrong);
        assert_null(readers[i].wrong);
        whole += readers[i].whole;
        missed += readers[i].missed;
    }
    print_message("# %llu whole samples, %llu lost to the writer\n", (unsigned long long)whole,
                  (unsigned long long)missed);
    assert_true(whole > 0);
    const char *wrong = pattern_read(&ring, ROUNDS, ROUNDS);
    if (wrong) print_error("%s\n", wrong);
    assert_null(wrong);
    free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_readers_and_two_writers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
