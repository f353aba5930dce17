/* `gpumgr cancel`, `hold`, `release`: what one may do to jobs of one's own. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "client/command.h"
#include "client/job_id.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"

struct deed {
    const char *method, *path; /* behind the job's number */
    const char *done;
    bool takes_element, can_force;
};

static int do_one(const char *dir, const struct deed *d, const struct job_id *id, bool is_forced, struct error *e) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    buf_printf(&path, "/api/v1/jobs/%lld%s", (long long)id->job, d->path);
    if (is_forced) buf_puts(&path, "?force=1");
    if (id->element >= 0) buf_printf(&path, "%celement=%lld", is_forced ? '&' : '?', (long long)id->element);
    return server_ask(dir, d->method, path.s, NULL, &answer, e);
}

/* Words that are wrong are found before anything is done; what one job refuses does not save the others. */
static int do_all(const struct command *self, int argc, char **argv, const struct deed *d) {
    AUTO(buf_done) struct buf out = {0};
    struct flags flags;
    struct loaded loaded = {0};
    struct job_id id[FLAGS_WORDS_MAX] = {0};
    struct error e;
    int code = EXIT_DONE;
    bool is_forced = false;
    const struct flag own[] = {
        {.name = "force", .kind = FLAG_YES, .into = &is_forced}
    };
    int r = flags_parse(argc, argv, own, d->can_force ? ARRAY_LEN(own) : 0, FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0 && !flags.word_count) r = fail(&e, -EINVAL, "which job? `gpumgr jobs --mine` lists yours");
    for (size_t i = 0; r == 0 && i < flags.word_count; i++) {
        r = job_id_parse(flags.words[i], &id[i], &e);
        if (r == 0 && id[i].element >= 0 && !d->takes_element)
            r = fail(&e, -EINVAL, "%.40s: an array is held and released as a whole", flags.words[i]);
    }
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    for (size_t i = 0; i < flags.word_count; i++) {
        r = do_one(loaded.values.dir, d, &id[i], is_forced, &e);
        if (r < 0) code = command_fail(self, &e, error_exit_code(r));
        if (r >= 0) buf_printf(&out, "job %s %s\n", flags.words[i], d->done);
    }
    int written = output_exit(&out);
    return code != EXIT_DONE ? code : written;
}

static int run_cancel(const struct command *self, int argc, char **argv) {
    static const struct deed d = {"DELETE", "", "is cancelled", true, true};
    return do_all(self, argc, argv, &d);
}
static int run_hold(const struct command *self, int argc, char **argv) {
    static const struct deed d = {"POST", "/hold", "is held", false, false};
    return do_all(self, argc, argv, &d);
}
static int run_release(const struct command *self, int argc, char **argv) {
    static const struct deed d = {"POST", "/release", "waits for its turn again", false, false};
    return do_all(self, argc, argv, &d);
}

const struct command command_cancel = {
    .name = "cancel",
    .summary = "End a job, or take it out of the queue",
    .run = run_cancel,
    .words = "JOB",
    .help =
        "usage: gpumgr cancel JOB... [--force] [--dir DIR]\n"
        "\n"
        "A job that waits leaves the queue; one that runs gets TERM, and what is left of it after some seconds gets\n"
        "KILL: all processes that it started. 17 is a job, or all of an array; 17.3 is number 3 of it. You may cancel\n"
        "your own jobs, administrators everybody's. One whose machine is away is ended when that comes back, or given "
        "up\n"
        "after jobs.lost_s.\n"
        "\n"
        "  --force    give it up now where its machine is away: its exit is unknown, and the machine ends it when it\n"
        "             comes back\n"
        "  --dir DIR  the instance to ask\n"
        "\n"
        "example: gpumgr cancel 17 18.3\n",
};

const struct command command_hold = {
    .name = "hold",
    .summary = "Keep a waiting job from starting",
    .run = run_hold,
    .words = "JOB",
    .help =
        "usage: gpumgr hold JOB... [--dir DIR]\n"
        "\n"
        "A job that waits stays in the queue and is not started until `gpumgr release`; others go past it. What runs\n"
        "already goes on.\n"
        "\n"
        "  --dir DIR  the instance to ask\n"
        "\n"
        "example: gpumgr hold 17\n",
};

const struct command command_release = {
    .name = "release",
    .summary = "Let a held job start",
    .run = run_release,
    .words = "JOB",
    .help = "usage: gpumgr release JOB... [--dir DIR]\n"
            "\n"
            "The opposite of `gpumgr hold`.\n"
            "\n"
            "  --dir DIR  the instance to ask\n"
            "\n"
            "example: gpumgr release 17\n",
};
