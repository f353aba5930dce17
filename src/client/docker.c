/* `gpumgr docker`, `gpumgr podman` and Docker's plugin `docker gpu`: containers with deadlines. A deadline is a label of the
 * container, so it is kept where the engine keeps the container, and any other client may set it as well. */
#include "client/docker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "client/command.h"
#include "client/output.h"
#include "client/programs.h"
#include "client/version.h"

#define PLUGIN "docker-gpu"

static char *word(const char *text) { return (char *)(uintptr_t)text; } /* argv is never written to */

/* argv[0] is the program. Returns only on failure. */
static int hand_over(const struct command *self, int argc, char **argv) {
    AUTO(docker_plan_done) struct docker_plan plan = {0};
    struct error e;
    int r = docker_plan(argc, argv, &plan, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (plan.wants_help) return command_help(self);
    program_exec(argv[0], plan.argv, &e);
    if (e.code == -ENOENT) fail(&e, -ENOENT, "there is no program %s on the path", argv[0]);
    return command_fail(self, &e, EXIT_FAILED);
}

/* ---- the plugin ---- */

static int plugin_dir(char *ret, size_t room, struct error *e) {
    const char *config = getenv("DOCKER_CONFIG"), *home = getenv("HOME");
    int n = -1;
    if (config && *config)
        n = snprintf(ret, room, "%s/cli-plugins", config);
    else if (home && *home)
        n = snprintf(ret, room, "%s/.docker/cli-plugins", home);
    return n > 0 && (size_t)n < room
               ? 0
               : fail(e, -ENOENT, "neither DOCKER_CONFIG nor HOME says where Docker's plugins are");
}

/* A link beside its final name, then renamed: an older one is replaced in one step. */
static int install(const struct command *self) {
    struct error e;
    char dir[512], path[600], fresh[640], program[512];
    AUTO(buf_done) struct buf out = {0};
    int r = plugin_dir(dir, sizeof dir, &e);
    if (r >= 0) r = program_self(program, sizeof program, &e);
    if (r >= 0) r = dir_make(dir, 0755, &e);
    if (r < 0) return command_fail(self, &e, EXIT_FAILED);
    snprintf(path, sizeof path, "%s/%s", dir, PLUGIN);
    snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid());
    if (symlink(program, fresh) < 0 || rename(fresh, path) < 0) {
        fail_errno(&e, errno, "%s", path);
        unlink(fresh);
        return command_fail(self, &e, EXIT_FAILED);
    }
    buf_printf(&out, "%s -> %s\nNow `docker gpu run --deadline 30s ...` and `docker gpu ps` work.\n", path, program);
    return output_exit(&out);
}

static int print_metadata(void) {
    AUTO(buf_done) struct buf b = {0};
    json_open(&b, '{');
    json_pair_str(&b, "SchemaVersion", "0.1.0");
    json_pair_str(&b, "Vendor", "gpumgr");
    json_pair_str(&b, "Version", gpumgr_version());
    json_pair_str(&b, "ShortDescription", "GPU containers with deadlines, and what they do");
    json_close(&b, '}');
    buf_putc(&b, '\n');
    return output_exit(&b);
}

static int plugin_help(void) {
    AUTO(buf_done) struct buf b = {0};
    buf_puts(&b, "usage: docker gpu COMMAND\n"
                 "\n"
                 "  run      Run a container, with a deadline for its GPU tasks\n"
                 "  create   Create one\n"
                 "  ps       Containers and their GPU tasks: deadlines, slack, hit rate\n"
                 "  status   The GPUs now\n"
                 "  top      The GPUs and who uses them, live\n"
                 "\n"
                 "Every other command of gpumgr works too; `docker gpu COMMAND --help` says more.\n"
                 "\nexample: docker gpu run --deadline 30s --rm --gpus all IMAGE ./infer\n");
    return output_exit(&b);
}

bool docker_plugin_is(const char *argv0) {
    const char *slash = argv0 ? strrchr(argv0, '/') : NULL;
    return argv0 && strcmp(slash ? slash + 1 : argv0, PLUGIN) == 0;
}

/* Docker calls us with all of its words: its global flags, `gpu`, and ours. The global ones go back to Docker. */
int docker_plugin(int argc, char **argv, const struct command *(*find)(const char *name)) {
    const char *original = getenv("DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND");
    int at = 1;
    while (at < argc && strcmp(argv[at], "gpu") != 0 && strcmp(argv[at], "docker-cli-plugin-metadata") != 0) at++;
    if (at < argc && strcmp(argv[at], "gpu") != 0) return print_metadata();
    const char *name = at + 1 < argc ? argv[at + 1] : "help";
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return plugin_help();
    if (strcmp(name, "run") != 0 && strcmp(name, "create") != 0) {
        const struct command *c = find(name);
        if (c) return c->run(c, argc - at - 1, argv + at + 1);
        char line[160];
        snprintf(line, sizeof line, "docker gpu: no such command as \"%.60s\"; `docker gpu help` lists them", name);
        output_note(line);
        return EXIT_INPUT;
    }
    for (int i = at; i < argc; i++) argv[i] = argv[i + 1]; /* without "gpu"; argv ends with NULL */
    argv[0] = word(original && *original ? original : "docker");
    return hand_over(&command_docker, argc - 1, argv);
}

/* ---- the commands ---- */

static int run(const struct command *self, int argc, char **argv) {
    const char *first = argc > 1 ? argv[1] : "--help";
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) return command_help(self);
    if (strcmp(first, "install") == 0 && argc == 2 && self == &command_docker) return install(self);
    argv[0] = word(self->name);
    return hand_over(self, argc, argv);
}

#define FLAGS_HELP                                                                                                     \
    "  --deadline D   how long each of its GPU tasks may take, from the moment the driver shows it: 500ms, 30s, 2m,\n" \
    "                 1h, 1m30s. A task that runs longer is overdue at once, and counts as a miss\n"                   \
    "  --period P     it repeats: in each period a task must begin, with that deadline\n"                              \
    "  --priority N   from -1000 to 1000, larger is more urgent\n"                                                     \
    "  --tenant NAME  who it is for, for reports\n"                                                                    \
    "\n"                                                                                                               \
    "These become the labels gpumgr.deadline, gpumgr.period, gpumgr.priority and gpumgr.tenant of the container,\n"    \
    "which a compose file or any other client may set as well. They stand before the image; what stands behind it "    \
    "is\n"                                                                                                             \
    "the container's own. Nonsense is refused here, before anything is made.\n"

const struct command command_docker = {
    .name = "docker",
    .summary = "Run a container with a deadline for its GPU tasks",
    .run = run,
    .words = "run create install",
    .help = "usage: gpumgr docker [FLAGS OF docker] run|create [--deadline D] [FLAGS OF docker run] IMAGE [WORDS]\n"
            "       gpumgr docker install\n"
            "\n"
            "Calls docker with every word unchanged but these:\n"
            "\n" FLAGS_HELP "\n"
            "`gpumgr docker install` makes this a plugin of Docker for you (~/.docker/cli-plugins): then\n"
            "`docker gpu run --deadline 30s ...` and `docker gpu ps` work.\n"
            "\n"
            "example: gpumgr docker run --deadline 30s --rm --gpus all IMAGE ./infer\n",
};

const struct command command_podman = {
    .name = "podman",
    .summary = "The same with Podman",
    .run = run,
    .words = "run create",
    .help = "usage: gpumgr podman [FLAGS OF podman] run|create [--deadline D] [FLAGS OF podman run] IMAGE [WORDS]\n"
            "\n"
            "Calls podman with every word unchanged but these:\n"
            "\n" FLAGS_HELP "\n"
            "example: gpumgr podman run --deadline 30s --rm --device nvidia.com/gpu=all IMAGE ./infer\n",
};
