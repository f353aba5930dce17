/* `gpumgr open`: the UI that a job runs, through the server, in the browser of whoever calls. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/browser.h"
#include "client/command.h"
#include "client/job_line.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"

enum { AGAIN_MS = 100, SHOWN_S = 2 };

static int show(const struct command *self, const struct buf *answer, const char *job, bool json, bool print) {
    AUTO(buf_done) struct buf out = {0};
    char url[900], line[160];
    struct error e;
    if (json) {
        buf_add(&out, answer->s, answer->len);
        return output_exit(&out);
    }
    if (!server_field(answer, "url", url, sizeof url)) {
        fail(&e, -EPROTO, "the server's answer has no link");
        return command_fail(self, &e, EXIT_FAILED);
    }
    if (!print && browser_open(url)) {
        buf_printf(&out, "The UI of job %s is in your browser. `gpumgr open %s --print` prints a link instead.\n", job,
                   job);
        return output_exit(&out);
    }
    buf_printf(&out, "%s\n", url);
    int code = output_exit(&out);
    snprintf(line, sizeof line, "Opens the UI of job %.40s, once, within a minute.", job);
    if (code == EXIT_DONE) output_note(line);
    return code;
}

/* Until it runs or will not: whoever hands a job in to look at its UI opens it next. */
static void wait_running(const char *dir, const struct job_id *id) {
    struct job_news news = {0};
    struct job_line line;
    struct error e;
    job_line_init(&line);
    while (job_news_ask(dir, id->job, id->element, SHOWN_S, &news, &e) == 0 && !news.is_over &&
           strcmp(news.state, "running") != 0) {
        AUTO(buf_done) struct buf text = {0};
        job_line_waiting(id, &news, clock_real_ns(), &text);
        if (text.len) job_line_put(&line, text.s, news.why);
        if (!*news.stage) nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * NS_PER_MS}, NULL);
    }
    job_line_done(&line);
}

static int ask(const char *dir, const struct job_id *id, struct buf *answer, struct error *e) {
    AUTO(buf_done) struct buf path = {0};
    buf_printf(&path, "/api/v1/jobs/%lld/ui", (long long)id->job);
    if (id->element >= 0) buf_printf(&path, "?element=%lld", (long long)id->element);
    int r = server_ask(dir, "POST", path.s, NULL, answer, e);
    if (r != -EEXIST) return r; /* a conflict: it does not run */
    wait_running(dir, id);
    buf_clear(answer);
    return server_ask(dir, "POST", path.s, NULL, answer, e);
}

static int run(const struct command *self, int argc, char **argv) {
    bool json = false, print = false;
    const struct flag own[] = {
        {.name = "json",  .kind = FLAG_YES, .into = &json },
        {.name = "print", .kind = FLAG_YES, .into = &print},
    };
    struct flags flags;
    struct loaded loaded = {0};
    struct job_id id = {0};
    struct error e;
    AUTO(buf_done) struct buf answer = {0};
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0 && flags.word_count != 1) r = fail(&e, -EINVAL, "which job? `gpumgr jobs --mine` lists yours");
    if (r == 0) r = job_id_parse(flags.words[0], &id, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    r = ask(loaded.values.dir, &id, &answer, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    return show(self, &answer, flags.words[0], json, print);
}

const struct command command_open = {
    .name = "open",
    .summary = "Open the UI that a job runs: a notebook, TensorBoard",
    .run = run,
    .words = "JOB",
    .help =
        "usage: gpumgr open JOB [--print] [--json]\n"
        "\n"
        "A job that was handed in with --ui PORT has a UI of its own. It is opened through the server, at a port of "
        "its\n"
        "own, for you alone: nobody else can use it, and the job's port is reached by nobody but the server. The link\n"
        "works once, within a minute; then the browser that used it has the UI until the job ends. 17 is a job, 17.3\n"
        "number 3 of an array. You may open your own jobs, administrators everybody's. One that does not run yet is "
        "waited\n"
        "for; standard error says why.\n"
        "\n"
        "  --print    print the link, open nothing\n"
        "  --json     print the link as JSON\n"
        "  --dir DIR  the instance to ask\n"
        "\n"
        "example: gpumgr open $(gpumgr submit --ui auto/lab -- sh -c 'jupyter lab --port $GPUMGR_UI_PORT')\n",
};
