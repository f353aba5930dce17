/* `gpumgr queue`: the GPUs and who has them, who waits and why, who runs; and taking a GPU out of service. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/number.h"
#include "client/command.h"
#include "client/job_list.h"
#include "client/job_table.h"
#include "client/server_ask.h"
#include "client/settings_load.h"
#include "client/watch.h"
#include "model/occupancy.h"

struct wish {
    bool json, watch;
    double every_s;
    const char *reason;
    struct job_list list; /* of those that wait */
};

/* ---- the GPUs ---- */

/* clang-format off */
static const struct table_column gpu_columns[] = {
    {.title = "GPU"},
    {.title = "MACHINE", .drop = 3, .shrink = 8},
    {.title = "STATE"},
    {.title = "JOB", .drop = 1},
    {.title = "USER", .drop = 1, .shrink = 6},
    {.title = "NAME", .shrink = 8},
    {.title = "FOR", .to_the_right = true, .drop = 2},
    {.title = "LEFT", .to_the_right = true, .drop = 2},
    {.title = "BUSY", .to_the_right = true, .drop = 5},
    {.title = "MEMORY", .to_the_right = true, .drop = 4},
};
/* clang-format on */

static const struct json_tree *running_job(const struct json_tree *root, double id, const char *uuid) {
    const struct json_tree *list = json_tree_get(root, "running");
    for (size_t i = 0; i < json_tree_count(list); i++) {
        const struct json_tree *j = json_tree_at(list, i), *uuids = json_tree_get(j, "gpu_uuids");
        for (size_t k = 0; job_number(j, "id") == id && k < json_tree_count(uuids); k++)
            if (strcmp(json_tree_text(json_tree_at(uuids, k), ""), uuid) == 0) return j;
    }
    return NULL;
}

static void put_memory(const struct json_tree *g, struct table_cell *c) {
    char used[24], total[24];
    double bytes = job_number(g, "memory_bytes"), of = job_number(g, "memory_total_bytes");
    if (!(of > 0)) return;
    number_bytes(bytes > 0 ? bytes : 0, used, sizeof used);
    number_bytes(of, total, sizeof total);
    snprintf(c->text, sizeof c->text, "%s of %s", used, total);
}

/* Nothing is started for a client of watchmen: it has its GPUs, and comes by itself. */
static bool is_client(const struct json_tree *j) { return strcmp(job_text(j, "origin"), "watchmen") == 0; }

static void put_job(const struct json_tree *j, int64_t now_ns, struct table_cell *c) {
    snprintf(c[2].text, sizeof c[2].text, "%s", is_client(j) ? "granted" : job_text(j, "state"));
    c[2].colour = JOB_GREEN;
    job_cell_id.put(j, now_ns, &c[3]);
    job_cell_user.put(j, now_ns, &c[4]);
    job_cell_name.put(j, now_ns, &c[5]);
    job_cell_took.put(j, now_ns, &c[6]);
    job_cell_left.put(j, now_ns, &c[7]);
    job_cell_busy.put(j, now_ns, &c[8]);
}

/* Nobody's, or somebody's outside the queue: then the page says whose. */
static void put_verdict(const struct json_tree *g, int64_t now_ns, struct table_cell *c) {
    const char *verdict = job_text(g, "verdict");
    double pid = job_number(g, "pid"), since = job_number(g, "since");
    snprintf(c[2].text, sizeof c[2].text, "%s", verdict);
    if (strcmp(verdict, occupancy_name(OCCUPANCY_FREE)) == 0) {
        c[2].colour = JOB_DIM;
        return;
    }
    c[2].colour = JOB_YELLOW;
    snprintf(c[4].text, sizeof c[4].text, "%.64s", job_text(g, "user"));
    if (pid > 0) snprintf(c[5].text, sizeof c[5].text, "pid %.0f", pid);
    if (since > 0) job_span((double)now_ns / 1e9 - since, c[6].text, sizeof c[6].text);
}

/* "; warned, will be ended at 14:30:00" */
static void outside_words(const struct json_tree *g, char *ret, size_t room) {
    const char *step = job_text(g, "outside");
    double ends = job_number(g, "ends");
    char at[40] = "";
    if (ends > 0) number_time_here((int64_t)(ends * 1e9), clock_real_ns(), at, sizeof at);
    ret[0] = 0;
    if (*step) snprintf(ret, room, "; %s%s%s", step, *at ? ", will be ended at " : "", at);
}

static void gpu_below(const struct json_tree *g, char *ret, size_t room) {
    char done[96];
    outside_words(g, done, sizeof done);
    const char *verdict = job_text(g, "verdict"), *cordon = job_text(g, "cordon"), *who = job_text(g, "cordoned_by");
    if (*cordon || strcmp(verdict, occupancy_name(OCCUPANCY_CORDONED)) == 0)
        snprintf(ret, room, "out of service%s%s%s%s", *who ? " by " : "", who, *cordon ? ": " : "", cordon);
    else if (strcmp(verdict, "free") != 0 && (*done || !json_tree_count(json_tree_get(g, "held_by"))))
        snprintf(ret, room, "GPU %s %s%s", job_text(g, "name"), job_text(g, "verdict_text"), done);
}

static bool has_machines(const struct json_tree *gpus) {
    const char *first = job_text(json_tree_at(gpus, 0), "node");
    for (size_t i = 1; i < json_tree_count(gpus); i++)
        if (strcmp(job_text(json_tree_at(gpus, i), "node"), first) != 0) return true;
    return false;
}

/* One line a GPU; several where it is shared. */
static void gpu_rows(const struct json_tree *root, struct table *t, int64_t now_ns) {
    const struct json_tree *gpus = json_tree_get(root, "gpus");
    bool with_machine = has_machines(gpus);
    for (size_t i = 0; i < json_tree_count(gpus); i++) {
        const struct json_tree *g = json_tree_at(gpus, i), *holders = json_tree_get(g, "held_by");
        const char *client = "";
        size_t k = 0;
        do {
            if (t->row_count == TABLE_ROWS_MAX) return;
            struct table_cell *c = t->cell[t->row_count++];
            const struct json_tree *j =
                running_job(root, json_tree_number(json_tree_at(holders, k), NAN), job_text(g, "uuid"));
            snprintf(c[0].text, sizeof c[0].text, "%s", job_text(g, "name"));
            if (with_machine) snprintf(c[1].text, sizeof c[1].text, "%s", job_text(g, "node"));
            if (j && is_client(j)) client = job_text(j, "state_text");
            if (j)
                put_job(j, now_ns, c);
            else
                put_verdict(g, now_ns, c);
            put_memory(g, &c[9]);
        } while (++k < json_tree_count(holders));
        gpu_below(g, t->below[t->row_count - 1], sizeof t->below[0]);
        if (!*t->below[t->row_count - 1]) snprintf(t->below[t->row_count - 1], sizeof t->below[0], "%s", client);
    }
}

static void print_gpus(const struct json_tree *root, const struct screen *screen, struct buf *out) {
    struct table *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->columns = gpu_columns;
    t->column_count = ARRAY_LEN(gpu_columns);
    gpu_rows(root, t, clock_real_ns());
    table_print(t, screen->width, screen->has_colour, out);
    free(t);
}

/* ---- all of it ---- */

static void summary(const struct json_tree *root, bool is_asked, struct buf *out) {
    const struct json_tree *gpus = json_tree_get(root, "gpus");
    size_t n = json_tree_count(gpus), free_ = 0, held = 0;
    double waiting = job_number(root, "waiting_count");
    for (size_t i = 0; i < n; i++) {
        const struct json_tree *g = json_tree_at(gpus, i);
        bool is_held = json_tree_count(json_tree_get(g, "held_by")) > 0;
        held += is_held;
        free_ += !is_held && strcmp(job_text(g, "verdict"), occupancy_name(OCCUPANCY_FREE)) == 0;
    }
    if (isnan(waiting)) waiting = (double)json_tree_count(json_tree_get(root, "waiting"));
    buf_printf(out, "%zu GPU%s: %zu free, %zu with jobs", n, n == 1 ? "" : "s", free_, held);
    if (n > free_ + held) buf_printf(out, ", %zu not to be had", n - free_ - held);
    buf_printf(out, ". %.0f %sjob%s wait%s.\n", waiting, is_asked ? "such " : "", waiting == 1 ? "" : "s",
               waiting == 1 ? "s" : "");
}

static const struct job_cell *const waiting_cells[] = {
    &job_cell_place, &job_cell_id,  &job_cell_state,    &job_cell_user,   &job_cell_name,
    &job_cell_wants, &job_cell_age, &job_cell_priority, &job_cell_starts,
};

static void print(const struct json_tree *root, bool is_asked, const struct screen *screen, struct buf *out) {
    const struct json_tree *waiting = json_tree_get(root, "waiting");
    double more = job_number(root, "waiting_count") - (double)json_tree_count(waiting);
    summary(root, is_asked, out);
    if (json_tree_count(json_tree_get(root, "gpus"))) {
        buf_putc(out, '\n');
        print_gpus(root, screen, out);
    }
    if (!json_tree_count(waiting)) return;
    buf_putc(out, '\n');
    job_table(waiting, "place", waiting_cells, ARRAY_LEN(waiting_cells), job_below, screen, out);
    if (more > 0) buf_printf(out, "and %.0f more wait\n", more);
}

static int show(const char *dir, const struct wish *w, struct buf *out, struct error *e) {
    AUTO(buf_done) struct buf answer = {0}, path = {0}, query = {0};
    struct json_tree *root;
    buf_puts(&path, "/api/v1/queue");
    job_list_query(&w->list, &query);
    if (query.len) buf_puts(&path, query.s);
    int r = server_ask(dir, "GET", path.s, NULL, &answer, e);
    if (r < 0) return r;
    if (w->json) {
        buf_add(out, answer.s, answer.len);
        if (answer.len && answer.s[answer.len - 1] != '\n') buf_putc(out, '\n');
        return 0;
    }
    r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return fail_in(e, r, "the server's answer");
    struct screen screen = screen_look();
    print(root, query.len > 0, &screen, out);
    json_tree_free(root);
    return 0;
}

/* ---- out of service ---- */

/* A name (3, or 3:1 of an instance) or a UUID, or its beginning, as the UUID. */
static int find_gpu(const char *dir, const char *word, char *ret, size_t room, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    struct json_tree *root;
    size_t found = 0;
    bool is_name = strspn(word, "0123456789:") == strlen(word) && strlen(word) < 10;
    int r = server_ask(dir, "GET", "/api/v1/queue", NULL, &answer, e);
    if (r < 0) return r;
    r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return fail_in(e, r, "the server's answer");
    const struct json_tree *gpus = json_tree_get(root, "gpus");
    for (size_t i = 0; i < json_tree_count(gpus); i++) {
        const struct json_tree *g = json_tree_at(gpus, i);
        const char *uuid = job_text(g, "uuid");
        bool is_it = is_name ? strcmp(job_text(g, "name"), word) == 0
                             : strncasecmp(uuid, word, strlen(word)) == 0 ||
                                   (strncmp(uuid, "GPU-", 4) == 0 && strncasecmp(uuid + 4, word, strlen(word)) == 0);
        if (is_it && found++ == 0) snprintf(ret, room, "%s", uuid);
    }
    size_t n = json_tree_count(gpus);
    json_tree_free(root);
    if (found == 1) return 0;
    if (found) return fail(e, -EINVAL, "%.60s is the name of %zu GPUs here; give the UUID", word, found);
    return fail(e, -EINVAL, "there is no GPU %.60s; the queue has %zu", word, n);
}

static int cordon(const struct command *self, const char *dir, const struct wish *w, bool is_in, const char *word) {
    AUTO(buf_done) struct buf path = {0}, body = {0}, answer = {0}, out = {0};
    char uuid[100];
    struct error e;
    int r = find_gpu(dir, word, uuid, sizeof uuid, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    server_path(&path, "/api/v1/gpus/", uuid, "/cordon");
    json_open(&body, '{');
    json_pair_str(&body, "reason", w->reason ? w->reason : "");
    json_close(&body, '}');
    r = server_ask(dir, is_in ? "DELETE" : "PUT", path.s, is_in ? NULL : &body, &answer, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    buf_printf(&out, "GPU %s (%s) is %s.\n", word, uuid,
               is_in ? "in service" : "out of service: what runs there goes on, nothing new begins");
    return output_exit(&out);
}

/* ---- the command ---- */

struct watched {
    const char *dir;
    const struct wish *wish;
};

static int show_again(void *ctx, struct buf *out, struct error *e) {
    const struct watched *w = ctx;
    return show(w->dir, w->wish, out, e);
}

static int check_words(const struct flags *f, const struct wish *w, struct error *e) {
    const char *first = f->word_count ? f->words[0] : NULL;
    bool is_verb = first && (strcmp(first, "cordon") == 0 || strcmp(first, "uncordon") == 0);
    if (first && !is_verb)
        return fail(e, -EINVAL, "what is \"%.60s\"? there are `queue cordon GPU` and `queue uncordon GPU`", first);
    if (is_verb && f->word_count != 2) return fail(e, -EINVAL, "%s: name one GPU, as in `queue %s 3`", first, first);
    if (w->reason && (!first || strcmp(first, "cordon") != 0))
        return fail(e, -EINVAL, "--reason: only `queue cordon` has one");
    if (first && (w->list.name || w->list.labels.count))
        return fail(e, -EINVAL, "--%s: for the list of those that wait", w->list.name ? "name" : "label");
    return 0;
}

static int run(const struct command *self, int argc, char **argv) {
    struct wish w = {0};
    size_t count = 3;
    struct flag own[5] = {
        {.name = "watch",   .kind = FLAG_MAYBE,   .into = &w.every_s, .min = 0.1, .max = 3600, .given = &w.watch},
        {.name = "json",      .kind = FLAG_YES,         .into = &w.json                          },
        {.name = "reason",.kind = FLAG_TEXT,.into = &w.reason},
    };
    AUTO(buf_done) struct buf out = {0};
    struct flags flags;
    struct loaded loaded = {0};
    struct error e;
    job_list_rows(&w.list, own, &count);
    int r = flags_parse(argc, argv, own, count, FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0) r = check_words(&flags, &w, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    if (flags.word_count)
        return cordon(self, loaded.values.dir, &w, strcmp(flags.words[0], "uncordon") == 0, flags.words[1]);
    struct watched watched = {loaded.values.dir, &w};
    if (w.watch) return watch_show(w.every_s, w.json, show_again, &watched);
    r = show(loaded.values.dir, &w, &out, &e);
    return r < 0 ? command_fail(self, &e, error_exit_code(r)) : output_exit(&out);
}

const struct command command_queue = {
    .name = "queue",
    .summary = "Show the queue: who has which GPU, who waits, and why",
    .run = run,
    .words = "cordon uncordon",
    .help =
        "usage: gpumgr queue [--name NAME] [--label KEY=VALUE] [--watch [SECONDS]] [--json] [--dir DIR]\n"
        "       gpumgr queue cordon GPU [--reason TEXT]\n"
        "       gpumgr queue uncordon GPU\n"
        "\n"
        "First the GPUs: free, or the job that has it, for how long and how much of its time limit is left; or why\n"
        "the queue does not give it away (foreign: somebody uses it outside the queue). Then those that wait, in\n"
        "the order of the queue: what they asked for, when they will start as far as can be told, and below why they\n"
        "wait and what would start them sooner.\n"
        "\n"
        "`cordon` takes a GPU out of service: what runs on it goes on, nothing new is started on it until `uncordon`.\n"
        "That also says that a GPU which is kept back for a fault (an XID, memory that waits for a reset) is sound.\n"
        "\n"
        "  --name NAME        of those that wait only those that are called so; * is anything, ? one character\n"
        "  --label LABEL      of those that wait only those with this label: team=vision, or team for any value\n"
        "  --watch [SECONDS]  again every second, or every SECONDS; Ctrl-C ends it\n"
        "  --json             as the API has it (with --watch one object a line)\n"
        "  --reason TEXT      why it is out of service, for the others\n"
        "  --dir DIR          the instance to ask\n"
        "\n"
        "example: gpumgr queue cordon 3 --reason \"fan to be replaced\"\n",
};
