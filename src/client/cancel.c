/* `gpumgr cancel`, `hold`, `release`: what one may do to jobs of one's own. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json_tree.h"
#include "client/command.h"
#include "client/job_id.h"
#include "client/job_list.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"

struct deed {
    const char *method, *path; /* behind the job's number */
    const char *done;          /* "job 17 ..." ... */
    const char *all;           /* ... and "3 jobs ..." */
    const char *states;        /* of whom it makes sense ... */
    const char *none;          /* ... "no job of yours ..." */
    bool takes_element, can_force;
};

/* What is asked for. A number is one job, whoever's it is. A range, a name and a label mean several that one may not have looked
 * at: only one's own that wait or run. */
struct wish {
    const char *dir;
    const struct deed *deed;
    bool is_forced;
    struct job_list list; /* names and labels */
    struct word {
        struct job_id id;
        int64_t to; /* of a range; 0: it is none */
    } word[FLAGS_WORDS_MAX];
    size_t words, done;
    int code;
    struct buf out;
};

static void wish_done(struct wish *w) { buf_done(&w->out); }

static int do_one(const struct wish *w, const struct job_id *id, struct error *e) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    buf_printf(&path, "/api/v1/jobs/%lld%s", (long long)id->job, w->deed->path);
    if (w->is_forced) buf_puts(&path, "?force=1");
    if (id->element >= 0) buf_printf(&path, "%celement=%lld", w->is_forced ? '&' : '?', (long long)id->element);
    return server_ask(w->dir, w->deed->method, path.s, NULL, &answer, e);
}

/* What one job refuses does not save the others. is_listed: it may have ended since it was, which is as good. */
static void do_told(const struct command *self, struct wish *w, const struct job_id *id, bool is_listed) {
    struct error e;
    char text[JOB_ID_TEXT];
    int r = do_one(w, id, &e);
    if (r == -EEXIST && is_listed) return; /* a conflict */
    if (r < 0) {
        w->code = command_fail(self, &e, error_exit_code(r));
        return;
    }
    job_id_text(id, text);
    buf_printf(&w->out, "job %s %s\n", text, w->deed->done);
    w->done++;
}

/* ---- several ---- */

/* "no job of yours from 12 to 20 with that label waits or runs" */
static int fail_none(const struct wish *w, const struct job_list *l, struct error *e) {
    char range[64] = "";
    if (l->to) snprintf(range, sizeof range, " from %lld to %lld", (long long)l->from, (long long)l->to);
    return fail(e, -ENOENT, "no job of yours%s%s %s", range,
                l->name && l->labels.count ? " with that name and label"
                : l->name                  ? " with that name"
                : l->labels.count          ? " with that label"
                                           : "",
                w->deed->none);
}

static int do_list(const struct command *self, struct wish *w, int64_t from, int64_t to, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    struct job_list l = w->list;
    struct json_tree *root;
    char me[64];
    l.user = job_list_me(me, sizeof me);
    l.state = w->deed->states;
    l.from = from;
    l.to = to;
    l.limit = SIZE_MAX;
    int r = job_list_ask(w->dir, &l, &answer, e);
    if (r >= 0) r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return r;
    const struct json_tree *jobs = json_tree_get(root, "jobs");
    size_t before = w->done;
    for (size_t i = 0; i < json_tree_count(jobs); i++) { /* the newest first: no other of them is started meanwhile */
        const struct json_tree *j = json_tree_at(jobs, i);
        if (json_tree_integer(json_tree_get(j, "uid"), -1) != (int64_t)geteuid()) continue;
        do_told(self, w, &(struct job_id){.job = json_tree_integer(json_tree_get(j, "id"), 0), .element = -1}, true);
    }
    json_tree_free(root);
    return w->done > before || w->code != EXIT_DONE ? 0 : fail_none(w, &l, e);
}

/* ---- words ---- */

/* 12-20, or as one job. */
static int read_word(const struct deed *d, const char *text, struct word *ret, struct error *e) {
    char first[24];
    size_t n = strcspn(text, "-");
    if (!text[n] || n >= sizeof first) {
        int r = job_id_parse(text, &ret->id, e);
        if (r == 0 && ret->id.element >= 0 && !d->takes_element)
            r = fail(e, -EINVAL, "%.40s: an array is held and released as a whole", text);
        return r;
    }
    struct job_id to;
    snprintf(first, sizeof first, "%.*s", (int)n, text);
    if (job_id_parse(first, &ret->id, e) < 0 || job_id_parse(text + n + 1, &to, e) < 0 || ret->id.element >= 0 ||
        to.element >= 0)
        return fail(e, -EINVAL, "\"%.40s\" is no range of jobs, as in 12-20", text);
    if (to.job < ret->id.job) return fail(e, -EINVAL, "\"%.40s\": a range goes up, as in 12-20", text);
    ret->to = to.job;
    return 0;
}

static int read_words(struct wish *w, const struct flags *f, struct error *e) {
    bool is_asked = w->list.name || w->list.labels.count;
    if (!f->word_count && !is_asked) return fail(e, -EINVAL, "which job? `gpumgr jobs --mine` lists yours");
    for (w->words = 0; w->words < f->word_count; w->words++) {
        struct word *word = &w->word[w->words];
        int r = read_word(w->deed, f->words[w->words], word, e);
        if (r < 0) return r;
        if (is_asked && !word->to)
            return fail(e, -EINVAL, "%.40s: a job's number says it all; a name or a label goes with a range",
                        f->words[w->words]);
    }
    return 0;
}

/* Words that are wrong are found before anything is done. */
static int do_all(const struct command *self, int argc, char **argv, const struct deed *d) {
    AUTO(wish_done) struct wish w = {.deed = d};
    struct flags flags;
    struct loaded loaded = {0};
    struct error e;
    struct flag own[3];
    size_t count = 0;
    job_list_rows(&w.list, own, &count);
    if (d->can_force) own[count++] = (struct flag){.name = "force", .kind = FLAG_YES, .into = &w.is_forced};
    int r = flags_parse(argc, argv, own, count, FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0) r = read_words(&w, &flags, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    w.dir = loaded.values.dir;
    bool is_many = !w.words;
    if (!w.words && (r = do_list(self, &w, 0, 0, &e)) < 0) w.code = command_fail(self, &e, error_exit_code(r));
    for (size_t i = 0; i < w.words; i++) {
        const struct word *word = &w.word[i];
        is_many |= word->to > 0;
        if (!word->to)
            do_told(self, &w, &word->id, false);
        else if ((r = do_list(self, &w, word->id.job, word->to, &e)) < 0)
            w.code = command_fail(self, &e, error_exit_code(r));
    }
    if (is_many && w.done > 1) buf_printf(&w.out, "%zu jobs %s\n", w.done, d->all);
    int written = output_exit(&w.out);
    return w.code != EXIT_DONE ? w.code : written;
}

static int run_cancel(const struct command *self, int argc, char **argv) {
    static const struct deed d = {.method = "DELETE",
                                  .path = "",
                                  .done = "is cancelled",
                                  .all = "are cancelled",
                                  .states = "waiting,held,starting,running",
                                  .none = "waits or runs",
                                  .takes_element = true,
                                  .can_force = true};
    return do_all(self, argc, argv, &d);
}
static int run_hold(const struct command *self, int argc, char **argv) {
    static const struct deed d = {.method = "POST",
                                  .path = "/hold",
                                  .done = "is held",
                                  .all = "are held",
                                  .states = "waiting,held",
                                  .none = "waits"};
    return do_all(self, argc, argv, &d);
}
static int run_release(const struct command *self, int argc, char **argv) {
    static const struct deed d = {.method = "POST",
                                  .path = "/release",
                                  .done = "waits for its turn again",
                                  .all = "wait for their turn again",
                                  .states = "held",
                                  .none = "is held"};
    return do_all(self, argc, argv, &d);
}

const struct command command_cancel = {
    .name = "cancel",
    .summary = "End a job, or take it out of the queue",
    .run = run_cancel,
    .words = "JOB",
    .help =
        "usage: gpumgr cancel JOB... [--force] [--dir DIR]\n"
        "       gpumgr cancel [FROM-TO...] [--name NAME] [--label KEY=VALUE] [--force] [--dir DIR]\n"
        "\n"
        "A job that waits leaves the queue; one that runs gets TERM, and what is left of it after some seconds gets\n"
        "KILL: all processes that it started. 17 is a job, or all of an array; 17.3 is number 3 of it. You may cancel\n"
        "your own jobs, administrators everybody's. One whose machine is away is ended when that comes back, or given "
        "up\n"
        "after jobs.lost_s.\n"
        "\n"
        "A range, a name and a label mean your own jobs only, those that wait or run; each is told, and how many they\n"
        "were. The exit code is not 0 when one of them could not be cancelled, or there is none.\n"
        "\n"
        "  --name NAME    those that are called so; * is anything, ? one character: \"train-*\"\n"
        "  --label LABEL  those with this label: team=vision, or team for any value; given again, with all of them\n"
        "  --force        give it up now where its machine is away: its exit is unknown, and the machine ends it when "
        "it\n"
        "                 comes back\n"
        "  --dir DIR      the instance to ask\n"
        "\n"
        "example: gpumgr cancel 17 18.3\n"
        "         gpumgr cancel 20-29 --label team=vision\n",
};

const struct command command_hold = {
    .name = "hold",
    .summary = "Keep a waiting job from starting",
    .run = run_hold,
    .words = "JOB",
    .help =
        "usage: gpumgr hold JOB... [--dir DIR]\n"
        "       gpumgr hold [FROM-TO...] [--name NAME] [--label KEY=VALUE] [--dir DIR]\n"
        "\n"
        "A job that waits stays in the queue and is not started until `gpumgr release`; others go past it. What runs\n"
        "already goes on. A range, a name and a label mean your own jobs only.\n"
        "\n"
        "  --name NAME    those that are called so; * is anything, ? one character\n"
        "  --label LABEL  those with this label: team=vision, or team for any value; given again, with all of them\n"
        "  --dir DIR      the instance to ask\n"
        "\n"
        "example: gpumgr hold 17\n",
};

const struct command command_release = {
    .name = "release",
    .summary = "Let a held job start",
    .run = run_release,
    .words = "JOB",
    .help =
        "usage: gpumgr release JOB... [--dir DIR]\n"
        "       gpumgr release [FROM-TO...] [--name NAME] [--label KEY=VALUE] [--dir DIR]\n"
        "\n"
        "The opposite of `gpumgr hold`.\n"
        "\n"
        "  --name NAME    those that are called so; * is anything, ? one character\n"
        "  --label LABEL  those with this label: team=vision, or team for any value; given again, with all of them\n"
        "  --dir DIR      the instance to ask\n"
        "\n"
        "example: gpumgr release 17\n",
};
