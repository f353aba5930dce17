/* `gpumgr repeat`: jobs that come again. They are handed in by `gpumgr submit --cron` or `--interval`. */
#include "client/repeat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "client/command.h"
#include "client/job_flags.h"
#include "client/job_table.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"
#include "client/text.h"
#include "model/duration.h"

enum { LABEL_WIDTH = 10, SLOTS_SHOWN = 20 };

struct wish {
    bool json;
    struct repeat_times times;
    const char *dir;
    struct flags flags;
    struct json_tree *all; /* the server's list, once it was asked for */
};

/* ---- the list ---- */

/* clang-format off */
static const struct table_column columns[] = {
    {.title = "REPEAT", .to_the_right = true},
    {.title = "NAME", .shrink = 8},
    {.title = "USER", .drop = 1, .shrink = 6},
    {.title = "WHEN", .shrink = 9},
    {.title = "ZONE", .drop = 3, .shrink = 8},
    {.title = "STATE"},
    {.title = "NEXT"},
    {.title = "LAST", .drop = 2},
};
/* clang-format on */

static const char *colour_of(const char *outcome) {
    static const struct {
        const char *word, *colour;
    } rows[] = {
        {"done",    JOB_GREEN },
        {"failed",  JOB_RED   },
        {"missed",  JOB_RED   },
        {"timeout", JOB_RED   },
        {"skipped", JOB_YELLOW},
        {"paused",  JOB_DIM   },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].word, outcome) == 0) return rows[i].colour;
    return NULL;
}

static const char *when_of(const struct json_tree *r) {
    const char *cron = job_text(r, "cron");
    return *cron ? cron : job_text(r, "interval");
}

static void put_row(const struct json_tree *r, struct table_cell *c) {
    char when[REPEAT_WHEN];
    const struct json_tree *next = json_tree_at(json_tree_get(r, "next"), 0);
    const struct json_tree *last = json_tree_at(json_tree_get(r, "slots"), 0);
    const char *state = job_text(r, "state"), *outcome = job_text(last, "outcome");
    snprintf(c[0].text, sizeof c[0].text, "%.0f", job_number(r, "id"));
    snprintf(c[1].text, sizeof c[1].text, "%.90s", job_text(r, "name"));
    snprintf(c[2].text, sizeof c[2].text, "%.60s", job_text(r, "user"));
    snprintf(c[3].text, sizeof c[3].text, "%.90s", when_of(r));
    snprintf(c[4].text, sizeof c[4].text, "%.60s", job_text(r, "zone"));
    snprintf(c[5].text, sizeof c[5].text, "%.20s", state);
    c[5].colour = strcmp(state, "on") == 0 ? JOB_GREEN : strcmp(state, "in trouble") == 0 ? JOB_RED : JOB_YELLOW;
    repeat_when(next, when);
    snprintf(c[6].text, sizeof c[6].text, "%s", next ? when : "-");
    snprintf(c[7].text, sizeof c[7].text, "%.30s", last ? outcome : "-");
    c[7].colour = last ? colour_of(outcome) : NULL;
}

static int do_list(struct wish *w, struct buf *out, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    int r = repeats_ask(w->dir, &w->all, &answer, e);
    if (r < 0) return r;
    if (w->json) {
        buf_puts(out, answer.s);
        return 0;
    }
    const struct json_tree *list = json_tree_get(w->all, "repeats");
    size_t count = json_tree_count(list);
    if (!count) {
        buf_puts(out, "Nothing repeats; `gpumgr submit --cron \"0 3 * * *\" -- COMMAND` makes one that does.\n");
        return 0;
    }
    struct screen screen = screen_look();
    struct table *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->columns = columns;
    t->column_count = ARRAY_LEN(columns);
    for (size_t i = 0; i < count && t->row_count < TABLE_ROWS_MAX; i++)
        put_row(json_tree_at(list, i), t->cell[t->row_count++]);
    table_print(t, screen.width, screen.has_colour, out);
    free(t);
    if (count > TABLE_ROWS_MAX) buf_printf(out, "and %zu more; --json has all\n", count - TABLE_ROWS_MAX);
    return 0;
}

/* ---- one ---- */

static void line(struct buf *out, const char *label, const char *text) {
    if (!*text) return;
    text_pad(out, label, LABEL_WIDTH);
    buf_printf(out, " %s\n", text);
}

static void put_slot(const struct json_tree *s, const struct screen *screen, struct buf *out) {
    char when[REPEAT_WHEN];
    const char *outcome = job_text(s, "outcome"), *colour = screen->has_colour ? colour_of(outcome) : NULL;
    repeat_when(s, when);
    buf_printf(out, "  %s  %s%s%s", when, colour ? colour : "", outcome, colour ? "\033[0m" : "");
    if (job_number(s, "count") > 1) buf_printf(out, ", with %.0f before it", job_number(s, "count") - 1);
    if (job_number(s, "job") > 0) buf_printf(out, "  job %.0f", job_number(s, "job"));
    if (json_tree_is_true(json_tree_get(s, "by_hand"))) buf_puts(out, "  by hand");
    buf_putc(out, '\n');
}

static void put_one(const struct json_tree *r, struct buf *out) {
    struct screen screen = screen_look();
    char text[512], late[DURATION_TEXT];
    const struct json_tree *next = json_tree_get(r, "next"), *slots = json_tree_get(r, "slots");
    buf_printf(out, "repeat %.0f  %s  %s  of %s\n\n", job_number(r, "id"), job_text(r, "name"), job_text(r, "state"),
               job_text(r, "user"));
    line(out, "trouble", job_text(r, "problem"));
    snprintf(text, sizeof text, "%.200s, %.60s", when_of(r), job_text(r, "zone"));
    line(out, "when", text);
    duration_text((int64_t)(job_number(r, "late_s") * 1e9), late);
    snprintf(text, sizeof text, "%s; while the one before is not over: %.20s", late, job_text(r, "overlap"));
    line(out, "late", text);
    job_command(json_tree_get(r, "command"), text, sizeof text);
    line(out, "command", text);
    line(out, "image", job_text(r, "image"));
    job_wants(r, text, sizeof text);
    line(out, "asks for", text);
    job_list(json_tree_get(r, "open_jobs"), text, sizeof text);
    line(out, "open jobs", text);
    buf_puts(out, "\nnext\n");
    for (size_t i = 0; i < json_tree_count(next); i++) {
        char when[REPEAT_WHEN];
        repeat_when(json_tree_at(next, i), when);
        buf_printf(out, "  %s\n", when);
    }
    if (!json_tree_count(next)) buf_puts(out, "  none any more\n");
    if (json_tree_count(slots)) buf_puts(out, "\nlast\n");
    for (size_t i = 0; i < json_tree_count(slots) && i < SLOTS_SHOWN; i++)
        put_slot(json_tree_at(slots, i), &screen, out);
}

static int do_show(struct wish *w, struct buf *out, struct error *e) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    struct json_tree *root;
    int64_t id = 0;
    int r = repeat_pick(w->dir, &w->all, w->flags.words[1], &id, e);
    buf_printf(&path, "/api/v1/repeats/%lld", (long long)id);
    if (r >= 0) r = server_ask(w->dir, "GET", path.s, NULL, &answer, e);
    if (r >= 0 && w->json) buf_puts(out, answer.s);
    if (r < 0 || w->json) return r;
    r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return r;
    put_one(root, out);
    json_tree_free(root);
    return 0;
}

static int do_next(struct wish *w, struct buf *out, struct error *e) {
    if (!w->times.cron && !w->times.interval)
        return fail(e, -EINVAL, "next: give --cron \"0 3 * * *\" or --interval R/.../P1D");
    return repeat_times_put(w->dir, &w->times, w->json, out, e);
}

/* ---- what is done to them ---- */

static const struct deed {
    const char *name, *method, *path, *done;
} deeds[] = {
    {"pause",  "POST",   "/pause",  "is paused"},
    {"resume", "POST",   "/resume", "goes on"  },
    {"run",    "POST",   "/run",    NULL       },
    {"remove", "DELETE", "",        "is gone"  },
};

static int do_one(struct wish *w, const struct deed *d, const char *word, struct buf *out, struct error *e) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    struct json_tree *root;
    int64_t id = 0;
    int r = repeat_pick(w->dir, &w->all, word, &id, e);
    buf_printf(&path, "/api/v1/repeats/%lld%s", (long long)id, d->path);
    if (r >= 0) r = server_ask(w->dir, d->method, path.s, NULL, &answer, e);
    if (r < 0) return r;
    if (w->json && answer.len)
        buf_puts(out, answer.s);
    else if (d->done)
        buf_printf(out, "repeat %s %s\n", word, d->done);
    if (w->json || d->done) return 0;
    r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return r;
    buf_printf(out, "repeat %s: job %.0f\n", word, job_number(root, "job"));
    json_tree_free(root);
    return 0;
}

/* What one refuses does not save the others. */
static int do_all(const struct command *self, struct wish *w, const struct deed *d, struct buf *out) {
    int code = EXIT_DONE;
    for (size_t i = 1; i < w->flags.word_count; i++) {
        struct error e;
        int r = do_one(w, d, w->flags.words[i], out, &e);
        if (r < 0) code = command_fail(self, &e, error_exit_code(r));
    }
    return code;
}

static int check_words(const struct wish *w, const struct deed **ret, struct error *e) {
    const char *verb = w->flags.word_count ? w->flags.words[0] : "list";
    struct nearest guess = {.typed = verb};
    static const char *const looks[] = {"list", "show", "next", "edit"};
    for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
        nearest_offer(&guess, looks[i]);
        if (strcmp(verb, looks[i]) != 0) continue;
        size_t want = i == 1 || i == 3 ? 2 : w->flags.word_count ? 1 : 0;
        if (w->flags.word_count < want) return fail(e, -EINVAL, "show: which one? `gpumgr repeat` lists them");
        if (w->flags.word_count > want) return fail(e, -EINVAL, "%s: what is \"%.60s\"?", verb, w->flags.words[want]);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(deeds); i++) {
        nearest_offer(&guess, deeds[i].name);
        if (strcmp(verb, deeds[i].name) != 0) continue;
        if (w->flags.word_count < 2) return fail(e, -EINVAL, "%s: which one? `gpumgr repeat` lists them", verb);
        *ret = &deeds[i];
        return 0;
    }
    if (guess.best) return fail(e, -EINVAL, "what is \"%.60s\"? did you mean %s?", verb, guess.best);
    return fail(e, -EINVAL, "what is \"%.60s\"? --help lists the words", verb);
}

static int run_others(const struct command *self, int argc, char **argv) {
    AUTO(buf_done) struct buf out = {0};
    struct wish w = {0};
    struct loaded loaded = {0};
    struct error e;
    const struct deed *deed = NULL;
    const struct flag own[] = {
        {.name = "json",     .kind = FLAG_YES,  .into = &w.json          },
        {.name = "cron",     .kind = FLAG_TEXT, .into = &w.times.cron    },
        {.name = "interval", .kind = FLAG_TEXT, .into = &w.times.interval},
        {.name = "zone",     .kind = FLAG_TEXT, .into = &w.times.zone    },
    };
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &w.flags, &e);
    if (r == 0 && w.flags.wants_help) return command_help(self);
    if (r == 0) r = check_words(&w, &deed, &e);
    const char *verb = w.flags.word_count ? w.flags.words[0] : "list";
    if (r == 0 && strcmp(verb, "next") != 0 && (w.times.cron || w.times.interval || w.times.zone))
        r = fail(&e, -EINVAL, "%s: takes no --cron, --interval and --zone; `gpumgr submit` does", verb);
    if (r == 0) r = settings_load(&w.flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    w.dir = loaded.values.dir;
    int code = EXIT_DONE;
    if (deed)
        code = do_all(self, &w, deed, &out);
    else
        r = *verb == 's' ? do_show(&w, &out, &e) : *verb == 'n' ? do_next(&w, &out, &e) : do_list(&w, &out, &e);
    json_tree_free(w.all);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    int written = output_exit(&out);
    return code != EXIT_DONE ? code : written;
}

static int run(const struct command *self, int argc, char **argv) {
    int count;
    char **words = command_verb_first(argc, argv, &count);
    int code = strcmp(words[0], "edit") == 0 ? repeat_edit_run(self, count, words) : run_others(self, argc, argv);
    free(words);
    return code;
}

const struct command command_repeat = {
    .name = "repeat",
    .summary = "Jobs that come again: list, show, change, pause, resume, run, remove",
    .run = run,
    .words = "list show next pause resume run remove edit",
    .help =
        "usage: gpumgr repeat [list] [--json]\n"
        "       gpumgr repeat show REPEAT [--json]\n"
        "       gpumgr repeat pause|resume|run|remove REPEAT...\n"
        "       gpumgr repeat edit REPEAT [FLAGS] [--] [COMMAND [WORDS]]\n"
        "       gpumgr repeat next --cron EXPRESSION|--interval INTERVAL [--zone ZONE] [--json]\n"
        "\n"
        "A repeating job is handed in with `gpumgr submit --cron` or `--interval`; at each of its times it becomes a\n"
        "job of the queue, once, whatever restarts or clocks do. REPEAT is its number or its name. `show` has its\n"
        "next five times and what became of the last ones; `next` the next times of an expression that is not handed\n"
        "in yet. `run` makes a job now, beside its times. Times that pass while it is paused are not made good. You\n"
        "may do this to your own, administrators to everybody's.\n"
        "\n"
        "`edit` says what is to change, the rest stays; it shows each change and the next five times. Times that are\n"
        "decided stay as they are, and the new ones count from now on. What it runs is handed in anew: as you, with "
        "the\n"
        "environment and the directory that you are in; a change of its times alone leaves that as it was. Only the\n"
        "owner changes one.\n"
        "\n"
        "  --cron EXPRESSION    minute, hour, day, month, weekday: \"0 3 * * mon-fri\"; @daily and the like\n"
        "  --interval INTERVAL  ISO 8601: R/2026-11-15T03:00:00+01:00/PT12H\n"
        "  --zone ZONE          Europe/Berlin (the server's own)\n"
        "  --late TIME          with edit: a time that nobody could keep is made good for so long\n"
        "  --overlap POLICY     with edit: when the job before is not over: skip, queue, cancel\n"
        "  --unset FLAG         with edit: what it was given is taken away: time-limit, image, env.NAME; may be given\n"
        "                       again\n"
        "  --dry-run            with edit: only say what would change\n"
        "\n"
        "With edit, what it runs, too:\n"
        "\n" JOB_HELP_GPUS JOB_HELP_LIMITS JOB_HELP_RUN
        "  --file FILE          with edit: what is to change, as JSON (docs/jobs.md)\n"
        "  --json               as JSON\n"
        "  --dir DIR            the instance to ask\n"
        "\n"
        "example: gpumgr repeat edit nightly --cron \"0 4 * * *\" --time-limit 2h\n",
};
