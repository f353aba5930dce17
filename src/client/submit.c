/* `gpumgr submit`: hands a job in and goes: prints its number, nothing else, for scripts. */
#include "base/json.h"
#include "client/begin.h"
#include "client/job_wish.h"
#include "client/output.h"
#include "client/repeat.h"

static int run(const struct command *self, int argc, char **argv) {
    AUTO(job_wish_done) struct job_wish w = {0};
    AUTO(buf_done) struct buf out = {0};
    int64_t first = 0;
    int code = job_wish_begin(self, argc, argv, NULL, 0, &w);
    if (code != COMMAND_GOES_ON) return code;
    if (w.is_dry) return job_wish_plan(self, &w);
    code = job_wish_submit(self, &w, &first);
    if (code != EXIT_DONE) return code;
    if (w.json) {
        json_open(&out, '{');
        json_pair_int(&out, "id", first);
        json_pair_int(&out, "count", (int64_t)w.batch.count);
        if (job_wish_repeats(&w)) json_pair_str(&out, "kind", "repeat");
        json_close(&out, '}');
        buf_putc(&out, '\n');
        return output_exit(&out);
    }
    for (size_t i = 0; i < w.batch.count; i++) buf_printf(&out, "%lld\n", (long long)first + (long long)i);
    code = output_exit(&out);
    AUTO(buf_done) struct buf line = {0};
    if (code == EXIT_DONE && job_wish_repeats(&w) && repeat_first_line(w.loaded.values.dir, first, &line))
        output_note(line.s);
    return code;
}

const struct command command_submit = {
    .name = "submit",
    .summary = "Hand in a job and go on",
    .run = run,
    .help =
        "usage: gpumgr submit [FLAGS] [--] COMMAND [WORDS]\n"
        "       gpumgr submit --file FILE\n"
        "\n"
        "Hands a job in: it runs as you, in this directory, with your environment, as soon as its GPUs are free, and\n"
        "sees only these. Prints its number once it is stored: from then on nothing but `gpumgr cancel` takes it "
        "away.\n"
        "`gpumgr run` is the same and waits for it. The first word that is no flag begins the command; behind --\n"
        "every word is the command's.\n"
        "\n" JOB_HELP_GPUS JOB_HELP_ONCE JOB_HELP_LIMITS JOB_HELP_RUN JOB_HELP_REPEAT JOB_HELP_FILE
        "  --dry-run            only say what would become of it now\n"
        "  --json               {\"id\": 17, \"count\": 1}; with --dry-run the plan\n"
        "  --dir DIR            the instance to ask\n"
        "\n"
        "With --cron or --interval the number is that of a repeat, and standard error says when it comes first.\n"
        "\n"
        "example: gpumgr submit --gpus 2 --time-limit 4h --sweep lr=1e-3,1e-4 -- python train.py --lr {lr}\n",
};
