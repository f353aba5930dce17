/* `gpumgr sim load` and `exec`: processes that use the simulated GPUs. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/gpu_list.h"
#include "client/output.h"
#include "client/programs.h"
#include "client/sim.h"
#include "sim/shm.h"

enum { ARGS_MAX = 24 };

struct load_wish {
    const char *demand, *work, *memory, *kind, *mig, *name, *sim_dir, *dir;
    double for_s;
    bool detach;
};

struct load_args {
    char *argv[ARGS_MAX + 1];
    int n;
};

static void arg(struct load_args *a, const char *flag, const char *value) {
    if (a->n + 2 > ARGS_MAX || !flag) return;
    a->argv[a->n++] = (char *)(uintptr_t)flag;
    if (value) a->argv[a->n++] = (char *)(uintptr_t)value;
}

static void make_args(struct load_args *a, const char *program, const struct load_wish *w, const char *dir,
                      const char *gpu) {
    arg(a, program, NULL);
    arg(a, "--dir", dir);
    arg(a, "--gpu", gpu);
    arg(a, w->demand ? "--demand" : NULL, w->demand);
    arg(a, w->memory ? "--memory" : NULL, w->memory);
    arg(a, w->kind ? "--kind" : NULL, w->kind);
    arg(a, w->mig ? "--mig" : NULL, w->mig);
    arg(a, w->name ? "--name" : NULL, w->name);
    arg(a, w->work ? "--work" : "--forever", w->work);
}

static int report_end(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED; }

/* Waits for the task, but no longer than it may run. A task that we end when its time is over has done well. */
static int attend(pid_t pid, double for_s) {
    int64_t until = clock_boot_ns() + (int64_t)(for_s * 1e9);
    int status;
    while (clock_boot_ns() < until) {
        if (waitpid(pid, &status, WNOHANG) == pid) return report_end(status);
        usleep(5000);
    }
    kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    return EXIT_DONE;
}

/* In the background nobody is there to end it in time, so a keeper of its own stays with it. */
static int run_for(struct load_args *a, double for_s, struct error *e) {
    pid_t pid = fork();
    if (pid < 0) return fail_errno(e, errno, "fork");
    if (pid > 0) return attend(pid, for_s);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    program_exec(a->argv[0], a->argv, e);
    output_note(e->text);
    _exit(EXIT_FAILED);
}

/* In the child: nothing of the terminal is kept, or whoever reads our output would wait for the task. */
static void become_background(struct load_args *a, double for_s, int said_fd) {
    struct error e;
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setsid();
    dup2(null_fd, STDIN_FILENO);
    dup2(said_fd, STDOUT_FILENO);
    dup2(said_fd, STDERR_FILENO);
    if (for_s > 0) _exit(run_for(a, for_s, &e));
    program_exec(a->argv[0], a->argv, &e);
    output_note(e.text);
    _exit(EXIT_FAILED);
}

/* The task's first line says that it began, or why it did not. */
static int detach(struct load_args *a, double for_s, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    int said[2];
    char line[240] = "";
    if (pipe2(said, O_CLOEXEC) < 0) return fail_errno(e, errno, "pipe");
    pid_t pid = fork();
    if (pid == 0) become_background(a, for_s, said[1]);
    close(said[1]);
    AUTO(fd_done) int fd = said[0];
    if (pid < 0) return fail_errno(e, errno, "fork");
    for (size_t n = 0; n + 1 < sizeof line && !strchr(line, '\n');) {
        ssize_t got = read(fd, line + n, sizeof line - 1 - n);
        if (got <= 0) break;
        n += (size_t)got;
    }
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "start ", 6) == 0) {
        buf_printf(&b, "%d\n", (int)pid);
        return output_exit(&b);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    output_note(line);
    return report_end(status) ? report_end(status) : EXIT_FAILED;
}

/* An unknown GPU is bad input, and the simulator's memory says which there are. */
static int check_gpus(const char *dir, const char *list, struct error *e) {
    const struct shm_root *root;
    char item[32];
    int r = shm_open_dir(dir, &root);
    if (r < 0) return fail_errno(e, -r, "%.100s", dir);
    uint32_t count = root->gpu_count;
    shm_close_dir(root);
    for (const char *at = list; (at = gpu_list_next(at, item, sizeof item));) {
        char *end;
        unsigned long index = strtoul(item, &end, 10);
        if (!isdigit((unsigned char)*item) || *end || index >= count)
            return fail(e, -EINVAL, "load: \"%s\" is not a GPU from 0 to %u", item, count - 1);
    }
    return 0;
}

int sim_load(const struct command *self, const struct sim_verb *verb, int argc, char **argv) {
    struct load_wish w = {.dir = ""};
    const struct flag own[] = {
        {.name = "demand",    .kind = FLAG_TEXT,   .into = &w.demand    },
        {.name = "work",      .kind = FLAG_TEXT,   .into = &w.work      },
        {.name = "for",       .kind = FLAG_NUMBER, .into = &w.for_s,      .min = 0.01, .max = 1e7},
        {.name = "memory",         .kind = FLAG_TEXT,                            .into = &w.memory                                 },
        {.name = "kind",  .kind = FLAG_TEXT,.into = &w.kind},
        {.name = "mig",    .kind = FLAG_TEXT,                              .into = &w.mig                                                                      },
        {.name = "name",     .kind = FLAG_TEXT,.into = &w.name},
        {.name = "sim-dir",    .kind = FLAG_TEXT,                             .into = &w.sim_dir                                                                                                     },
        {.name = "dir", .kind = FLAG_TEXT,.into = &w.dir},
        {.name = "detach",     .kind = FLAG_YES,                                 .into = &w.detach                                                                                                                                           },
    };
    struct flags flags;
    struct sim_place place;
    struct load_args args = {0};
    struct error e;
    char program[PATH_MAX];
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_OWN, &flags, &e);
    if (r == 0 && flags.wants_help) return sim_help(verb);
    if (r == 0 && flags.word_count != 1) r = fail(&e, -EINVAL, "load: one GPU is needed (0, or 0,1 for a task on two)");
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    r = sim_find_running(w.sim_dir, w.dir, &place, &e);
    if (r == 0) r = program_find(PROGRAM_GPUSIM_TASK, program, sizeof program, &e);
    if (r < 0) return command_fail(self, &e, EXIT_FAILED);
    r = check_gpus(place.dir, flags.words[0], &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    make_args(&args, program, &w, place.dir, flags.words[0]);
    r = w.detach      ? detach(&args, w.for_s, &e)
        : w.for_s > 0 ? run_for(&args, w.for_s, &e)
                      : program_exec(program, args.argv, &e);
    return r < 0 ? command_fail(self, &e, EXIT_FAILED) : r;
}

static void prepend(const char *variable, const char *what) {
    AUTO(buf_done) struct buf b = {0};
    const char *old = getenv(variable);
    buf_printf(&b, "%s%s%s", what, old && *old ? ":" : "", old ? old : "");
    setenv(variable, b.s, 1);
}

int sim_exec(const struct command *self, const struct sim_verb *verb, int argc, char **argv) {
    struct flags flags;
    struct sim_place place;
    struct error e;
    char library[PATH_MAX];
    int code = sim_begin(self, verb, argc, argv, FLAGS_STOP_AT_WORD, "exec: which program? gpumgr sim exec -- nvtop",
                         &flags, &place);
    if (code != SIM_GOES_ON) return code;
    int r = program_find(PROGRAM_SIM_LIBRARY, library, sizeof library, &e);
    if (r < 0) return command_fail(self, &e, EXIT_FAILED);
    setenv("GPUSIM_DIR", place.dir, 1);
    setenv("GPUMGR_GPU_LIBRARY", library, 1);
    *strrchr(library, '/') = 0;
    prepend("LD_LIBRARY_PATH", library);
    program_exec(flags.words[0], flags.words, &e);
    return command_fail(self, &e, EXIT_INPUT);
}
