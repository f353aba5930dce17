/* `gpumgr report`: what was held and what was used of it, how long people waited, and the energy, by user. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_tree.h"
#include "client/command.h"
#include "client/job_table.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"
#include "client/when.h"
#include "model/duration.h"

#define WEEK_NS (7 * 24 * 3600 * NS_PER_S)

struct wish {
    bool json;
    const char *from, *to, *last;
};

/* clang-format off */
static const struct table_column columns[] = {
    {.title = "USER", .shrink = 8},
    {.title = "RUNS", .to_the_right = true},
    {.title = "RUNNING", .to_the_right = true, .drop = 4},
    {.title = "FAILED", .to_the_right = true, .drop = 3},
    {.title = "HELD GPU-h", .to_the_right = true},
    {.title = "USED GPU-h", .to_the_right = true},
    {.title = "IDLE", .to_the_right = true},
    {.title = "MEAN WAIT", .to_the_right = true, .drop = 1},
    {.title = "ENERGY", .to_the_right = true, .drop = 2},
};
/* clang-format on */

static void put_hours(struct table_cell *c, double hours) {
    if (!isnan(hours)) snprintf(c->text, sizeof c->text, hours < 10 ? "%.2f" : "%.0f", hours);
}

static void put_energy(struct table_cell *c, double joules) {
    if (!isnan(joules)) snprintf(c->text, sizeof c->text, "%.2f kWh", joules / 3.6e6);
}

static void put_count(struct table_cell *c, double n) {
    if (!isnan(n)) snprintf(c->text, sizeof c->text, "%.0f", n);
}

static void put_row(const struct json_tree *j, const char *name, struct table_cell *c) {
    double idle = job_number(j, "idle_ratio");
    snprintf(c[0].text, sizeof c[0].text, "%s", name);
    put_count(&c[1], job_number(j, "runs"));
    put_count(&c[2], job_number(j, "running"));
    put_count(&c[3], job_number(j, "failed"));
    if (job_number(j, "failed") > 0) c[3].colour = JOB_RED;
    put_hours(&c[4], job_number(j, "gpu_hours_held"));
    put_hours(&c[5], job_number(j, "gpu_hours_used"));
    if (!isnan(idle)) snprintf(c[6].text, sizeof c[6].text, "%.0f%%", idle * 100);
    if (idle > 0.5) c[6].colour = JOB_YELLOW;
    job_span(job_number(j, "wait_s_mean"), c[7].text, sizeof c[7].text);
    put_energy(&c[8], job_number(j, "energy_joules"));
}

static void print(const struct json_tree *root, struct buf *out) {
    const struct json_tree *rows = json_tree_get(root, "users"), *total = json_tree_get(root, "total");
    struct screen screen = screen_look();
    struct table *t = calloc(1, sizeof *t);
    char from[WHEN_TEXT], to[WHEN_TEXT];
    int64_t now_ns = clock_real_ns();
    if (!t) abort();
    when_text((int64_t)(job_number(root, "from") * 1e9), now_ns, from);
    when_text((int64_t)(job_number(root, "to") * 1e9), now_ns, to);
    buf_printf(out, "From %s to %s: %s.\n", from, job_number(root, "to") * 1e9 >= (double)now_ns ? "now" : to,
               job_text(root, "sentence"));
    t->columns = columns;
    t->column_count = ARRAY_LEN(columns);
    for (size_t i = 0; i < json_tree_count(rows) && t->row_count < TABLE_ROWS_MAX - 1; i++)
        put_row(json_tree_at(rows, i), job_text(json_tree_at(rows, i), "user"), t->cell[t->row_count++]);
    if (t->row_count > 1) put_row(total, "all", t->cell[t->row_count++]);
    if (t->row_count) {
        buf_putc(out, '\n');
        table_print(t, screen.width, screen.has_colour, out);
    }
    free(t);
}

static int span(const struct wish *w, int64_t *from_ns, int64_t *to_ns, struct error *e) {
    int64_t now_ns = clock_real_ns(), last_ns = WEEK_NS;
    int r = 0;
    if (w->last && (w->from || w->to)) return fail(e, -EINVAL, "--last: does not go with --from and --to");
    if (w->last && duration_parse(w->last, &last_ns, e) < 0) return fail_in(e, -EINVAL, "--last");
    *to_ns = now_ns;
    *from_ns = now_ns - last_ns;
    if (w->from) r = when_parse("from", w->from, now_ns, from_ns, e);
    if (r == 0 && w->to) r = when_parse("to", w->to, now_ns, to_ns, e);
    if (r == 0 && *from_ns >= *to_ns) return fail(e, -EINVAL, "--from: is not before --to");
    return r;
}

static int run(const struct command *self, int argc, char **argv) {
    struct wish w = {0};
    const struct flag own[] = {
        {.name = "json", .kind = FLAG_YES,  .into = &w.json},
        {.name = "from", .kind = FLAG_TEXT, .into = &w.from},
        {.name = "to",   .kind = FLAG_TEXT, .into = &w.to  },
        {.name = "last", .kind = FLAG_TEXT, .into = &w.last},
    };
    AUTO(buf_done) struct buf answer = {0}, out = {0};
    struct flags flags;
    struct loaded loaded = {0};
    struct json_tree *root;
    int64_t from_ns = 0, to_ns = 0;
    struct error e;
    char path[128];
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0) r = flags_no_words(&flags, &e);
    if (r == 0) r = span(&w, &from_ns, &to_ns, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    snprintf(path, sizeof path, "/api/v1/report?from=%lld&to=%lld", (long long)(from_ns / NS_PER_S),
             (long long)(to_ns / NS_PER_S));
    r = server_ask(loaded.values.dir, "GET", path, NULL, &answer, &e);
    if (r >= 0 && w.json) {
        if (answer.len && answer.s[answer.len - 1] != '\n') buf_putc(&answer, '\n');
        return output_exit(&answer);
    }
    if (r >= 0) r = json_tree_parse(answer.s, answer.len, &root, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    print(root, &out);
    json_tree_free(root);
    return output_exit(&out);
}

const struct command command_report = {
    .name = "report",
    .summary = "Say what was held and used, by user",
    .run = run,
    .help =
        "usage: gpumgr report [--last TIME | --from MOMENT [--to MOMENT]] [--json] [--dir DIR]\n"
        "\n"
        "GPU-hours that jobs held against those in which their GPUs worked, how long they waited, and the energy, by\n"
        "user. What was held and did nothing is what others waited for. Counted by whole hours.\n"
        "\n"
        "  --last TIME    up to now: 24h, 7d\n"
        "  --from MOMENT  since \"2026-11-01 00:00\"\n"
        "  --to MOMENT    until then (now)\n"
        "  --json         as the API has it\n"
        "  --dir DIR      the instance to ask\n"
        "\n"
        "example: gpumgr report --last 24h\n",
};
