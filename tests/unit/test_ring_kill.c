/* Many readers while writers are killed with SIGKILL at random moments, as processes: each writer adopts what the one
 * before left. No reader may ever see a torn or invented value, and nothing is lost but the moment of death.
 * Built with ring.c inside, to count how many deaths left something half-written: without any the test proves nothing. */
#include "tests/test.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shm.h"
#include "model/ring.c"
#include "tests/unit/ring_pattern.h"

#define SLOTS 16u
#define KILLS 300
#define READERS 4

static struct inventory cards[PATTERN_DEVICES];
static const struct ring_spec spec = {.devices = PATTERN_DEVICES, .slots = SLOTS, .inventory = cards};

/* What the processes of the test tell each other beside the ring. */
static struct shared {
    _Atomic bool stop;
    _Atomic uint64_t round; /* begun by a writer: no reader may see a later one */
    _Atomic uint64_t whole[READERS], gone[READERS];
} * shared;

static pid_t start(void (*body)(int fd, size_t size, int which), int fd, size_t size, int which) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(fd, size, which);
        _exit(0);
    }
    return pid;
}

static struct ring map_ring(int fd, size_t size, int prot) {
    struct ring r;
    struct error e;
    void *mem = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
    if (mem == MAP_FAILED || ring_attach(&r, mem, size, &e) < 0) _exit(9);
    return r;
}

static void writer(int fd, size_t size, int which) {
    struct ring r = map_ring(fd, size, PROT_READ | PROT_WRITE);
    if (!ring_adopt(&r, &spec, (uint32_t)getpid(), clock_boot_ns())) _exit(8);
    for (;;) {
        uint64_t round = atomic_fetch_add(&shared->round, 1) + 1;
        pattern_write_round(&r, round);
        shm_wake(ring_bell(&r));
    }
}

/* Everything of one device, one thing after the other; what it must be follows from what was seen before. */
static const char *look(const struct ring *r, uint32_t d, uint64_t newest[4], int which) {
    struct sample s;
    struct latest l;
    struct ring_state st;
    struct ring_processes p;
    uint64_t head = ring_head(r, d), v;
    if (head < newest[0]) return "the head went back";
    newest[0] = head;
    for (uint64_t n = head > SLOTS ? head - SLOTS : 1; n <= head; n++) { /* the first is being overwritten */
        if (!ring_sample(r, d, n, &s)) {
            atomic_fetch_add(&shared->gone[which], 1);
            continue;
        }
        if (check_sample(&s, d) != n) return "torn sample";
        atomic_fetch_add(&shared->whole[which], 1);
    }
#define SEEN(read, check, i, what)                                                                                     \
    if (read) {                                                                                                        \
        v = (check);                                                                                                   \
        if (v == PATTERN_TORN) return "torn " what;                                                                    \
        if (v < newest[i]) return "a " what " went back";                                                              \
        if (v > atomic_load(&shared->round)) return "an invented " what;                                               \
        newest[i] = v;                                                                                                 \
        atomic_fetch_add(&shared->whole[which], 1);                                                                    \
    }
    SEEN(ring_latest(r, d, &l), check_latest(&l, d), 1, "latest")
    SEEN(ring_state(r, d, &st), check_state(&st, d), 2, "state")
    SEEN(ring_processes(r, d, &p), check_processes(&p, d), 3, "process list")
#undef SEEN
    return NULL;
}

static const char *look_at_events(const struct ring *r) {
    struct event ev;
    uint64_t head = ring_event_head(r);
    for (uint64_t n = head > 8 ? head - 8 : 1; n <= head; n++)
        if (ring_event(r, n, &ev) && check_event(&ev, 0) != n) return "torn event";
    return NULL;
}

static void reader(int fd, size_t size, int which) {
    struct ring r = map_ring(fd, size, PROT_READ);
    uint64_t newest[PATTERN_DEVICES][4] = {0};
    while (!atomic_load(&shared->stop)) {
        for (uint32_t d = 0; d < PATTERN_DEVICES; d++) {
            const char *wrong = look(&r, d, newest[d], which);
            if (!wrong) wrong = look_at_events(&r);
            if (!wrong) continue;
            fprintf(stderr, "reader %d, device %u: %s\n", which, d, wrong);
            _exit(1);
        }
    }
}

static bool is_torn(const word *twin, size_t words) {
    return atomic_load(&twin[0]) != atomic_load(&twin[1 + words]) || atomic_load(&twin[0]) & 1;
}

static bool a_twin_is_torn(const struct ring *r) {
    bool torn = is_torn(r->h->driver, WORDS(struct ring_driver));
    for (uint32_t d = 0; d < PATTERN_DEVICES; d++) {
        const struct device_block *b = block(r, d);
        torn |= is_torn(b->state, WORDS(struct ring_state)) || is_torn(b->latest, WORDS(struct latest)) ||
                is_torn(b->processes, WORDS(struct ring_processes)) || is_torn(b->xids, WORDS(struct ring_xids));
    }
    return torn;
}

/* The entry after the newest: a reader takes it for gone, an heir leaves it as it is, and the next one overwrites it. */
static bool an_entry_is_torn(const struct ring *r) {
    bool torn = false;
    for (uint32_t d = 0; d < PATTERN_DEVICES; d++)
        torn |= atomic_load(&block(r, d)->slot[ring_head(r, d) % SLOTS * SAMPLE_SLOT_WORDS]) & 1;
    return torn;
}

/* A writer that works until a random moment, or that is killed while it is still adopting. */
static void one_life(const struct ring *r, int fd, size_t size, int life) {
    uint32_t bell = atomic_load(ring_bell(r));
    pid_t pid = start(writer, fd, size, 0);
    if (life % 3)
        while (atomic_load(ring_bell(r)) == bell) shm_wait(ring_bell(r), bell, NS_PER_S);
    int64_t until = clock_boot_ns() + rand() % 400 * NS_PER_US;
    while (clock_boot_ns() < until) {}
    kill(pid, SIGKILL);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void writers_are_killed_all_the_time(void **state) {
    pattern_inventory(cards);
    size_t size = ring_size(PATTERN_DEVICES, SLOTS);
    int fd = memfd_create("ring", MFD_CLOEXEC);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(mem != MAP_FAILED && shared != MAP_FAILED);
    struct ring r;
    ring_format(&r, mem, &spec, 0, 1);

    pid_t readers[READERS];
    for (int i = 0; i < READERS; i++) readers[i] = start(reader, fd, size, i);
    uint64_t heads[PATTERN_DEVICES] = {0};
    int twins = 0, entries = 0;
    int life = 0; /* more of them where the scheduler likes to take the processor between two rounds */
    for (; life < KILLS || (twins + entries == 0 && life < 10 * KILLS); life++) {
        one_life(&r, fd, size, life);
        twins += a_twin_is_torn(&r);
        entries += an_entry_is_torn(&r);
        const char *wrong = pattern_read(&r, 0, atomic_load(&shared->round));
        if (wrong) print_error("after life %d: %s\n", life, wrong);
        assert_null(wrong);
        for (uint32_t d = 0; d < PATTERN_DEVICES; d++) {
            assert_true(ring_head(&r, d) >= heads[d]);
            heads[d] = ring_head(&r, d);
        }
    }
    for (int i = 0; i < READERS; i++) /* one that got no processor so far still has the last values to see */
        while (atomic_load(&shared->whole[i]) == 0 && waitpid(readers[i], NULL, WNOHANG) == 0) sched_yield();
    atomic_store(&shared->stop, true);
    for (int i = 0; i < READERS; i++) {
        int status;
        assert_int_equal(waitpid(readers[i], &status, 0), readers[i]);
        assert_int_equal(status, 0);
        assert_true(atomic_load(&shared->whole[i]) > 0);
    }
    print_message("# of %d deaths %d left a half-written value and %d a half-written entry, after %llu rounds\n", life,
                  twins, entries, (unsigned long long)atomic_load(&shared->round));
    assert_true(twins + entries > 0);

    assert_true(ring_adopt(&r, &spec, 1, 1)); /* and the last heir finds every value in order, and goes on */
    assert_false(a_twin_is_torn(&r));
    pattern_write_round(&r, atomic_fetch_add(&shared->round, 1) + 1);
    assert_false(a_twin_is_torn(&r) || an_entry_is_torn(&r));
    assert_null(pattern_read(&r, 0, atomic_load(&shared->round)));
    munmap(mem, size);
    munmap(shared, sizeof *shared);
    close(fd);
}

int main(void) {
    srand((unsigned)clock_real_ns());
    const struct CMUnitTest tests[] = {cmocka_unit_test(writers_are_killed_all_the_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
