/* `gpumgr wait`: until jobs are over; its exit code is theirs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/command.h"
#include "client/job_line.h"
#include "client/job_news.h"
#include "client/output.h"
#include "client/settings_load.h"
#include "model/duration.h"

enum { AGAIN_MS = 100, SHOWN_S = 2, EXIT_TIMEOUT = 124 };

struct waiting {
    struct job_id id[FLAGS_WORDS_MAX];
    struct job_news news[FLAGS_WORDS_MAX]; /* large: static */
    size_t count;
};

static void say(struct job_line *line, const struct job_id *id, const struct job_news *n, size_t left) {
    AUTO(buf_done) struct buf text = {0}, key = {0};
    char name[JOB_ID_TEXT];
    job_line_waiting(id, n, clock_real_ns(), &text);
    job_id_text(id, name);
    if (text.len) /* the time it may start at moves on; that is no news */
        buf_printf(&key, "%s|%s|%d|%s|%zu", name, n->state, n->place, n->why, left);
    else
        buf_printf(&text, "job %s runs%s%s", name, *n->gpus ? " on GPU " : "", n->gpus);
    if (left > 1) buf_printf(&text, " (and %zu more)", left - 1);
    if (!key.len) buf_puts(&key, text.s);
    job_line_put(line, text.s, key.s);
}

/* How long the server may keep the answer back: near the end of our patience not at all, for it counts in seconds. */
static int patience_s(const struct job_line *line, int64_t until_ns) {
    int64_t left_s = until_ns ? (until_ns - clock_boot_ns()) / NS_PER_S - 1 : JOB_WAIT_MOST_S;
    int64_t most_s = line->is_terminal ? SHOWN_S : JOB_WAIT_MOST_S;
    return left_s < 0 ? 0 : (int)(left_s < most_s ? left_s : most_s);
}

/* One job. 0: it is over; 1: not yet; 2: no server says so; negative: there is no such job, or no sense in asking again. */
static int look(const char *dir, const struct job_id *id, int wait_s, struct job_news *n, struct job_line *line,
                struct error *e) {
    int r = job_news_ask(dir, id->job, id->element, wait_s, n, e);
    if (r == -ENOENT || r == -EINVAL || r == -EACCES || r == -EPROTO || r == -EMSGSIZE) return r;
    if (r < 0) job_line_put(line, e->text, "away");
    return r < 0 ? 2 : !n->is_over;
}

static int wait_all(const struct command *self, const char *dir, struct waiting *w, int64_t until_ns, bool is_quiet) {
    struct job_line line;
    struct error e;
    int code = EXIT_DONE;
    job_line_init(&line);
    for (size_t i = 0; i < w->count;) {
        int wait_s = patience_s(&line, until_ns);
        bool is_first = !*w->news[i].stage;
        int r = look(dir, &w->id[i], wait_s, &w->news[i], &line, &e);
        if (r < 0) {
            job_line_done(&line);
            return command_fail(self, &e, error_exit_code(r));
        }
        if (r == 0) {
            AUTO(buf_done) struct buf text = {0};
            job_line_ended(&w->id[i], &w->news[i], &text);
            if (!is_quiet) job_line_note(&line, text.s);
            if (code == EXIT_DONE) code = job_news_exit(&w->news[i]);
            i++;
            continue;
        }
        if (!is_quiet && *w->news[i].state) say(&line, &w->id[i], &w->news[i], w->count - i);
        if (until_ns && clock_boot_ns() >= until_ns) {
            job_line_done(&line);
            return EXIT_TIMEOUT;
        }
        if (r == 2 || !wait_s || (!is_first && !*w->news[i].stage))
            nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * NS_PER_MS}, NULL);
    }
    job_line_done(&line);
    return code;
}

static int run(const struct command *self, int argc, char **argv) {
    static struct waiting w;
    const char *timeout = NULL;
    bool is_quiet = false;
    const struct flag own[] = {
        {.name = "timeout", .kind = FLAG_TEXT, .into = &timeout },
        {.name = "quiet",   .kind = FLAG_YES,  .into = &is_quiet},
    };
    struct flags flags;
    struct loaded loaded = {0};
    struct error e;
    int64_t limit_ns = 0;
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0 && !flags.word_count) r = fail(&e, -EINVAL, "which job? `gpumgr jobs --mine` lists yours");
    for (size_t i = 0; r == 0 && i < flags.word_count; i++) r = job_id_parse(flags.words[i], &w.id[w.count++], &e);
    if (r == 0 && timeout && duration_parse(timeout, &limit_ns, &e) < 0) r = fail_in(&e, -EINVAL, "--timeout");
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    return wait_all(self, loaded.values.dir, &w, limit_ns ? clock_boot_ns() + limit_ns : 0, is_quiet);
}

const struct command command_wait = {
    .name = "wait",
    .summary = "Wait until jobs are over",
    .run = run,
    .words = "JOB",
    .help =
        "usage: gpumgr wait JOB... [--timeout TIME] [--quiet] [--dir DIR]\n"
        "\n"
        "Waits until all of them are over. Exits with the exit code of the job (128 + N when signal N ended it, 125\n"
        "when it never ran or nobody knows how it ended); of several, with that of the first that did not end well.\n"
        "For an array: 0 when every element ended well, else 1. While it waits, standard error says what for.\n"
        "\n"
        "  --timeout TIME  wait no longer than 90s, 30m, 2h: then exit with 124\n"
        "  --quiet         say nothing\n"
        "  --dir DIR       the instance to ask\n"
        "\n"
        "example: id=$(gpumgr submit -- python train.py) && gpumgr wait $id && ./publish\n",
};
