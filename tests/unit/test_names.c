/* Who a pid is: asked once, kept while the process lives, and never waited for. What looks at /proc is this test's own, so
 * that it can hang. */
#include "tests/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/names.h"
#include "node/person.h"

static _Atomic unsigned asked;
static _Atomic uint32_t stuck_pid;
static _Atomic bool is_stuck;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: whoever looks at stuck_pid does not come back */

void person_read(struct person *p, const char *proc, uint32_t pid) {
    if (pid == stuck_pid) {
        is_stuck = true;
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    }
    *p = (struct person){.uid = 1000, .start_boot_ns = pid, .user = strdup("ann"), .command = strdup("train --fast")};
    strcpy(p->comm, "train");
    asked++;
}

char *person_user(uint32_t uid) { return uid == 1001 ? strdup("ben") : NULL; }

void person_done(struct person *p) {
    free(p->user);
    free(p->command);
    *p = (struct person){.uid = UINT32_MAX};
}

static pid_t sleeper(void) {
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) pause();
    }
    return pid;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static struct wire_process look(pid_t pid, int64_t now_ns) {
    struct wire_process p = {.of = {.pid = (uint32_t)pid}};
    memset(p.user, 'x', sizeof p.user - 1); /* of an earlier one: must not stay */
    names_look(&p, now_ns);
    return p;
}

#define SOON(condition)                                                                                                \
    for (int64_t until_ns = clock_boot_ns() + 60 * NS_PER_S; !(condition);) {                                          \
        assert_true(clock_boot_ns() < until_ns);                                                                       \
        clock_sleep_until(clock_boot_ns() + NS_PER_MS);                                                                \
    }

/* A later list has the name. */
static struct wire_process named(pid_t pid) {
    struct wire_process p;
    for (int64_t until_ns = clock_boot_ns() + 60 * NS_PER_S; clock_boot_ns() < until_ns;) {
        p = look(pid, clock_boot_ns());
        if (p.uid != UINT32_MAX) return p;
        clock_sleep_until(clock_boot_ns() + NS_PER_MS);
    }
    fail_msg("pid %d has no name", (int)pid);
    return p;
}

static void a_name_comes_later_and_is_kept(void **state) {
    pid_t pid = sleeper();
    uint32_t version = names_version();
    struct wire_process first = look(pid, clock_boot_ns());
    assert_true(first.user[0] == 0 || first.uid == 1000); /* the thread may have been quick */
    struct wire_process p = named(pid);
    assert_string_equal(p.user, "ann");
    assert_string_equal(p.comm, "train");
    assert_string_equal(p.command, "train --fast");
    assert_int_equal(p.start_boot_ns, pid);
    assert_true(names_version() != version);
    unsigned before = asked;
    for (int i = 0; i < 100; i++) {
        names_tidy(clock_boot_ns() + i * NS_PER_S / 4);
        (void)look(pid, clock_boot_ns() + i * NS_PER_S / 4);
    }
    assert_int_equal(asked, before); /* a pidfd says that it is the same */
    end(pid);
}

static void who_is_gone_is_forgotten(void **state) {
    pid_t pid = sleeper();
    (void)named(pid);
    unsigned before = asked;
    uint32_t version = names_version();
    end(pid);
    names_tidy(clock_boot_ns());
    (void)look(pid, clock_boot_ns()); /* perhaps another process by now */
    SOON(names_version() != version)
    assert_true(look(pid, clock_boot_ns()).uid == UINT32_MAX); /* it was asked for, and is not there */
    assert_int_equal(asked, before);
}

static void one_that_cannot_be_looked_at_keeps_nobody_waiting(void **state) {
    pid_t stuck = sleeper(), other = sleeper();
    stuck_pid = (uint32_t)stuck;
    pthread_mutex_lock(&gate);
    (void)look(stuck, clock_boot_ns());
    SOON(is_stuck)
    (void)look(other, clock_boot_ns() + 5 * NS_PER_S); /* five seconds later another thread does it */
    struct wire_process p = named(other);
    assert_string_equal(p.user, "ann");
    for (int i = 0; i < 100; i++) { /* and no thread is lost to it again, however often it is listed */
        p = look(stuck, clock_boot_ns() + i * NS_PER_S); /* nobody is looked at now: no thread can be late */
        assert_true(p.uid == UINT32_MAX);
    }
    pid_t third = sleeper();
    assert_string_equal(named(third).user, "ann");
    unsigned before = asked;
    pthread_mutex_unlock(&gate); /* the lost thread comes back, and what it found is dropped */
    SOON(asked != before)
    assert_true(look(stuck, clock_boot_ns()).uid == UINT32_MAX);
    assert_string_equal(named(third).user, "ann");
    stuck_pid = 0;
    end(stuck);
    end(other);
    end(third);
}

static void many(void **state) {
    static struct wire_process p;
    names_tidy(clock_boot_ns() + 200 * NS_PER_S); /* all that is known is old: it is empty */
    uint32_t version = names_version();
    for (uint32_t pid = 1000000; pid < 1006000; pid++) { /* more than are kept; none of them exists */
        p.of.pid = pid + 4000000;
        names_look(&p, clock_boot_ns());
    }
    pid_t pid = sleeper();
    SOON(names_version() - version == 4096) /* each that was kept was asked for */
    assert_true(look(pid, clock_boot_ns()).uid == UINT32_MAX);
    names_tidy(clock_boot_ns() + 200 * NS_PER_S);
    assert_string_equal(named(pid).user, "ann"); /* there is room again */
    end(pid);
}

static void user_is(uint32_t uid, const char *want) {
    char user[64] = "";
    SOON(names_user(uid, user, sizeof user))
    assert_string_equal(user, want);
}

/* Whose process it was is known when nobody ever looked at it. More users than there is room for: the last are there. */
static void users_have_names_of_their_own(void **state) {
    char user[64] = "";
    assert_false(names_user(1001, user, sizeof user));
    user_is(1001, "ben");
    assert_true(names_user(1001, user, sizeof user));
    user_is(4711, ""); /* nobody */
    pid_t pid = sleeper();
    named(pid);
    assert_true(names_user(1000, user, sizeof user)); /* learnt with a process of his */
    assert_string_equal(user, "ann");
    end(pid);
    for (uint32_t uid = 5000; uid < 5200; uid++) user_is(uid, "");
    user_is(1001, "ben");
}

int main(void) {
    names_init("/proc");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_comes_later_and_is_kept),
        cmocka_unit_test(users_have_names_of_their_own),
        cmocka_unit_test(who_is_gone_is_forgotten),
        cmocka_unit_test(one_that_cannot_be_looked_at_keeps_nobody_waiting),
        cmocka_unit_test(many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
