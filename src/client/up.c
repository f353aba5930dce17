/* `gpumgr up`, `gpumgr node` and `gpumgr server`: check everything that can be wrong, then become the supervisor (gpumgr-core). Until
 * that last step nothing is started and nothing is left behind but the instance's directory. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/instance.h"
#include "client/cards_check.h"
#include "client/command.h"
#include "client/output.h"
#include "client/programs.h"
#include "client/server_check.h"
#include "client/settings_load.h"
#include "client/sim.h"
#include "client/surroundings.h"

static int refuse_second_start(const struct instance *i, struct error *e) {
    pid_t pid = instance_holder(i);
    if (!pid) return 0;
    return fail(e, -EBUSY, "dir: %.120s: gpumgr already runs there (pid %d); stop it or give another --dir", i->dir,
                (int)pid);
}

/* Before anything is made: somebody may be running there already. */
static int check_running(const struct settings *s, struct error *e) {
    char dir[PATH_MAX];
    struct instance i;
    struct error ignored;
    snprintf(dir, sizeof dir, "%s", s->dir);
    if (!*dir && instance_default_dir(dir, sizeof dir, e) < 0) return e->code;
    if (instance_find(dir, &i, &ignored) < 0) return 0;
    return refuse_second_start(&i, e);
}

/* The simulator would refuse an unknown model, too, but only once we have become the supervisor. */
static int check_simulation(const struct loaded *l, struct error *e) {
    const struct option *o = option_find(settings_table, settings_count, "sim_model");
    const char *from = l->of[o - settings_table].from;
    if (!l->values.sim) return 0;
    int r = sim_check_models(l->values.sim_model, e);
    return r < 0 && *from ? fail_in(e, r, "%.100s", from) : r;
}

/* What the supervisor reads, at an inherited descriptor: no file to clean up, no limit of the command line. */
static int hand_over(const struct settings *s, int *ret_fd, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    AUTO(fd_done) int fd = memfd_create("gpumgr-settings", 0);
    if (fd < 0) return fail_errno(e, errno, "memfd_create");
    settings_encode(s, &text);
    if (write(fd, text.s, text.len) != (ssize_t)text.len || lseek(fd, 0, SEEK_SET) != 0)
        return fail_errno(e, errno, "write the settings");
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static int become_supervisor(const char *role, const struct settings *s, int argc, char **argv, struct error *e) {
    char core[PATH_MAX], self[PATH_MAX], fd_text[16];
    int fd = -1, n = 0;
    int r = program_find(PROGRAM_CORE, core, sizeof core, e);
    if (r == 0) r = program_self(self, sizeof self, e);
    if (r == 0) r = hand_over(s, &fd, e);
    if (r < 0) return r;
    snprintf(fd_text, sizeof fd_text, "%d", fd);
    char **args = calloc((size_t)argc + 6, sizeof *args);
    if (!args) abort();
    char supervise[] = "supervise", name[16];
    snprintf(name, sizeof name, "%s", role);
    args[n++] = core;
    args[n++] = supervise;
    args[n++] = name;
    args[n++] = fd_text;
    args[n++] = self;
    for (int i = 1; i < argc; i++) args[n++] = argv[i];
    r = program_exec(core, args, e);
    free(args);
    return r;
}

static void say_what_lacks(void) {
    struct surroundings s = surroundings_look();
    const char *lacks[SURROUNDINGS_LACKS_MAX];
    char line[200];
    size_t n = surroundings_lacks(&s, lacks);
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof line, "gpumgr: in this container: %s", lacks[i]);
        output_note(line);
    }
}

/* The programs of a role, and what each could be kept from by what is set. */
static int check_role(const char *role, const struct loaded *l, struct error *e) {
    char path[PATH_MAX];
    bool has_node = strcmp(role, "server") != 0, has_server = strcmp(role, "node") != 0;
    int r = 0;
    if (has_node) r = program_find(PROGRAM_NODE, path, sizeof path, e);
    if (r == 0 && has_server) r = program_find(PROGRAM_SERVER, path, sizeof path, e);
    if (r == 0 && has_node) r = check_simulation(l, e);
    if (r == 0 && has_node) r = cards_check_start(l, e);
    if (r == 0 && has_server) r = server_check(l, e);
    return r;
}

static int run(const struct command *self, int argc, char **argv) {
    struct flags flags;
    struct loaded loaded = {0};
    struct instance instance;
    struct error e;
    int r = flags_parse(argc, argv, NULL, 0, FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0) r = flags_no_words(&flags, &e);
    if (r == 0) r = settings_load(&flags, LOAD_STRICT, &loaded, &e);
    if (r == 0) r = check_running(&loaded.values, &e);
    if (r == 0) r = check_role(self->name, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    r = instance_open(loaded.values.dir, &instance, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    r = refuse_second_start(&instance, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    say_what_lacks();
    become_supervisor(self->name, &loaded.values, argc, argv, &e);
    return command_fail(self, &e, EXIT_FAILED);
}

#define WATCH_HELP                                                                                                     \
    "  --sim N             N simulated GPUs instead of real ones\n"                                                    \
    "  --gpus LIST         which to watch: all, or indices and UUIDs with commas\n"                                    \
    "  --wait-ms MS        time between two readings (1000)\n"                                                         \
    "  --guard.hot_c C     threshold temperature (the card's own)\n"                                                   \
    "  --gpu-library PATH  the NVML library to open instead of the driver's\n"

#define SERVE_HELP                                                                                                     \
    "  --listen ADDR:PORT  where the server listens (127.0.0.1:7000)\n"                                                \
    "  --tls.cert FILE     and --tls.key FILE: HTTPS, needed beyond this machine\n"

#define COMMON_HELP                                                                                                    \
    "  --dir DIR           state, ring and sockets of this instance\n"                                                 \
    "  --config FILE       the configuration file\n"                                                                   \
    "\n"                                                                                                               \
    "Every key that `gpumgr config` lists is a flag. SIGTERM and Ctrl-C stop it, SIGHUP reloads the configuration.\n"

const struct command command_up = {
    .name = "up",
    .summary = "Watch and guard this machine's GPUs, and serve the dashboard",
    .run = run,
    .help =
        "usage: gpumgr up [FLAGS]\n"
        "\n"
        "Runs in the foreground: a sampler that reads and guards the GPUs, the node that tells what is seen, and the\n"
        "server with history, dashboard, API and /metrics, all kept alive by a supervisor. `gpumgr status` on the\n"
        "same machine shows the GPUs at no cost to the driver; `gpumgr web` gives you a link to the dashboard.\n"
        "\n" WATCH_HELP SERVE_HELP COMMON_HELP "\n"
        "example: gpumgr up --sim 8\n",
};

const struct command command_node = {
    .name = "node",
    .summary = "Watch and guard this machine's GPUs, without a server",
    .run = run,
    .help = "usage: gpumgr node [FLAGS]\n"
            "\n"
            "As `gpumgr up`, less the server: for the machines of a fleet. Runs in the foreground.\n"
            "\n" WATCH_HELP COMMON_HELP "\n"
            "example: gpumgr node --gpus 0,1 --wait-ms 500\n",
};

const struct command command_server = {
    .name = "server",
    .summary = "Serve the dashboard and the API, without watching this machine",
    .run = run,
    .help =
        "usage: gpumgr server [FLAGS]\n"
        "\n"
        "The other half of `gpumgr up`: history, dashboard, API and /metrics, and no GPUs of its own. It shows what\n"
        "its nodes tell it. Runs in the foreground.\n"
        "\n" SERVE_HELP COMMON_HELP "\n"
        "example: gpumgr server --listen 127.0.0.1:7001 --dir /srv/gpumgr\n",
};
