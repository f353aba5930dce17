/* `gpumgr repeat edit`: changes a repeating job. The server says what a change makes of it; its times are the server's to keep, what
 * it runs goes the way of every job, over the node's socket, where it is sealed for the one who asks. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/nearest.h"
#include "client/begin.h"
#include "client/job_table.h"
#include "client/job_wish.h"
#include "client/output.h"
#include "client/repeat.h"
#include "client/server_ask.h"

#define BUSY_NS (10 * NS_PER_S) /* one of its times is being decided: not for long */
#define AGAIN_NS (100 * NS_PER_MS)

struct wish {
    const char *word;
    struct flag_list unset;
    const struct job_wish *job;
    int64_t id;
    struct buf patch;        /* what is to change, as it was asked for */
    struct json_tree *shown; /* the server's answer: what that means */
};

/* ---- what is asked for ---- */

/* Flags whose keys may be taken away. */
static const struct {
    const char *flag, *key;
} unsets[] = {
    {"array",      "array"      },
    {"cwd",        "cwd"        },
    {"env",        "env"        },
    {"image",      "image"      },
    {"label",      "labels"     },
    {"memory",     "memory"     },
    {"mount",      "mounts"     },
    {"name",       "name"       },
    {"notify",     "notify"     },
    {"of",         "scope"      },
    {"over",       "over"       },
    {"priority",   "priority"   },
    {"retries",    "retries"    },
    {"share",      "share"      },
    {"sweep",      "sweep"      },
    {"time-limit", "time_limit" },
    {"ui",         "ui"         },
    {"zone",       "repeat.zone"},
};

/* "time-limit", or a variable or a label of its own: "env.A". */
static int unset_path(const char *word, char *ret, size_t room, struct error *e) {
    char head[64];
    const char *dot = strchr(word, '.');
    struct nearest guess = {.typed = word};
    snprintf(head, sizeof head, "%.*s", dot ? (int)(dot - word) : 60, word);
    for (size_t i = 0; i < ARRAY_LEN(unsets); i++) {
        nearest_offer(&guess, unsets[i].flag);
        if (strcmp(head, unsets[i].flag) != 0) continue;
        bool has_parts = strcmp(head, "env") == 0 || strcmp(head, "label") == 0;
        if (dot && (!has_parts || !dot[1])) break;
        snprintf(ret, room, "%s%.200s", unsets[i].key, dot ? dot : "");
        return 0;
    }
    return guess.best ? fail(e, -EINVAL, "--unset: \"%.60s\" cannot be taken away; did you mean %s?", word, guess.best)
                      : fail(e, -EINVAL, "--unset: \"%.60s\" cannot be taken away", word);
}

static int put_unset(struct json_tree *patch, const char *word, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    struct json_tree *one;
    char path[300];
    int r = unset_path(word, path, sizeof path, e);
    if (r < 0) return r;
    char *dot = strchr(path, '.');
    if (dot) *dot = 0;
    json_open(&b, '{');
    json_key(&b, path);
    if (dot) json_open(&b, '{');
    if (dot) json_key(&b, dot + 1);
    json_nil(&b);
    if (dot) json_close(&b, '}');
    json_close(&b, '}');
    r = json_tree_parse(b.s, b.len, &one, e);
    if (r < 0) return fail(e, -EINVAL, "--unset: \"%.60s\" is no name", word);
    json_tree_lay_over(patch, one);
    json_tree_free(one);
    return 0;
}

static void tree_free(struct json_tree **j) { json_tree_free(*j); }

static int ask(const struct wish *w, bool is_dry, struct buf *answer, struct error *e) {
    int64_t until_ns = clock_boot_ns() + BUSY_NS;
    char path[80];
    snprintf(path, sizeof path, "/api/v1/repeats/%lld%s", (long long)w->id, is_dry ? "?dry_run=1" : "");
    for (;;) {
        int r = server_ask_once(w->job->loaded.values.dir, "PUT", path, &w->patch, answer, e);
        if (r != -EAGAIN || clock_boot_ns() > until_ns) return r;
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_NS}, NULL);
    }
}

/* The whole job as it is handed in: its record says itself which repeat it changes, so that the seal covers that, too. */
static int put_job(const struct wish *w, struct buf *document, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    AUTO(tree_free) struct json_tree *edits = NULL;
    buf_printf(&text, "{\"repeat\":{\"edits\":%lld}}", (long long)w->id);
    int r = json_tree_parse(text.s, text.len, &edits, e);
    if (r < 0) return r;
    struct json_tree *job = (struct json_tree *)(uintptr_t)json_tree_get(w->shown, "job"); /* of a tree that is ours */
    json_tree_lay_over(job, edits);
    buf_clear(document);
    json_tree_write(job, document);
    return 0;
}

/* Some keys become the whole job: what they do not say is what the server has. */
static int amend(void *ctx, struct buf *document, struct error *e) {
    struct wish *w = ctx;
    AUTO(buf_done) struct buf answer = {0};
    AUTO(tree_free) struct json_tree *patch = NULL;
    AUTO(tree_free) struct json_tree *all = NULL;
    int r = json_tree_parse(document->s, document->len, &patch, e);
    if (r < 0) return r;
    for (size_t i = 0; r >= 0 && i < w->unset.count; i++) r = put_unset(patch, w->unset.of[i], e);
    if (r < 0) return r;
    json_tree_write(patch, &w->patch);
    if (strcmp(w->patch.s, "{}") == 0)
        return fail(e, -EINVAL, "what is to change? as in: gpumgr repeat edit %.40s --cron \"0 4 * * *\"", w->word);
    r = repeat_pick(w->job->loaded.values.dir, &all, w->word, &w->id, e);
    if (r >= 0) r = ask(w, true, &answer, e);
    if (r >= 0) r = json_tree_parse(answer.s, answer.len, &w->shown, e);
    if (r < 0) {
        job_flags_rename(&w->job->job, e);
        return r;
    }
    return put_job(w, document, e);
}

/* ---- what is shown ---- */

static void value_text(const char *key, const struct json_tree *v, struct buf *b) {
    char words[400];
    const char *text = json_tree_text(v, NULL);
    if (!v || json_tree_is_null(v)) {
        buf_puts(b, "(none)");
    } else if (strcmp(key, "command") == 0) {
        job_command(v, words, sizeof words);
        buf_puts(b, words);
    } else if (text) {
        buf_puts(b, text);
    } else {
        json_tree_write(v, b);
    }
}

static void put_changes(const struct json_tree *changes, struct buf *out) {
    for (size_t i = 0; i < json_tree_count(changes); i++) {
        const struct json_tree *c = json_tree_at(changes, i);
        const char *key = job_text(c, "key");
        buf_printf(out, "  %s: ", strncmp(key, "repeat.", 7) == 0 ? key + 7 : key);
        value_text(key, json_tree_get(c, "from"), out);
        buf_puts(out, " -> ");
        value_text(key, json_tree_get(c, "to"), out);
        buf_putc(out, '\n');
    }
}

static void put_all(const struct wish *w, struct buf *out) {
    char cwd[PATH_MAX];
    put_changes(json_tree_get(w->shown, "changes"), out);
    if (json_tree_is_true(json_tree_get(w->shown, "seals")) && getcwd(cwd, sizeof cwd))
        buf_printf(out, "What it runs is yours anew: with the environment that you have here%s%s.\n",
                   *job_text(json_tree_get(w->shown, "job"), "cwd") ? "" : ", in ",
                   *job_text(json_tree_get(w->shown, "job"), "cwd") ? "" : cwd);
    repeat_times_lines(json_tree_get(w->shown, "times"), out);
}

/* ---- the command ---- */

/* By the node where it runs something else, since only there it can be sealed with what surrounds us. */
static int carry_out(const struct command *self, const struct wish *w) {
    AUTO(buf_done) struct buf answer = {0};
    struct error e;
    int64_t id = 0, until_ns = clock_boot_ns() + BUSY_NS;
    bool seals = json_tree_is_true(json_tree_get(w->shown, "seals"));
    int r;
    if (!seals) {
        r = ask(w, false, &answer, &e);
    } else {
        do r = jobs_talk_submit(w->job->loaded.values.dir, &w->job->batch, &id, &e);
        while (r == -EAGAIN && clock_boot_ns() < until_ns &&
               nanosleep(&(struct timespec){.tv_nsec = AGAIN_NS}, NULL) == 0);
    }
    if (r < 0) job_flags_rename(&w->job->job, &e);
    return r < 0 ? command_fail(self, &e, error_exit_code(r)) : EXIT_DONE;
}

static int show_and_do(const struct command *self, const struct wish *w) {
    AUTO(buf_done) struct buf out = {0};
    bool is_any = json_tree_count(json_tree_get(w->shown, "changes")) > 0;
    if (w->job->json) {
        json_tree_drop(w->shown, "job");
        json_tree_write(w->shown, &out);
        buf_putc(&out, '\n');
    } else {
        put_all(w, &out);
    }
    if (w->job->is_dry || !is_any) {
        if (!w->job->json && !is_any) buf_printf(&out, "repeat %s: nothing changes\n", w->word);
        return output_exit(&out);
    }
    if (!w->job->json && output_write(&out) < 0) return EXIT_FAILED;
    int code = carry_out(self, w);
    if (code != EXIT_DONE) return code;
    if (!w->job->json) buf_clear(&out);
    if (!w->job->json) buf_printf(&out, "repeat %s is changed\n", w->word);
    return output_exit(&out);
}

int repeat_edit_run(const struct command *self, int argc, char **argv) {
    AUTO(job_wish_done) struct job_wish job = {0};
    struct wish w = {.job = &job};
    struct error e;
    const struct flag more[] = {
        {.name = "unset", .kind = FLAG_LIST, .into = &w.unset},
    };
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return command_help(self);
    if (argc < 2 || argv[1][0] == '-' || !*argv[1]) {
        fail(&e, -EINVAL, "edit: which one? `gpumgr repeat` lists them");
        return command_fail(self, &e, EXIT_INPUT);
    }
    w.word = argv[1];
    job.job.is_partial = true;
    job.amend = amend;
    job.amend_ctx = &w;
    argv[1] = argv[0]; /* the flags begin behind the name */
    int code = job_wish_begin(self, argc - 1, argv + 1, more, ARRAY_LEN(more), &job);
    if (code == COMMAND_GOES_ON) code = show_and_do(self, &w);
    buf_done(&w.patch);
    json_tree_free(w.shown);
    return code;
}
