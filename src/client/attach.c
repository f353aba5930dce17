/* `gpumgr attach`: at a job that was left, or handed in without waiting, as if `run` had never gone. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/command.h"
#include "client/job_pick.h"
#include "client/output.h"
#include "client/run_follow.h"
#include "client/settings_load.h"

enum { SHOWN_BYTES = 64 << 10 }; /* of what it wrote before: enough for a screen, however it was filled */

static int attach(const struct command *self, const char *dir, const struct job_id *id, bool is_quiet) {
    struct job_pick pick;
    struct error e = {0};
    char name[JOB_ID_TEXT];
    job_id_text(id, name);
    int r = job_pick(dir, id, &pick, &e);
    if (r >= 0 && pick.news.is_over)
        r = fail(&e, -ENOENT, "job %s is over: it is %s; `gpumgr logs %s` has what it wrote", name, pick.news.state,
                 name);
    else if (r >= 0 && !pick.is_here)
        r = fail(&e, -EINVAL, "job %s is on %s: attach to it there; `gpumgr logs -f %s` follows it from here", name,
                 pick.news.node, name);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    const struct run_follow follow = {.dir = dir,
                                      .id = *id,
                                      .is_pty = pick.is_pty,
                                      .is_quiet = is_quiet,
                                      .retries = pick.news.retries,
                                      .place = pick.place,
                                      .offset = pick.log_bytes > SHOWN_BYTES ? pick.log_bytes - SHOWN_BYTES : 0};
    return run_follow(self, &follow);
}

static int run(const struct command *self, int argc, char **argv) {
    bool is_quiet = false;
    const struct flag own[] = {
        {.name = "quiet", .kind = FLAG_YES, .into = &is_quiet}
    };
    struct flags flags;
    struct loaded loaded = {0};
    struct job_id id;
    struct error e;
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0 && flags.word_count != 1)
        r = fail(&e, -EINVAL, "which job? Name one, as in 17, or 17.3 for number 3 of an array");
    if (r == 0) r = job_id_parse(flags.words[0], &id, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    return attach(self, loaded.values.dir, &id, is_quiet);
}

const struct command command_attach = {
    .name = "attach",
    .summary = "Come back to a job: its terminal, or its output",
    .run = run,
    .words = "JOB",
    .help =
        "usage: gpumgr attach JOB[.NUMBER] [--quiet] [--dir DIR]\n"
        "\n"
        "Goes on where `gpumgr run` was left, or `run --detach` and `submit` never were: waits with the job, shows\n"
        "the end of what it wrote and what it writes, passes its exit code on. A job with a terminal (--pty) gets "
        "your\n"
        "keys again; Ctrl-] leaves it. Of others Ctrl-C asks it to end and Ctrl-\\ leaves it running, as with `run`.\n"
        "It must be your job, and on this machine.\n"
        "\n"
        "  --quiet    say nothing but what the job says\n"
        "  --dir DIR  the instance to ask\n"
        "\n"
        "example: gpumgr attach 17\n",
};
