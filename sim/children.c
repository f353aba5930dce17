/* fork, exec, reap. */
#include "sim/children.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "sim/load.h"

int children_init(struct children *c, const char *dir, struct error *e) {
    char self[4000];
    int r = dir_of_self(self, sizeof self, e);
    if (r < 0) return r;
    snprintf(c->program, sizeof c->program, "%s/gpusim-task", self);
    snprintf(c->dir, sizeof c->dir, "%s", dir);
    if (access(c->program, X_OK) < 0) return fail_errno(e, errno, "%s", c->program);
    return 0;
}

struct words {
    const char *argv[64];
    char text[64][32];
    int n;
};

static void add_word(struct words *w, const char *s) { w->argv[w->n++] = s; }

PRINTF(3, 4) static void add_pair(struct words *w, const char *option, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->text[w->n + 1], sizeof w->text[0], fmt, ap);
    va_end(ap);
    add_word(w, option);
    w->argv[w->n] = w->text[w->n];
    w->n++;
}

static void words_of(struct words *w, const struct wire_task *ask, const char *title) {
    add_word(w, title);
    add_word(w, "--quiet");
    add_pair(w, "--name", "%.31s", title);
    for (uint32_t i = 0, given = 0; i < SHM_GPUS_MAX && given < 16; i++)
        if (ask->gpus >> i & 1) {
            add_pair(w, "--gpu", "%u", i);
            given++;
        }
    add_pair(w, "--memory", "%llu", (unsigned long long)ask->memory_bytes);
    add_pair(w, "--demand", "%.6f", ask->demand);
    add_pair(w, "--kind", "%s", kinds[ask->kind].name);
    if (isfinite(ask->work_s))
        add_pair(w, "--work", "%.6f", ask->work_s);
    else
        add_word(w, "--forever");
    if (ask->mig < SHM_MIG_MAX) add_pair(w, "--mig", "%u", ask->mig);
    if (ask->is_mps) add_word(w, "--mps");
    w->argv[w->n] = NULL;
}

__attribute__((noreturn)) static void become(const struct children *c, const struct words *w, pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
    }
    setenv("GPUSIM_DIR", c->dir, 1);
    execv(c->program, (char *const *)(uintptr_t)w->argv);
    _exit(127);
}

int children_start(struct children *c, const struct wire_task *ask, const char *title, int by_hand, struct error *e) {
    struct child *slot = NULL;
    for (int i = 0; i < CHILDREN_MAX && !slot; i++)
        if (c->child[i].pid == 0) slot = &c->child[i];
    if (!slot) return fail(e, -EAGAIN, "%d tasks run already", CHILDREN_MAX);

    struct words w = {0};
    words_of(&w, ask, title);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) return fail_errno(e, errno, "start %s", c->program);
    if (pid == 0) become(c, &w, parent);
    *slot = (struct child){.pid = pid, .gpus = ask->gpus, .by_hand = by_hand};
    return pid;
}

int children_stop(struct children *c, uint32_t gpu) {
    int n = 0;
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *k = &c->child[i];
        if (!k->pid || !k->by_hand || (gpu != UINT32_MAX && !(k->gpus >> gpu & 1))) continue;
        kill(k->pid, SIGTERM);
        n++;
    }
    return n;
}

void children_reap(struct children *c) {
    for (int i = 0; i < CHILDREN_MAX; i++) {
        pid_t pid = c->child[i].pid;
        if (pid && waitpid(pid, NULL, WNOHANG) == pid) c->child[i].pid = 0;
    }
}

void children_done(struct children *c) {
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (c->child[i].pid) kill(c->child[i].pid, SIGKILL);
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (c->child[i].pid) waitpid(c->child[i].pid, NULL, 0);
        c->child[i].pid = 0;
    }
}

bool children_has(const struct children *c, pid_t pid) {
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (pid && c->child[i].pid == pid) return true;
    return false;
}
