/* `gpumgr run`: a job as if it ran here: waits its turn and says why, shows what it writes, ends as it ends. */
#include <errno.h>

#include "client/begin.h"
#include "client/job_wish.h"
#include "client/output.h"
#include "client/run_follow.h"

/* What the record says: a file may have asked for it, too. */
static int look_at(const struct job_wish *w, struct run_follow *ret, struct error *e) {
    struct job_spec spec;
    unsigned elements, at_once;
    int r = job_decode(w->batch.records.s, w->batch.len[0], &spec, e);
    if (r >= 0) r = job_elements(&spec, &elements, &at_once, e);
    if (r < 0) return r;
    if (spec.repeat.count)
        return fail(e, -EINVAL, "repeat: `run` follows one job; `gpumgr submit` takes one that repeats");
    if (spec.service.count)
        return fail(e, -EINVAL, "service: `run` follows one job; `gpumgr service add` takes one that stays up");
    ret->is_pty = spec.is_pty;
    ret->is_array = elements > 1;
    ret->retries = spec.retries;
    return 0;
}

static int run(const struct command *self, int argc, char **argv) {
    AUTO(job_wish_done) struct job_wish w = {0};
    const struct flag more[] = {
        {.name = "detach", .kind = FLAG_YES, .into = &w.is_detached},
        {.name = "quiet",  .kind = FLAG_YES, .into = &w.is_quiet   },
    };
    struct error e;
    int code = job_wish_begin(self, argc, argv, more, ARRAY_LEN(more), &w);
    if (code != COMMAND_GOES_ON) return code;
    struct run_follow follow = {.dir = w.loaded.values.dir, .id = {.element = -1}, .is_quiet = w.is_quiet};
    int r = look_at(&w, &follow, &e);
    if (r >= 0 && w.batch.count > 1)
        r = fail(&e, -EINVAL, "--file: has %zu jobs; `run` follows one, `gpumgr submit` takes them all", w.batch.count);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (w.is_dry) return job_wish_plan(self, &w);
    code = job_wish_submit(self, &w, &follow.id.job);
    if (code != EXIT_DONE) return code;
    if (!w.is_detached) return run_follow(self, &follow);
    AUTO(buf_done) struct buf out = {0};
    buf_printf(&out, w.json ? "{\"id\":%lld,\"count\":1}\n" : "%lld\n", (long long)follow.id.job);
    return output_exit(&out);
}

const struct command command_run = {
    .name = "run",
    .summary = "Run a command on GPUs of its own, when it is its turn",
    .run = run,
    .help =
        "usage: gpumgr run [FLAGS] [--] COMMAND [WORDS]\n"
        "       gpumgr run --pty [FLAGS]\n"
        "\n"
        "Waits until the GPUs are free and it is this job's turn, then runs the command as you, in this directory,\n"
        "with your environment; it sees only its GPUs. While it waits, standard error says why, when it will start\n"
        "and what would start it sooner. What it writes comes to standard output as it runs; its exit code is\n"
        "passed on (128 + N when signal N ended it; 125 when it never ran or nobody knows how it ended). The job\n"
        "does not depend on this command: closing the terminal leaves it running, and so does a restart of gpumgr;\n"
        "for the same reason its standard input is empty, but with --pty.\n"
        "The first word that is no flag begins the command; behind -- every word is the command's.\n"
        "\n"
        "Signals are passed on: INT (Ctrl-C), TERM, USR1, USR2. Ctrl-C while it waits takes it out of the queue; INT\n"
        "or TERM once more cancels it (TERM, then KILL of all that it started). Ctrl-\\ leaves it running and gives\n"
        "your prompt back; with --pty that is Ctrl-]. Ctrl-Z stops only this command. `gpumgr attach JOB` comes back\n"
        "to it.\n"
        "\n" JOB_HELP_GPUS JOB_HELP_ONCE JOB_HELP_LIMITS JOB_HELP_RUN JOB_HELP_FILE
        "  --detach             do not wait: print its number\n"
        "  --quiet              say nothing but what the job says\n"
        "  --dry-run            only say what would become of it now\n"
        "  --json               with --detach and --dry-run\n"
        "  --dir DIR            the instance to ask\n"
        "\n"
        "example: gpumgr run --gpus 2 --time-limit 4h -- python train.py\n",
};
