/* The sequence words: no reader ever sees half of a write. Run under TSan too. */
#include "tests/test.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/shm.h"

enum { WRITES = 30000, READERS = 3 };

static struct shm_gpu gpu;
static atomic_bool stop;

/* Every word of a state is the number of its write: a copy with two different words is torn. */
static void *write_states(void *arg) {
    static uint64_t words[sizeof(struct shm_state) / 8];
    for (uint64_t n = 1; n <= WRITES; n++) {
        for (size_t i = 0; i < sizeof words / 8; i++) words[i] = n;
        shm_write(&gpu.state_seq, &gpu.state, words, sizeof words);
    }
    atomic_store(&stop, true);
    return arg;
}

static void *read_states(void *arg) {
    long *torn = arg;
    while (!atomic_load(&stop)) {
        uint64_t words[sizeof(struct shm_state) / 8];
        struct shm_state s;
        if (shm_read_state(&gpu, &s) < 0) continue;
        memcpy(words, &s, sizeof s);
        for (size_t i = 1; i < sizeof words / 8; i++) *torn += words[i] != words[0];
    }
    return NULL;
}

static void no_torn_state(void **state) {
    pthread_t writer, reader[READERS];
    long torn[READERS] = {0};
    for (int i = 0; i < READERS; i++) pthread_create(&reader[i], NULL, read_states, &torn[i]);
    pthread_create(&writer, NULL, write_states, NULL);
    pthread_join(writer, NULL);
    for (int i = 0; i < READERS; i++) {
        pthread_join(reader[i], NULL);
        assert_int_equal(torn[i], 0);
    }
}

static void a_dead_writer_does_not_hang_readers(void **state) {
    struct shm_state s = {.temp_c = 41}, got = {0};
    shm_write(&gpu.state_seq, &gpu.state, &s, sizeof s);
    atomic_fetch_add(&gpu.state_seq, 1);
    assert_int_equal(shm_read_state(&gpu, &got), -1);
    assert_int_equal(got.temp_c, 41);
    atomic_fetch_add(&gpu.state_seq, 1);
    assert_int_equal(shm_read_state(&gpu, &got), 0);
}

static void spans(void **state) {
    struct shm_state s = {.temp_c = 41, .power_inst_mw = 5, .limit_mw = 6, .enforced_mw = 7, .energy_mj = 8}, got;
    shm_write(&gpu.state_seq, &gpu.state, &s, sizeof s);
    memset(&got, 0xaa, sizeof got);
    assert_int_equal(SHM_GET(&gpu, power_inst_mw, enforced_mw, &got), 0);
    assert_int_equal(got.power_inst_mw, 5);
    assert_int_equal(got.limit_mw, 6);
    assert_int_equal(got.enforced_mw, 7);
    assert_int_not_equal(got.energy_mj, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_torn_state),
        cmocka_unit_test(a_dead_writer_does_not_hang_readers),
        cmocka_unit_test(spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
