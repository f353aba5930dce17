#include "node/notices.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/thread.h"
#include "model/wire_notice.h"
#include "node/jobs_own.h"
#include "node/seal.h"
#include "node/terminal.h"
#include "run/become.h"
#include "run/order.h"

#define STACK_BYTES (256 * 1024)
#define AT_ONCE 16
#define COMMAND_NS (60 * NS_PER_S)
#define LOOK_MS 20
#define ORDER_FD 3

struct notice {
    uint64_t id; /* 0: nobody asked */
    uint32_t uid;
    char text[220];
    int order; /* a memory file; -1: a word for his terminals */
};

static atomic_uint under_way;

static void answer(uint64_t id, int result, const char *text) {
    struct wire_noticed n = {.id = id, .result = result};
    snprintf(n.text, sizeof n.text, "%.150s", text);
    wire_put_noticed(jobs_say_begin(), &n);
    jobs_say_end();
}

int notices_admit(const struct job_spec *s, bool may_command, struct error *e) {
    for (const char *word = NULL; (word = job_word_next(&s->notify, word));)
        if (strncmp(word, "command:", 8) == 0 && !may_command)
            return fail(e, -EPERM, "notify: commands are not run here (jobs.notify_command is off)");
    return 0;
}

/* ---- a command ---- */

static void add_word(struct buf *b, unsigned *count, const char *key, const char *value) {
    buf_printf(b, "%s%s", key, value);
    buf_add(b, "", 1);
    ++*count;
}

/* What the job's owner has around him, and what happened. */
static int command_order(const struct wire_notice *n, const struct seal_context *c, const char *command,
                         struct error *e) {
    AUTO(buf_done) struct buf env = {0}, argv = {0}, bytes = {0};
    unsigned variables = 0, words = 0;
    char job[24];
    for (const char *at = NULL; (at = job_word_next(&c->environment, at));) add_word(&env, &variables, at, "");
    snprintf(job, sizeof job, "%lld", (long long)n->job);
    add_word(&env, &variables, "GPUMGR_JOB_ID=", job);
    add_word(&env, &variables, "GPUMGR_EVENT=", n->kind);
    add_word(&env, &variables, "GPUMGR_TEXT=", n->text);
    add_word(&argv, &words, "/bin/sh", "");
    add_word(&argv, &words, "-c", "");
    add_word(&argv, &words, command, "");
    struct order o = {
        .uid = c->uid,
        .gid = c->gid,
        .umask = c->umask,
        .becomes = geteuid() == 0,
        .groups = c->groups,
        .group = c->group,
        .log_max = ORDER_LOG_LEAST,
        .cwd = c->cwd,
        .cgroup = "",
        .argv = {argv.s, argv.len, words    },
        .env = {env.s,  env.len,  variables}
    };
    order_encode(&o, &bytes);
    AUTO(fd_done) int fd = memfd_create("order", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes.s, bytes.len) != (ssize_t)bytes.len || lseek(fd, 0, SEEK_SET) < 0)
        return fail_errno(e, errno, "memory for an order");
    int taken = fd;
    fd = -1;
    return taken;
}

static int spawn(int order, pid_t *ret, struct error *e) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    char number[8], word[] = "say", *argv[] = {jobs_own.starting.node, word, number, NULL}, *env[] = {NULL};
    snprintf(number, sizeof number, "%d", ORDER_FD);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&files, order, ORDER_FD);
    posix_spawn_file_actions_addclosefrom_np(&files, ORDER_FD + 1);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    posix_spawnattr_setsigmask(&how, &none);
    int r = posix_spawn(ret, argv[0], &files, &how, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return r ? fail_errno(e, r, "%s", argv[0]) : 0;
}

/* One that hangs is ended with all that it started in its session's first group. */
static int run_command(int order, struct error *e) {
    int64_t until_ns = clock_boot_ns() + COMMAND_NS;
    pid_t pid;
    int status, r = spawn(order, &pid, e);
    if (r < 0) return r;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_boot_ns() > until_ns) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            return fail(e, -EIO, "his command did not end within %lld s", (long long)(COMMAND_NS / NS_PER_S));
        }
        poll(NULL, 0, LOOK_MS);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    return fail(e, -EIO, "his command ended with %s %d", WIFSIGNALED(status) ? "signal" : "code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int notices_say(const char *number) {
    AUTO(buf_done) struct buf bytes = {0};
    struct order o;
    struct error e;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", atoi(number));
    if (file_read(path, ORDER_MAX, &bytes, &e) < 0 || order_decode(bytes.s, bytes.len, &o, &e) < 0) return 125;
    close(atoi(number));
    char **argv = order_vector(&o.argv), **env = order_vector(&o.env);
    if (!argv || !env || run_become(&o)) return 126;
    umask((mode_t)o.umask & 0777);
    if (chdir(o.cwd) < 0 && chdir("/") < 0) return 126;
    for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);
    execve(argv[0], argv, env);
    return 127;
}

/* ---- each on a thread of its own ---- */

static void *say(void *arg) {
    struct notice *n = arg;
    struct error e = {0};
    int r = 0;
    CRASH_POINT();
    if (n->order >= 0)
        r = run_command(n->order, &e);
    else if (terminal_tell(n->uid, n->text) == 0)
        r = fail(&e, -EAGAIN, "he sits at no terminal now");
    CRASH_POINT();
    if (n->id) answer(n->id, r, e.text);
    if (n->order >= 0) close(n->order);
    free(n);
    atomic_fetch_sub(&under_way, 1);
    return NULL;
}

static int start(struct notice *n, struct error *e) {
    atomic_fetch_add(&under_way, 1);
    if (thread_start(say, n, STACK_BYTES, "a notice", e) >= 0) return 0;
    atomic_fetch_sub(&under_way, 1);
    if (n->order >= 0) close(n->order);
    free(n);
    return fail(e, -EAGAIN, "it could not be begun");
}

static struct notice *notice_new(uint64_t id, uint32_t uid, const char *text) {
    struct notice *n = calloc(1, sizeof *n);
    if (!n) abort();
    *n = (struct notice){.id = id, .uid = uid, .order = -1};
    snprintf(n->text, sizeof n->text, "gpumgr: %s", text);
    return n;
}

void notices_word(uint32_t uid, const char *text) {
    struct error e;
    if (atomic_load(&under_way) < AT_ONCE && start(notice_new(0, uid, text), &e) < 0) return;
}

static int begin(const struct wire_notice *w, const struct seal_context *c, const char *word, struct error *e) {
    bool is_command = strcmp(word, "terminal") != 0;
    int order = is_command ? command_order(w, c, word + strlen("command:"), e) : -1;
    if (is_command && order < 0) return order;
    struct notice *n = notice_new(w->id, c->uid, w->text);
    n->order = order;
    return start(n, e);
}

void notices_take(const struct wire_frame *f) {
    static struct wire_notice n;
    AUTO(buf_done) struct buf plain = {0};
    struct seal_context c;
    struct job_spec spec;
    struct error e = {0};
    const char *word = NULL;
    int r = wire_get_notice(f, &n, &e);
    if (r < 0) return;
    r = seal_break(&n.sealed, &plain, &c, &e);
    if (r >= 0) r = job_decode(n.sealed.record, n.sealed.record_len, &spec, &e);
    if (r >= 0) r = notices_admit(&spec, jobs_own.settings.jobs_notify_command, &e);
    for (unsigned i = 0; r >= 0 && i <= n.word && (word = job_word_next(&spec.notify, word)); i++) continue;
    if (r >= 0 && (!word || (strcmp(word, "terminal") != 0 && strncmp(word, "command:", 8) != 0)))
        r = fail(&e, -EINVAL, "the job asks for no such word");
    if (r >= 0 && geteuid() != 0 && c.uid != geteuid()) r = fail(&e, -EPERM, "gpumgr is not root here");
    if (r >= 0 && atomic_load(&under_way) >= AT_ONCE) r = fail(&e, -EAGAIN, "too many are spoken to");
    if (r >= 0 && word) r = begin(&n, &c, word, &e);
    if (r < 0) answer(n.id, r, e.text);
}
