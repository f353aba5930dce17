#include "client/job_wish.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_tree.h"
#include "client/begin.h"
#include "client/job_table.h"
#include "client/output.h"
#include "client/repeat.h"
#include "client/server_ask.h"
#include "client/when.h"
#include "model/job_json.h"
#include "model/repeat.h"

enum { FILE_MAX = 16 << 20, FLAGS_ROOM = JOB_FLAGS_MAX + 24 };

void job_wish_done(struct job_wish *w) {
    buf_done(&w->document);
    jobs_batch_done(&w->batch);
}

/* ---- what is asked for ---- */

static int read_file(const char *path, struct buf *ret, struct error *e) {
    bool is_stdin = strcmp(path, "-") == 0; /* not by its name: another user may have opened it for us */
    int r =
        is_stdin ? file_read_fd(STDIN_FILENO, "standard input", FILE_MAX, ret, e) : file_read(path, FILE_MAX, ret, e);
    return r < 0 ? fail_in(e, -EINVAL, "--file") : 0;
}

static const char *my_shell(void) {
    const char *shell = getenv("SHELL");
    if (shell && shell[0] == '/') return shell;
    const struct passwd *p = getpwuid(geteuid());
    return p && p->pw_shell && p->pw_shell[0] == '/' ? p->pw_shell : "/bin/sh";
}

static void take_record(void *ctx, const void *record, size_t len) {
    const struct buf b = {.s = (char *)(uintptr_t)record, .len = len};
    jobs_batch_add(ctx, &b);
}

static int read_jobs(struct job_wish *w, struct error *e) {
    char cwd[PATH_MAX];
    int64_t now_ns = clock_real_ns();
    if (!getcwd(cwd, sizeof cwd)) return fail_errno(e, errno, "the directory you are in");
    struct job_flags_here here = {.cwd = cwd, .shell = my_shell(), .now_ns = now_ns};
    int r;
    if (w->job.file) {
        r = read_file(w->job.file, &w->document, e);
        if (r >= 0) r = job_flags_over(&w->job, w->flags.command, w->flags.command_count, &here, &w->document, e);
    } else {
        r = job_flags_json(&w->job, w->flags.command, w->flags.command_count, &here, &w->document, e);
    }
    if (r >= 0 && w->amend) r = w->amend(w->amend_ctx, &w->document, e);
    if (r < 0) return r;
    r = job_json_records(w->document.s, w->document.len, now_ns, take_record, &w->batch, e);
    if (r >= 0) return 0;
    if (w->job.file)
        fail_in(e, r, "%.80s", strcmp(w->job.file, "-") == 0 ? "standard input" : w->job.file);
    else
        job_flags_rename(&w->job, e);
    return r;
}

int job_wish_begin(const struct command *self, int argc, char **argv, const struct flag *more, size_t more_count,
                   struct job_wish *w) {
    struct flag rows[FLAGS_ROOM];
    struct error e;
    size_t count = 0;
    job_flags_rows(&w->job, rows, &count);
    rows[count++] = (struct flag){.name = "dry-run", .kind = FLAG_YES, .into = &w->is_dry};
    rows[count++] = (struct flag){.name = "json", .kind = FLAG_YES, .into = &w->json};
    for (size_t i = 0; i < more_count && count < FLAGS_ROOM; i++) rows[count++] = more[i];
    int r = flags_parse(argc, argv, rows, count, FLAGS_SETTINGS | FLAGS_COMMAND, &w->flags, &e);
    if (r == 0 && w->flags.wants_help) return command_help(self);
    if (r == 0) r = settings_load(&w->flags, LOAD_LOOSE, &w->loaded, &e);
    if (r == 0) r = read_jobs(w, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*w->loaded.warning) output_note(w->loaded.warning);
    return COMMAND_GOES_ON;
}

/* ---- what becomes of it ---- */

/* One that may take its whole time would not be finished when it is to be. */
static void put_late(const struct json_tree *j, double starts, struct buf *out) {
    double by = job_number(j, "finish_by"), limit = job_number(j, "time_limit_s");
    if (starts > by)
        buf_puts(out, "; that is behind its deadline");
    else if (starts + limit > by)
        buf_puts(out, "; if it took all of its time limit, it would miss its deadline");
    buf_putc(out, '\n');
}

static void put_plan(const struct json_tree *j, const char *node, struct buf *out) {
    char wants[96], gpus[96], when[WHEN_TEXT];
    double at = job_number(j, "starts_at");
    int64_t now_ns = clock_real_ns();
    job_wants(j, wants, sizeof wants);
    job_list(json_tree_get(j, "gpu_names"), gpus, sizeof gpus);
    double elements = job_number(j, "elements");
    if (elements > 1)
        buf_printf(out, "%s (%.0f runs, each %s): the first ", job_text(j, "name"), elements, wants);
    else
        buf_printf(out, "%s (%s): ", job_text(j, "name"), wants);
    if (json_tree_is_true(json_tree_get(j, "starts_now"))) {
        buf_printf(out, "would start now%s%s on %s", *gpus ? " on GPU " : "", gpus, node);
        put_late(j, (double)now_ns / 1e9, out);
        return;
    }
    buf_puts(out, "would wait");
    if (job_number(j, "place") > 0) buf_printf(out, ", place %.0f", job_number(j, "place"));
    if (*job_text(j, "why")) buf_printf(out, ": %s", job_text(j, "why"));
    if (at > 0) when_text((int64_t)(at * 1e9), now_ns, when);
    if (at > 0) buf_printf(out, "; starts about %s", when);
    if (*job_text(j, "sooner")) buf_printf(out, "; sooner: %s", job_text(j, "sooner"));
    put_late(j, at, out);
}

static int print_plan(const struct command *self, const struct buf *answer) {
    AUTO(buf_done) struct buf out = {0};
    struct json_tree *root;
    struct error e;
    if (json_tree_parse(answer->s, answer->len, &root, &e) < 0) return command_fail(self, &e, EXIT_FAILED);
    const struct json_tree *jobs = json_tree_get(root, "jobs");
    size_t steps = 1, count = json_tree_count(jobs);
    for (size_t i = 0; i < count; i++) {
        double step = job_number(json_tree_at(jobs, i), "step");
        if (step > (double)steps && step <= (double)count) steps = (size_t)step;
    }
    for (size_t step = 1; step <= steps; step++)
        for (size_t i = 0; i < count; i++) {
            const struct json_tree *j = json_tree_at(jobs, i);
            if (steps > 1 && job_number(j, "step") != (double)step) continue;
            if (steps > 1) buf_printf(&out, "%zu. ", step);
            put_plan(j, job_text(root, "node"), &out);
        }
    json_tree_free(root);
    return output_exit(&out);
}

static bool repeat_of(const struct job_wish *w, struct job_spec *spec, struct repeat_spec *ret) {
    struct error ignored;
    return w->batch.count == 1 && job_decode(w->batch.records.s, w->batch.len[0], spec, &ignored) >= 0 &&
           spec->repeat.count && repeat_spec_read(&spec->repeat, ret, &ignored) >= 0;
}

bool job_wish_repeats(const struct job_wish *w) {
    struct job_spec spec;
    struct repeat_spec repeat;
    return repeat_of(w, &spec, &repeat);
}

int job_wish_plan(const struct command *self, const struct job_wish *w) {
    AUTO(buf_done) struct buf answer = {0};
    struct error e;
    int r = server_ask(w->loaded.values.dir, "POST", "/api/v1/jobs?dry_run=1", &w->document, &answer, &e);
    if (r < 0 && !w->job.file) job_flags_rename(&w->job, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    struct job_spec spec;
    struct repeat_spec repeat;
    if (w->json || !repeat_of(w, &spec, &repeat)) return w->json ? output_exit(&answer) : print_plan(self, &answer);
    AUTO(buf_done) struct buf out = {0};
    const struct repeat_times times = {repeat.cron, repeat.interval, repeat.zone};
    r = repeat_times_put(w->loaded.values.dir, &times, false, &out, &e);
    if (r < 0 && !w->job.file) job_flags_rename(&w->job, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    return output_exit(&out);
}

int job_wish_submit(const struct command *self, const struct job_wish *w, int64_t *ret_first) {
    struct error e;
    int r = jobs_talk_submit(w->loaded.values.dir, &w->batch, ret_first, &e);
    if (r < 0 && !w->job.file) job_flags_rename(&w->job, &e);
    return r < 0 ? command_fail(self, &e, error_exit_code(r)) : EXIT_DONE;
}
