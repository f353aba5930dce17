/* `gpumgr service`: jobs that stay up. What may be done to one is the server's to say; a new one and a new revision go the way of
 * every job, over the node's socket. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "client/begin.h"
#include "client/job_flags.h"
#include "client/job_table.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/service_wish.h"

/* ---- showing ---- */

static void put(struct table_cell *c, const char *text) { snprintf(c->text, sizeof c->text, "%.90s", text); }
static void put_number(struct table_cell *c, double n) {
    if (isfinite(n))
        snprintf(c->text, sizeof c->text, "%.0f", n);
    else
        put(c, "-");
}

static void cell_id(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    put_number(c, job_number(j, "id"));
}
static void cell_name(const struct json_tree *j, int64_t now_ns, struct table_cell *c) { put(c, job_text(j, "name")); }
static void cell_user(const struct json_tree *j, int64_t now_ns, struct table_cell *c) { put(c, job_text(j, "user")); }

static void cell_state(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    const char *state = job_text(j, "state");
    put(c, state);
    if (strcmp(state, "healthy") == 0 && strcmp(job_text(j, "probe"), "none") == 0) put(c, "running");
    if (strcmp(state, "healthy") == 0) c->colour = JOB_GREEN;
    if (strcmp(state, "unhealthy") == 0 || strcmp(state, "given up") == 0) c->colour = JOB_RED;
    if (strcmp(state, "backing off") == 0 || strcmp(state, "yielded") == 0) c->colour = JOB_YELLOW;
}

static void cell_since(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    job_span((double)now_ns / NS_PER_S - job_number(j, "healthy_since"), c->text, sizeof c->text);
}
static void cell_job(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    put_number(c, job_number(j, "job"));
}
static void cell_gpus(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    put_number(c, job_number(j, "gpus"));
}
static void cell_restarts(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    put_number(c, job_number(j, "restarts"));
}
static void cell_revision(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    double next = job_number(j, "next_revision"), is = job_number(j, "revision");
    if (isfinite(next) && next != is)
        snprintf(c->text, sizeof c->text, "%.0f > %.0f", is, next);
    else
        put_number(c, is);
}

static void below(const struct json_tree *j, int64_t now_ns, char *ret, size_t room) {
    double in_s = job_number(j, "starts_at") - (double)now_ns / NS_PER_S;
    const char *text = job_text(j, "text"), *check = job_text(j, "check_text");
    size_t n = 0;
    ret[0] = 0;
    if (*text) n = (size_t)snprintf(ret, room, "%s", text);
    if (n < room && *check && !strstr(text, check))
        n += (size_t)snprintf(ret + n, room - n, "%s%s", n ? "; " : "", check);
    if (n < room && in_s > 0) snprintf(ret + n, room - n, "%sstarts again in %.0f s", n ? "; " : "", ceil(in_s));
}

static const struct job_cell columns[] = {
    {{"ID", true, 0, 0},       cell_id      },
    {{"NAME", false, 0, 8},    cell_name    },
    {{"STATE", false, 0, 0},   cell_state   },
    {{"SINCE", true, 3, 0},    cell_since   },
    {{"USER", false, 2, 6},    cell_user    },
    {{"GPUS", true, 4, 0},     cell_gpus    },
    {{"JOB", true, 0, 0},      cell_job     },
    {{"REVISION", true, 5, 0}, cell_revision},
    {{"RESTARTS", true, 1, 0}, cell_restarts},
};

static void print_list(const struct json_tree *list, struct buf *out) {
    const struct job_cell *cells[ARRAY_LEN(columns)];
    struct screen screen = screen_look();
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) cells[i] = &columns[i];
    if (!json_tree_count(list))
        buf_puts(out, "There is no service yet; `gpumgr service add NAME -- COMMAND` makes one.\n");
    else
        job_table(list, NULL, cells, ARRAY_LEN(cells), below, &screen, out);
}

static void line(struct buf *out, const char *name, const char *value) {
    if (*value) buf_printf(out, "%-10s %s\n", name, value);
}

static void print_health(const struct json_tree *j, struct buf *out) {
    const struct json_tree *checks = json_tree_get(j, "checks");
    size_t count = json_tree_count(checks);
    char probe[80] = "", strip[80] = "";
    const struct json_tree *h = json_tree_get(json_tree_get(j, "service"), "health");
    if (*job_text(h, "http"))
        snprintf(probe, sizeof probe, "GET %.50s at port %.0f", job_text(h, "http"), job_number(h, "port"));
    else if (isfinite(job_number(h, "tcp")))
        snprintf(probe, sizeof probe, "port %.0f", job_number(h, "tcp"));
    else if (json_tree_get(h, "command"))
        job_command(json_tree_get(h, "command"), probe, sizeof probe);
    if (!*probe) snprintf(probe, sizeof probe, "none: it counts as healthy while it runs");
    line(out, "check", probe);
    for (size_t i = count > 60 ? count - 60 : 0, n = 0; i < count && n + 1 < sizeof strip; i++, n++) {
        strip[n] = json_tree_is_true(json_tree_get(json_tree_at(checks, i), "ok")) ? '+' : '!';
        strip[n + 1] = 0;
    }
    line(out, "checks", strip);
    line(out, "last", job_text(j, "check_text"));
}

static void print_one(const struct json_tree *j, struct buf *out) {
    char text[240], gpus[96];
    const struct json_tree *jobs = json_tree_get(j, "jobs"), *revisions = json_tree_get(j, "revisions");
    const struct json_tree *s = json_tree_get(j, "service");
    snprintf(text, sizeof text, "%.60s (%.0f) of %.40s on %.40s", job_text(j, "name"), job_number(j, "id"),
             job_text(j, "user"), job_text(j, "node"));
    line(out, "service", text);
    line(out, "state", job_text(j, "state"));
    line(out, "", job_text(j, "text"));
    snprintf(text, sizeof text, "%s, pause %s to %s%s", job_text(s, "restart"), job_text(s, "pause"),
             job_text(s, "pause_most"),
             json_tree_is_true(json_tree_get(s, "yield")) ? ", yields to a higher priority" : "");
    line(out, "restart", text);
    snprintf(text, sizeof text, "%.0f", job_number(j, "restarts"));
    line(out, "restarts", text);
    print_health(j, out);
    for (size_t i = 0; i < json_tree_count(jobs); i++) {
        const struct json_tree *one = json_tree_at(jobs, i);
        job_list(json_tree_get(one, "gpu_names"), gpus, sizeof gpus);
        snprintf(text, sizeof text, "%.0f %s%s%s%s%.120s", job_number(one, "id"), job_text(one, "state"),
                 *gpus ? " on GPU " : "", gpus, *job_text(one, "why") ? ": " : "", job_text(one, "why"));
        line(out, "job", text);
    }
    for (size_t i = 0; i < json_tree_count(revisions); i++) {
        const struct json_tree *v = json_tree_at(revisions, i), *job = json_tree_get(v, "job");
        char command[120];
        job_command(json_tree_get(job, "command"), command, sizeof command);
        snprintf(text, sizeof text, "%.0f%s by %.30s: %.60s%s%.100s", job_number(v, "number"),
                 job_number(v, "number") == job_number(j, "revision") ? " (serves)" : "", job_text(v, "by"),
                 job_text(job, "image"), *job_text(job, "image") && *command ? " " : "", command);
        line(out, "revision", text);
    }
}

/* ---- verbs ---- */

struct plain {
    bool json;
    struct loaded loaded;
    const char *word; /* the service, or NULL */
};

static int plain_begin(const struct command *self, int argc, char **argv, bool needs_word, struct plain *p) {
    const struct flag own[] = {
        {.name = "json", .kind = FLAG_YES, .into = &p->json}
    };
    static struct flags flags; /* the word points into argv */
    struct error e;
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0 && needs_word && !flags.word_count) r = fail(&e, -EINVAL, "which service? `gpumgr service` lists them");
    if (r == 0 && flags.word_count > (needs_word ? 1u : 0u))
        r = fail(&e, -EINVAL, "what is \"%.60s\"?", flags.words[needs_word ? 1 : 0]);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &p->loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*p->loaded.warning) output_note(p->loaded.warning);
    p->word = flags.word_count ? flags.words[0] : NULL;
    return COMMAND_GOES_ON;
}

static int show(const struct command *self, const struct plain *p, const char *path) {
    AUTO(buf_done) struct buf answer = {0}, out = {0};
    struct json_tree *root;
    struct error e;
    int r = server_ask(p->loaded.values.dir, "GET", path, NULL, &answer, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    if (p->json) return output_exit(&answer);
    if (json_tree_parse(answer.s, answer.len, &root, &e) < 0) return command_fail(self, &e, EXIT_FAILED);
    if (p->word)
        print_one(root, &out);
    else
        print_list(json_tree_get(root, "services"), &out);
    json_tree_free(root);
    return output_exit(&out);
}

static int run_list(const struct command *self, int argc, char **argv) {
    struct plain p = {0};
    int code = plain_begin(self, argc, argv, false, &p);
    return code != COMMAND_GOES_ON ? code : show(self, &p, "/api/v1/services");
}

static int run_show(const struct command *self, int argc, char **argv) {
    AUTO(buf_done) struct buf path = {0};
    struct plain p = {0};
    int code = plain_begin(self, argc, argv, true, &p);
    if (code != COMMAND_GOES_ON) return code;
    server_path(&path, "/api/v1/services/", p.word, "");
    return show(self, &p, path.s);
}

struct deed {
    const char *verb, *method, *path, *done;
};
static const struct deed deeds[] = {
    {"suspend", "POST",   "/suspend", "is suspended"    },
    {"stop",    "POST",   "/suspend", "is suspended"    },
    {"resume",  "POST",   "/resume",  "is started again"},
    {"restart", "POST",   "/restart", "is started anew" },
    {"remove",  "DELETE", "",         "is being removed"},
};

static int run_deed(const struct command *self, const struct deed *d, int argc, char **argv) {
    AUTO(buf_done) struct buf path = {0}, answer = {0}, out = {0};
    struct plain p = {0};
    struct error e;
    int code = plain_begin(self, argc, argv, true, &p);
    if (code != COMMAND_GOES_ON) return code;
    server_path(&path, "/api/v1/services/", p.word, d->path);
    int r = server_ask(p.loaded.values.dir, d->method, path.s, NULL, &answer, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    if (p.json) return output_exit(&answer);
    buf_printf(&out, "service %s %s\n", p.word, d->done);
    return output_exit(&out);
}

static bool job_of(const struct buf *answer, char *ret, size_t room) {
    struct json_tree *root;
    struct error ignored;
    if (json_tree_parse(answer->s, answer->len, &root, &ignored) < 0) return false;
    double job = job_number(root, "job");
    json_tree_free(root);
    snprintf(ret, room, "%.0f", job);
    return isfinite(job);
}

/* `gpumgr logs` of the job that serves: with all of its flags. */
static int run_logs(const struct command *self, int argc, char **argv) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    struct loaded loaded = {0};
    struct flags none = {0};
    struct error e;
    char job[32], *words[64] = {argv[0]};
    int at = 0, count = 1;
    const char *dir = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) return command_help(self);
        if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc) dir = argv[i + 1];
        if (!at && argv[i][0] != '-' && (i == 1 || strcmp(argv[i - 1], "--dir") != 0)) at = i;
    }
    int r = at ? 0 : fail(&e, -EINVAL, "which service? `gpumgr service` lists them");
    if (r == 0 && argc > 60) r = fail(&e, -E2BIG, "more words than anybody needs");
    if (r == 0 && !*dir) r = settings_load(&none, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    server_path(&path, "/api/v1/services/", argv[at], "");
    r = server_ask(*dir ? dir : loaded.values.dir, "GET", path.s, NULL, &answer, &e);
    if (r >= 0 && !job_of(&answer, job, sizeof job))
        r = fail(&e, -ENOENT, "service %.60s has no job now; `gpumgr jobs` has those that are over", argv[at]);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    words[count++] = job;
    for (int i = 1; i < argc; i++)
        if (i != at) words[count++] = argv[i];
    return command_logs.run(&command_logs, count, words);
}

static int run_verb(const struct command *self, int argc, char **words) {
    const char *verb = words[0];
    struct error e;
    if (strcmp(verb, "list") == 0) return run_list(self, argc, words);
    if (strcmp(verb, "show") == 0) return run_show(self, argc, words);
    if (strcmp(verb, "logs") == 0) return run_logs(self, argc, words);
    if (strcmp(verb, "add") == 0 || strcmp(verb, "update") == 0) return service_wish_run(self, argc, words);
    for (size_t i = 0; i < ARRAY_LEN(deeds); i++)
        if (strcmp(verb, deeds[i].verb) == 0) return run_deed(self, &deeds[i], argc, words);
    fail(&e, -EINVAL, "what is \"%.40s\"? there is list, show, add, update, suspend, resume, restart, logs, remove",
         verb);
    return command_fail(self, &e, EXIT_INPUT);
}

static int run(const struct command *self, int argc, char **argv) {
    int count;
    char **words = command_verb_first(argc, argv, &count);
    int code = run_verb(self, count, words);
    free(words);
    return code;
}

const struct command command_service = {
    .name = "service",
    .summary = "Jobs that stay up: restarted, checked, updated",
    .run = run,
    .words = "list show add update suspend stop resume restart logs remove",
    .help =
        "usage: gpumgr service [list] [--json]\n"
        "       gpumgr service add NAME [FLAGS] [--] COMMAND [WORDS]\n"
        "       gpumgr service update NAME [FLAGS] [--] [COMMAND [WORDS]]\n"
        "       gpumgr service show|suspend|resume|restart|remove NAME [--json]\n"
        "       gpumgr service logs NAME [-f]\n"
        "\n"
        "A service is a job that is to stay up: a notebook, a model server. It is started as soon as its GPUs are "
        "free,\n"
        "as you, in this directory and with your environment; it keeps its GPUs, is checked, and is started again "
        "when\n"
        "it ends or fails its checks, after a pause that doubles. NAME may also be its number.\n"
        "\n"
        "`update` says what is to change, the rest stays. The new one is started beside the old one, which serves on\n"
        "until the new one is healthy; one that does not get there is ended, and the old one stays. `suspend` (or "
        "stop)\n"
        "ends it and keeps it for `resume`; `remove` ends it for good.\n"
        "\n"
        "  --restart WHEN       always (the default), on-failure, never\n"
        "  --pause TIME         before it is started again (1s); it doubles up to --pause-most TIME (5m), and is\n"
        "  --pause-most TIME    forgotten after being healthy for --forget TIME (1m)\n"
        "  --forget TIME        see there\n"
        "  --give-up N          after so many restarts (10) within --within TIME (1h); 0: never\n"
        "  --within TIME        see there\n"
        "  --health CHECK       http:8000/healthz, tcp:5432 or command:TEXT, which is run beside it or in its "
        "container\n"
        "  --health-status N    the answer that http must give (any from 200 to 399)\n"
        "  --health-interval T  between two checks (10s)\n"
        "  --health-timeout T   for one check (3s)\n"
        "  --health-grace T     after a start, in which failures do not count (1m)\n"
        "  --health-failures N  in a row, then it is ended and started again (3)\n"
        "  --yield              it gives its GPUs to a waiting job of higher priority, and comes back\n"
        "  --replace            with update: the old one is ended first, where GPUs or a port do not suffice for both\n"
        "\n" JOB_HELP_GPUS JOB_HELP_RUN
        "  --file FILE          what it runs, as JSON (docs/jobs.md); flags that are given besides count instead\n"
        "  --json               {\"id\": 3}, or as the API has it\n"
        "  --dir DIR            the instance to ask\n"
        "\n"
        "example: gpumgr service add web --gpus 1 --health http:8000/healthz -- python serve.py --port 8000\n",
};
