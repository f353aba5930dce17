/* `gpumgr sim start` and `stop`: a gpusim in the background. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/output.h"
#include "client/programs.h"
#include "client/sim.h"
#include "sim/shm.h"

enum { ARGS_MAX = 24, START_MS = 10000, STOP_MS = 5000 };

struct start_wish {
    const char *gpus, *model, *speed, *seed, *ambient, *shared_air, *sim_dir;
    bool day, costs, mig, foreground, models;
};

struct start_args {
    char *argv[ARGS_MAX + 1];
    int n;
};

/* execv takes char *const[] but changes nothing. */
static void arg(struct start_args *a, const char *s) {
    if (a->n < ARGS_MAX) a->argv[a->n++] = (char *)(uintptr_t)s;
}

static void pair(struct start_args *a, const char *flag, const char *value) {
    if (!value) return;
    arg(a, flag);
    arg(a, value);
}

static void make_args(struct start_args *a, const char *program, const struct start_wish *w, const char *dir) {
    arg(a, program);
    pair(a, "--dir", dir);
    pair(a, "--model", w->model);
    pair(a, "--gpus", !w->gpus && !w->model ? "8" : w->gpus);
    pair(a, "--speed", w->speed);
    pair(a, "--seed", w->seed);
    pair(a, "--ambient", w->ambient);
    pair(a, "--shared-air", w->shared_air);
    if (w->day) arg(a, "--day");
    if (w->costs) arg(a, "--costs");
    if (w->mig) arg(a, "--mig");
    if (w->models) arg(a, "--models");
}

/* In the child: a session of its own, so that the terminal's end is not its end. */
static void become_gpusim(int answer_fd, struct start_args *a) {
    struct error e;
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setsid();
    dup2(null_fd, STDIN_FILENO);
    dup2(answer_fd, STDOUT_FILENO);
    dup2(answer_fd, STDERR_FILENO);
    program_exec(a->argv[0], a->argv, &e);
    dprintf(STDERR_FILENO, "%s\n", e.text);
    _exit(1);
}

/* Its first line: either that it is there, or why not. */
static int first_line(int fd, char *ret, size_t room) {
    size_t n = 0;
    ret[0] = 0;
    int64_t until = clock_boot_ns() + START_MS * NS_PER_MS;
    while (n + 1 < room && !strchr(ret, '\n')) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int left_ms = (int)((until - clock_boot_ns()) / NS_PER_MS);
        if (left_ms <= 0 || poll(&p, 1, left_ms) <= 0) return -ETIMEDOUT;
        ssize_t got = read(fd, ret + n, room - 1 - n);
        if (got <= 0) break;
        ret[n += (size_t)got] = 0;
    }
    ret[strcspn(ret, "\n")] = 0;
    return 0;
}

static int start_detached(struct start_args *a, struct error *e) {
    int answer[2];
    char line[240];
    if (pipe2(answer, O_CLOEXEC) < 0) return fail_errno(e, errno, "pipe");
    pid_t pid = fork();
    if (pid == 0) become_gpusim(answer[1], a);
    close(answer[1]);
    AUTO(fd_done) int fd = answer[0];
    if (pid < 0) return fail_errno(e, errno, "fork");
    if (first_line(fd, line, sizeof line) < 0) {
        kill(pid, SIGKILL);
        return fail(e, -ETIMEDOUT, "gpusim did not start within %d s", START_MS / 1000);
    }
    int status;
    bool has_ended = waitpid(pid, &status, WNOHANG) == pid;
    if (!has_ended && strncmp(line, "gpusim: ", 8) == 0 && strstr(line, " in ")) return 0;
    if (!has_ended) waitpid(pid, &status, 0);
    bool is_input = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_INPUT;
    return fail(e, is_input ? -EINVAL : -EIO, "%s", *line ? line : "gpusim ended at once");
}

static int say_how(const char *dir) {
    AUTO(buf_done) struct buf b = {0};
    buf_printf(&b,
               "Simulated GPUs run in %s.\n\n"
               "  gpumgr sim list                  what they do\n"
               "  gpumgr sim load 0 --for 60       a task on GPU 0\n"
               "  gpumgr sim exec -- gpumgr up     watch them with gpumgr (or with any NVML program)\n"
               "  gpumgr sim stop                  end them\n",
               dir);
    return output_exit(&b);
}

int sim_start(const struct command *self, const struct sim_verb *verb, int argc, char **argv) {
    struct start_wish w = {0};
    const struct flag own[] = {
        {.name = "gpus",       .kind = FLAG_TEXT, .into = &w.gpus      },
        {.name = "model",      .kind = FLAG_TEXT, .into = &w.model     },
        {.name = "speed",      .kind = FLAG_TEXT, .into = &w.speed     },
        {.name = "seed",       .kind = FLAG_TEXT, .into = &w.seed      },
        {.name = "ambient",    .kind = FLAG_TEXT, .into = &w.ambient   },
        {.name = "shared-air", .kind = FLAG_TEXT, .into = &w.shared_air},
        {.name = "sim-dir",    .kind = FLAG_TEXT, .into = &w.sim_dir   },
        {.name = "day",        .kind = FLAG_YES,  .into = &w.day       },
        {.name = "costs",      .kind = FLAG_YES,  .into = &w.costs     },
        {.name = "mig",        .kind = FLAG_YES,  .into = &w.mig       },
        {.name = "models",     .kind = FLAG_YES,  .into = &w.models    },
        {.name = "foreground", .kind = FLAG_YES,  .into = &w.foreground},
    };
    struct flags flags;
    struct error e;
    char program[PATH_MAX], dir[PATH_MAX];
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_OWN, &flags, &e);
    if (r == 0 && flags.wants_help) return sim_help(verb);
    if (r == 0) r = flags_no_words(&flags, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    shm_default_dir(dir, sizeof dir);
    if (w.sim_dir) snprintf(dir, sizeof dir, "%s", w.sim_dir);
    struct start_args args = {0};
    r = program_find(PROGRAM_GPUSIM, program, sizeof program, &e);
    if (r < 0) return command_fail(self, &e, EXIT_FAILED);
    make_args(&args, program, &w, dir);
    if (w.foreground || w.models) {
        program_exec(program, args.argv, &e);
        return command_fail(self, &e, EXIT_FAILED);
    }
    r = start_detached(&args, &e);
    return r < 0 ? command_fail(self, &e, error_exit_code(r)) : say_how(dir);
}

static int stop(const struct sim_place *p, struct error *e) {
    const struct shm_root *root;
    if (p->of_instance) return fail(e, -EINVAL, "these simulated GPUs belong to a running gpumgr; they end with it");
    int r = shm_open_dir(p->dir, &root);
    if (r < 0) return fail_errno(e, -r, "%.100s", p->dir);
    pid_t pid = (pid_t)root->pid;
    shm_close_dir(root);
    if (kill(pid, SIGTERM) < 0) return fail_errno(e, errno, "end gpusim (pid %d)", (int)pid);
    for (int ms = 0; ms < STOP_MS; ms += 10) {
        if (kill(pid, 0) < 0) return 0;
        usleep(10000);
    }
    return fail(e, -ETIMEDOUT, "gpusim (pid %d) was told to end and still runs", (int)pid);
}

int sim_stop(const struct command *self, const struct sim_verb *verb, int argc, char **argv) {
    struct flags flags;
    struct sim_place place;
    struct error e;
    int code = sim_begin(self, verb, argc, argv, FLAGS_OWN, "", &flags, &place);
    if (code != SIM_GOES_ON) return code;
    int r = stop(&place, &e);
    return r < 0 ? command_fail(self, &e, r == -EINVAL ? EXIT_INPUT : EXIT_FAILED) : EXIT_DONE;
}
