/* `gpumgr containers`: GPU containers of this machine, also those that were started elsewhere. What may be done with one, the node
 * decides by the Unix user who asks. */
#include "client/containers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/command.h"
#include "client/jobs_talk.h"
#include "client/output.h"
#include "client/settings_load.h"
#include "model/container_spec_json.h"

enum { ANSWER_MS = 180000 };

int containers_ask(const char *dir, const struct wire_container_call *call, struct buf *ret,
                   struct wire_container_answer *ret_answer, struct error *e) {
    AUTO(jobs_talk_close) struct jobs_talk t = JOBS_TALK_CLOSED;
    AUTO(buf_done) struct buf b = {0};
    struct wire_frame f;
    wire_put_container_call(&b, call);
    int r = jobs_talk_open_at(&t, dir, CONTAINERS_SOCKET, e);
    if (r >= 0) r = jobs_talk_send(&t, &b, e);
    int64_t until_ns = clock_boot_ns() + ANSWER_MS * NS_PER_MS;
    while (r >= 0 && (r = jobs_talk_next(&t, 1000, &f, e)) == 0)
        if (clock_boot_ns() > until_ns) return fail(e, -ETIMEDOUT, "the node does not answer");
    if (r == -ECONNRESET) return fail(e, -EAGAIN, "the node does not take the question now; try again in a moment");
    if (r >= 0) r = wire_get_container_answer(&f, ret_answer, e);
    if (r < 0) return r;
    if (ret_answer->result < 0) return fail(e, ret_answer->result, "%s", ret_answer->text);
    buf_clear(ret);
    if (ret_answer->len) buf_add(ret, ret_answer->body, ret_answer->len);
    return 0;
}

/* ---- one call of the command ---- */

struct asked {
    const char *dir, *of;
    struct containers_flags flags;
    char *const *command;
    size_t words;
    double tail;
    bool is_json, follows, is_sure;
    int code; /* of a shell */
    struct buf out;
};

static int name_of(const struct asked *a, struct wire_container_call *ret, struct error *e) {
    if (strlen(a->of) >= sizeof ret->of) return fail(e, -EINVAL, "\"%.60s\" is no name or id of a container", a->of);
    snprintf(ret->of, sizeof ret->of, "%s", a->of);
    return 0;
}

static int ask(const struct asked *a, enum container_verb verb, const struct buf *record, struct buf *ret,
               struct error *e) {
    struct wire_container_call call = {.verb = (uint8_t)verb, .is_shared = a->flags.is_shared};
    struct wire_container_answer answer;
    int r = a->of ? name_of(a, &call, e) : 0;
    if (r < 0) return r;
    if (record) call.record = (const uint8_t *)record->s, call.record_len = record->len;
    return containers_ask(a->dir, &call, ret, &answer, e);
}

static int show(struct asked *a, enum container_verb verb,
                int (*print)(const struct buf *, struct buf *, struct error *), struct error *e) {
    AUTO(buf_done) struct buf list = {0};
    int r = ask(a, verb, NULL, &list, e);
    if (r < 0) return r;
    if (!a->is_json) return print(&list, &a->out, e);
    buf_add(&a->out, list.s, list.len);
    buf_putc(&a->out, '\n');
    return 0;
}

static int list(struct asked *a, struct error *e) { return show(a, CONTAINER_VERB_LIST, containers_table, e); }
static int images(struct asked *a, struct error *e) { return show(a, CONTAINER_VERB_IMAGES, containers_images, e); }

static void said(struct asked *a, const struct buf *answer, const char *done) {
    if (a->is_json) {
        buf_add(&a->out, answer->s, answer->len);
        buf_putc(&a->out, '\n');
    } else {
        buf_printf(&a->out, "container %s %s\n", a->of, done);
    }
}

static int act(struct asked *a, enum container_verb verb, const char *done, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    int r = ask(a, verb, NULL, &answer, e);
    if (r >= 0) said(a, &answer, done);
    return r;
}

static int start(struct asked *a, struct error *e) { return act(a, CONTAINER_VERB_START, "is started", e); }
static int stop(struct asked *a, struct error *e) { return act(a, CONTAINER_VERB_STOP, "is stopped", e); }
static int again(struct asked *a, struct error *e) { return act(a, CONTAINER_VERB_RESTART, "is started anew", e); }

/* One who is asked at a terminal says yes by its name. */
static int sure(struct asked *a, const char *what, struct error *e) {
    char line[160] = "";
    if (a->is_sure) return 0;
    if (!isatty(STDIN_FILENO)) return fail(e, -EINVAL, "%s %s needs --yes where nobody can be asked", what, a->of);
    fprintf(stderr, "%s %s? Type its name to go on: ", what, a->of);
    if (!fgets(line, sizeof line, stdin)) line[0] = 0;
    line[strcspn(line, "\n")] = 0;
    return strcmp(line, a->of) == 0 ? 0 : fail(e, -ECANCELED, "nothing was done");
}

static int take_away(struct asked *a, struct error *e) {
    int r = sure(a, "remove", e);
    return r < 0 ? r : act(a, CONTAINER_VERB_REMOVE, "is removed", e);
}

static int add(struct asked *a, struct error *e) {
    AUTO(buf_done) struct buf json = {0}, record = {0}, answer = {0};
    char name[160];
    if (a->flags.image) return fail(e, -EINVAL, "--image: the image stands behind add, as in add %s", a->flags.image);
    a->flags.image = a->of;
    a->of = NULL;
    int r = containers_flags_json(&a->flags, a->command, a->words, NULL, &json, e);
    if (r >= 0) r = container_spec_from_json(json.s, json.len, &record, e);
    if (r >= 0) r = ask(a, CONTAINER_VERB_ADD, &record, &answer, e);
    if (r < 0) return r;
    const char *at = strstr(answer.s, "\"name\":\"");
    snprintf(name, sizeof name, "%.*s", at ? (int)strcspn(at + 8, "\"") : 0, at ? at + 8 : "");
    a->of = name;
    said(a, &answer, "runs");
    return 0;
}

static int edit(struct asked *a, struct error *e) {
    AUTO(buf_done) struct buf old = {0}, json = {0}, record = {0}, answer = {0}, shown = {0};
    int r = ask(a, CONTAINER_VERB_SPEC, NULL, &old, e);
    if (r >= 0) r = containers_flags_json(&a->flags, a->command, a->words, &old, &json, e);
    if (r >= 0) r = container_spec_from_json(json.s, json.len, &record, e);
    if (r >= 0) r = ask(a, CONTAINER_VERB_TRY, &record, &answer, e);
    if (r >= 0 && !a->is_json) r = containers_changes(&answer, &shown, e);
    if (r < 0) return r;
    if (!a->is_json && output_write(&shown) < 0) return fail(e, -EIO, "standard output");
    r = sure(a, "change", e);
    if (r >= 0) r = ask(a, CONTAINER_VERB_EDIT, &record, &answer, e);
    if (r >= 0) said(a, &answer, "is changed");
    return r;
}

static int spec(struct asked *a, struct error *e) {
    int r = ask(a, CONTAINER_VERB_SPEC, NULL, &a->out, e);
    buf_putc(&a->out, '\n');
    return r;
}

static int logs(struct asked *a, struct error *e) {
    struct wire_container_call call = {.verb = a->follows ? CONTAINER_VERB_FOLLOW : CONTAINER_VERB_LOG,
                                       .lines = (uint32_t)a->tail};
    struct wire_container_answer answer = {0};
    int r = name_of(a, &call, e);
    if (r < 0) return r;
    return a->follows ? containers_session(a->dir, &call, &a->code, e)
                      : containers_ask(a->dir, &call, &a->out, &answer, e);
}

/* Its exit code becomes ours. */
static int shell(struct asked *a, struct error *e) {
    struct wire_container_call call = {.verb = CONTAINER_VERB_SHELL};
    int r = name_of(a, &call, e);
    return r < 0 ? r : containers_session(a->dir, &call, &a->code, e);
}

static const struct verb {
    const char *name, *word;
    int (*run)(struct asked *a, struct error *e);
    bool takes_command;
} verbs[] = {
    {"list",    NULL,    list,      false},
    {"images",  NULL,    images,    false},
    {"add",     "IMAGE", add,       true },
    {"start",   "NAME",  start,     false},
    {"stop",    "NAME",  stop,      false},
    {"restart", "NAME",  again,     false},
    {"remove",  "NAME",  take_away, false},
    {"edit",    "NAME",  edit,      true },
    {"show",    "NAME",  spec,      false},
    {"logs",    "NAME",  logs,      false},
    {"shell",   "NAME",  shell,     false},
};

static const struct verb *verb_find(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    return NULL;
}

static int check_words(const struct verb *v, const struct flags *f, bool has_command, struct error *e) {
    if (!v)
        return fail(e, -EINVAL,
                    "%.40s: there is list, images, add, start, stop, restart, remove, edit, show, logs and shell",
                    f->words[0]);
    size_t most = v->word ? 2 : 1;
    if (v->word && f->word_count < 2) return fail(e, -EINVAL, "%s what? It needs %s", v->name, v->word);
    if (f->word_count > most)
        return fail(e, -EINVAL, "%.40s: a word too many; a container's command stands behind --", f->words[most]);
    return has_command && !v->takes_command ? fail(e, -EINVAL, "%s takes no command", v->name) : 0;
}

static int run_verb(const struct command *self, const struct verb *v, struct asked *a) {
    struct error e = {0};
    int r = v->run(a, &e);
    int code = r < 0 ? command_fail(self, &e, error_exit_code(r)) : a->code ? a->code : output_exit(&a->out);
    buf_done(&a->out);
    return code;
}

/* VERB [NAME] [flags] [-- COMMAND...]: flags may stand before or behind the name. */
static int run(const struct command *self, int argc, char **argv) {
    struct asked a = {.tail = 100};
    struct flag rows[CONTAINERS_FLAGS + 4];
    size_t count = 0;
    struct flags flags;
    struct loaded loaded = {0};
    struct error e = {0};
    int words = 1;
    while (words < argc && strcmp(argv[words], "--") != 0) words++;
    containers_flags_rows(&a.flags, rows, &count);
    rows[count++] = (struct flag){.name = "json", .kind = FLAG_YES, .into = &a.is_json};
    rows[count++] = (struct flag){.name = "follow", .kind = FLAG_YES, .into = &a.follows};
    rows[count++] = (struct flag){.name = "yes", .kind = FLAG_YES, .into = &a.is_sure};
    rows[count++] = (struct flag){.name = "tail", .kind = FLAG_NUMBER, .into = &a.tail, .min = 1, .max = 2000};
    int r = flags_parse(words, argv, rows, count, FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    const struct verb *v = r < 0 ? NULL : flags.word_count ? verb_find(flags.words[0]) : &verbs[0];
    if (r == 0) r = check_words(v, &flags, words < argc, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0 || !v) return command_fail(self, &e, EXIT_INPUT);
    a.dir = loaded.values.dir;
    a.of = v->word ? flags.words[1] : NULL;
    a.command = words < argc ? argv + words + 1 : NULL;
    a.words = words < argc ? (size_t)(argc - words - 1) : 0;
    return run_verb(self, v, &a);
}

const struct command command_containers = {
    .name = "containers",
    .summary = "GPU containers of this machine: list, add, start, stop, change, remove, logs, shell",
    .run = run,
    .words = "list images add start stop restart remove edit show logs shell",
    .help = "usage: gpumgr containers [list | images] [--json]\n"
            "       gpumgr containers add IMAGE [flags] [-- COMMAND...]\n"
            "       gpumgr containers start | stop | restart | remove NAME [--yes]\n"
            "       gpumgr containers edit NAME [flags] [--yes] [-- COMMAND...]\n"
            "       gpumgr containers show NAME\n"
            "       gpumgr containers logs NAME [--tail N] [--follow]\n"
            "       gpumgr containers shell NAME\n"
            "\n"
            "All containers that have to do with GPUs, also those that were started elsewhere, running or not. One "
            "that is\n"
            "added here runs as you, never privileged, with just the GPUs it is given, from an image that the machine "
            "has.\n"
            "You may do everything with your own; with others' only if you may use Docker itself. A change makes the\n"
            "container anew: it is shown first, and the old one is kept until the new one has started.\n"
            "\n"
            "  --gpus N           so many free GPUs, or all (none). The queue leaves them alone while it runs\n"
            "  --gpu LIST         exactly these, by index or UUID: 0,3\n"
            "  --shared           on GPUs that somebody else has, too\n"
            "  --mount FROM:TO    a directory of yours in the container, FROM:TO:ro read-only; may be given again\n"
            "  --env NAME=VALUE   may be given again; with edit, NAME alone takes it away\n"
            "  --label KEY=VALUE  the same\n"
            "  --name NAME        what it is called\n"
            "  --image IMAGE      with edit: another image\n"
            "  --cwd DIR          where its command runs\n"
            "  --deadline TIME    each of its GPU tasks is to end within: 30s (docs/containers.md)\n"
            "  --period TIME      and one is to begin in each\n"
            "  --ui PORT[/PATH]   where it listens with a page of its own\n"
            "  --restart HOW      no, on-failure, on-failure:N, always, unless-stopped (no)\n"
            "  --tail N           the last N lines (100)\n"
            "  --follow           and what comes, until it ends\n"
            "  --yes              do not ask\n"
            "  --json             as JSON\n"
            "  --dir DIR          the instance to ask\n"
            "\n"
            "example: gpumgr containers add nvcr.io/nvidia/pytorch:26.01-py3 --name lab --gpus 1 --mount "
            "/data/me:/data \\\n"
            "           -- jupyter lab --port 8888\n",
};
