/* Whose a process is, asked while its shim is being started: a task that is taken for somebody else's stays so. */
#include "node/owners.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file.h"
#include "run/tree.h"
#include "tests/test.h"

static struct {
    pid_t pid;
    _Atomic pid_t thread;
    _Atomic bool is_answered;
    bool is_ours;
    struct owner owner;
} question;

static void *ask(void *arg) {
    question.thread = gettid();
    question.is_ours = owners_of_process(question.pid, &question.owner);
    question.is_answered = true;
    return arg;
}

static bool sleeps(pid_t thread) {
    AUTO(buf_done) struct buf text = {0};
    struct error e;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    const char *end = thread && file_read(path, 4096, &text, &e) >= 0 ? strrchr(text.s, ')') : NULL;
    return end && end[1] == ' ' && end[2] == 'S';
}

static void whoever_asks_meanwhile_waits(void **state) {
    static const char gpu[1][96] = {"GPU-1"};
    struct owner run = {.name = "17.0.1", .title = "early"}, other = {.name = "18.0.1"};
    pthread_t thread;
    owners_put(&run, gpu, 1); /* before it has a shim */
    owners_put(&other, NULL, 0);
    owners_hold();
    pid_t shim = fork();
    if (shim == 0)
        for (;;) pause();
    question.pid = shim;
    assert_int_equal(pthread_create(&thread, NULL, ask, NULL), 0);
    while (!sleeps(question.thread) && !question.is_answered) sched_yield();
    owners_release("17.0.1", shim, tree_ticks(shim));
    pthread_join(thread, NULL);
    assert_true(question.is_ours);
    assert_string_equal(question.owner.name, "17.0.1");
    assert_string_equal(question.owner.title, "early");

    owners_hold(); /* nothing came of it: all is as before */
    owners_release("18.0.1", 0, 0);
    assert_true(owners_find("18.0.1", &other) && other.shim == 0);
    owners_hold();
    owners_release("19.0.1", shim, 1); /* dropped meanwhile */
    assert_false(owners_find("19.0.1", &other));
    assert_true(owners_gives("17.0.1", "GPU-1") && !owners_gives("17.0.1", "GPU-2"));
    owners_drop("17.0.1");
    assert_false(owners_of_process(shim, &run));
    owners_drop("18.0.1");
    kill(shim, SIGKILL);
    waitpid(shim, NULL, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whoever_asks_meanwhile_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
