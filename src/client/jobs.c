/* `gpumgr jobs`: the jobs of the queue, those that ended, too; or one of them with all that is known of it. */
#include "client/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_tree.h"
#include "client/command.h"
#include "client/job_id.h"
#include "client/job_list.h"
#include "client/job_table.h"
#include "client/server_ask.h"
#include "client/settings_load.h"
#include "model/job.h"

struct wish {
    bool json, mine;
    double limit;
    struct job_list list;
};

static const struct job_cell *const cells[] = {
    &job_cell_id,   &job_cell_state, &job_cell_user, &job_cell_name, &job_cell_wants, &job_cell_gpus,
    &job_cell_took, &job_cell_exit,  &job_cell_age,  &job_cell_busy, &job_cell_peak,  &job_cell_command,
};

/* ---- words ---- */

static int check_state(const char *word, struct error *e) {
    AUTO(buf_done) struct buf all = {0};
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++) {
        if (strcmp(word, job_state_name(s)) == 0) return 0;
        buf_printf(&all, "%s%s", s ? ", " : "", job_state_name(s));
    }
    return fail(e, -EINVAL, "--state: \"%.40s\" is not one of %s", word, all.s);
}

static int check_wish(struct wish *w, char name[64], struct error *e) {
    if (w->list.state && check_state(w->list.state, e) < 0) return -EINVAL;
    if (w->mine && w->list.user) return fail(e, -EINVAL, "--mine and --user: only one of them makes sense");
    if (w->mine) w->list.user = job_list_me(name, 64);
    w->list.limit = (size_t)w->limit;
    return 0;
}

/* ---- showing ---- */

static bool is_asked(const struct job_list *l) { return l->state || l->user || l->name || l->labels.count; }

static void print_list(const struct wish *w, const struct json_tree *root, struct buf *out) {
    const struct json_tree *list = json_tree_get(root, "jobs");
    struct screen screen = screen_look();
    if (!json_tree_count(list))
        buf_puts(out, is_asked(&w->list) ? "No such job is known.\n"
                                         : "No job was handed in yet; `gpumgr run -- COMMAND` does.\n");
    else
        job_table(list, NULL, cells, ARRAY_LEN(cells), job_below, &screen, out);
    if (json_tree_get(root, "next") && !json_tree_is_null(json_tree_get(root, "next")))
        buf_printf(out, "There are older ones; --limit %.0f shows more.\n", w->limit * 5 > 1000 ? 1000 : w->limit * 5);
}

static int show(const struct command *self, const char *dir, const struct wish *w, const struct job_id *one) {
    AUTO(buf_done) struct buf path = {0}, answer = {0}, out = {0};
    struct json_tree *root;
    struct error e;
    buf_printf(&path, "/api/v1/jobs/%lld", (long long)one->job);
    int r = one->job ? server_ask(dir, "GET", path.s, NULL, &answer, &e) : job_list_ask(dir, &w->list, &answer, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    if (w->json) {
        if (answer.len && answer.s[answer.len - 1] != '\n') buf_putc(&answer, '\n');
        return output_exit(&answer);
    }
    r = json_tree_parse(answer.s, answer.len, &root, &e);
    if (r < 0) {
        fail_in(&e, r, "the server's answer");
        return command_fail(self, &e, EXIT_FAILED);
    }
    struct screen screen = screen_look();
    if (one->job)
        r = jobs_detail(root, one->element, &screen, &out, &e);
    else
        print_list(w, root, &out);
    json_tree_free(root);
    return r < 0 ? command_fail(self, &e, error_exit_code(r)) : output_exit(&out);
}

static int run(const struct command *self, int argc, char **argv) {
    struct wish w = {.limit = 20};
    struct flag own[7] = {
        {.name = "limit",        .kind = FLAG_NUMBER, .into = &w.limit,        .min = 1, .max = 1000},
        {.name = "json",           .kind = FLAG_YES,                              .into = &w.json                                       },
        {.name = "mine",       .kind = FLAG_YES,.into = &w.mine},
        {.name = "state",       .kind = FLAG_TEXT,                              .into = &w.list.state                                                                       },
        {.name = "user", .kind = FLAG_TEXT,.into = &w.list.user},
    };
    size_t count = 5;
    struct flags flags;
    struct loaded loaded = {0};
    struct job_id id = {0};
    struct error e;
    char name[64];
    job_list_rows(&w.list, own, &count);
    int r = flags_parse(argc, argv, own, count, FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0 && flags.word_count > 1)
        r = fail(&e, -EINVAL, "what is \"%.60s\"? one job, or all of them", flags.words[1]);
    if (r == 0 && flags.word_count) r = job_id_parse(flags.words[0], &id, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r == 0 && !flags.word_count) r = check_wish(&w, name, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    return show(self, loaded.values.dir, &w, &id);
}

const struct command command_jobs = {
    .name = "jobs",
    .summary = "List jobs, or show one of them",
    .run = run,
    .words = "JOB",
    .help =
        "usage: gpumgr jobs [--mine] [--user USER] [--state STATE] [--name NAME] [--label KEY=VALUE] [--limit N] "
        "[--json]\n"
        "                   [--dir DIR]\n"
        "       gpumgr jobs JOB [--json] [--dir DIR]\n"
        "\n"
        "The newest jobs of everybody: state, what they asked for, the GPUs they have or had, how long they ran, how\n"
        "they ended, how busy their GPUs were and how much memory they took at most. With a number, all that is known\n"
        "of that job: 17, or 17.3 for number 3 of an array.\n"
        "\n"
        "  --mine         only yours\n"
        "  --user USER    only this user's\n"
        "  --state STATE  waiting, held, starting, running, ending, done, failed, cancelled, timeout, exit unknown\n"
        "  --name NAME    only those that are called so; * is anything, ? one character: \"train-*\"\n"
        "  --label LABEL  only those with this label: team=vision, or team for any value; given again, with all of "
        "them\n"
        "  --limit N      so many (20)\n"
        "  --json         as the API has them; times are Unix seconds, what is not known is null\n"
        "  --dir DIR      the instance to ask\n"
        "\n"
        "example: gpumgr jobs --mine --state failed --label team=vision\n",
};
