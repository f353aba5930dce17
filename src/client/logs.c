/* `gpumgr logs`: what a job wrote, and what it goes on to write. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/command.h"
#include "client/job_follow.h"
#include "client/job_id.h"
#include "client/job_line.h"
#include "client/job_news.h"
#include "client/job_table.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"
#include "model/job.h"

enum { LOOK_S = 1 };
#define FIRST_NS (5 * NS_PER_S) /* the node says something within this, or has nothing to say */
#define QUIET_NS NS_PER_S       /* of a log that is still empty it may say nothing at all */

struct wish {
    bool follow;
    double attempt;
    struct job_id id;
};

/* ---- which run ---- */

static void count_member(void *ctx, const char *key, const struct json_tree *value) { ++*(size_t *)ctx; }

/* A number that people see as the element's place, or -1. */
static int64_t place_of(const struct json_tree *job, bool is_sweep, int64_t number) {
    const struct job_spec spec = {.array = job_text(job, "array")};
    double total = job_number(json_tree_get(job, "elements"), "total");
    if (is_sweep) return number >= 1 && (double)number <= total ? number - 1 : -1;
    return job_element_find(&spec, number);
}

static int find_element(const struct wish *w, const struct json_tree *job, uint32_t *ret, struct error *e) {
    size_t sweeps = 0;
    json_tree_each(json_tree_get(job, "sweep"), count_member, &sweeps);
    bool is_array = sweeps || *job_text(job, "array");
    long long id = w->id.job;
    if (!is_array && w->id.element >= 0) return fail(e, -EINVAL, "job %lld is no array: it has one log, %lld", id, id);
    if (is_array && w->id.element < 0)
        return fail(e, -EINVAL, "job %lld is an array: name one of it, as in %lld.3", id, id);
    int64_t place = is_array ? place_of(job, sweeps > 0, w->id.element) : 0;
    if (place < 0) return fail(e, -EINVAL, "job %lld has no number %lld", id, (long long)w->id.element);
    *ret = (uint32_t)place;
    return 0;
}

/* The server knows which run is meant. */
static int find(const char *dir, const struct wish *w, struct job_news *news, uint32_t *ret_place, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    struct json_tree *root;
    char path[64];
    snprintf(path, sizeof path, "/api/v1/jobs/%lld", (long long)w->id.job);
    int r = server_ask(dir, "GET", path, NULL, &answer, e);
    if (r < 0) return r;
    r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return fail_in(e, r, "the server's answer");
    r = find_element(w, root, ret_place, e);
    if (r >= 0 && !job_news_read(root, w->id.element, news))
        r = fail(e, -EPROTO, "the server's answer is of another version");
    json_tree_free(root);
    return r;
}

/* ---- showing ---- */

static void wait_for_more(struct job_follow *f, struct job_watch *watch, bool is_busy) {
    struct pollfd p[] = {
        {.fd = job_follow_fd(f),                 .events = POLLIN},
        {.fd = watch ? job_watch_fd(watch) : -1, .events = POLLIN},
    };
    poll(p, ARRAY_LEN(p), is_busy ? 0 : FOLLOW_AGAIN_MS);
}

/* By the server, which asks the machine where it ran: for an earlier try, and for jobs of other machines. */
static int show_by_server(const char *dir, const struct wish *w, struct error *e) {
    uint64_t offset = 0;
    for (;;) {
        AUTO(buf_done) struct buf path = {0}, part = {0};
        buf_printf(&path, "/api/v1/jobs/%lld/log?offset=%llu", (long long)w->id.job, (unsigned long long)offset);
        if (w->id.element >= 0) buf_printf(&path, "&element=%lld", (long long)w->id.element);
        if (w->attempt > 0) buf_printf(&path, "&attempt=%.0f", w->attempt);
        int r = server_ask(dir, "GET", path.s, NULL, &part, e);
        if (r < 0) return r;
        if (!part.len) return 0;
        offset += part.len;
        r = output_write(&part);
        if (r < 0) return r == -EPIPE ? 0 : fail_errno(e, -r, "cannot write the output");
    }
}

/* What there is now. 1: this machine's node does not know. */
static int show_now(struct job_follow *f, struct error *e) {
    int64_t begin_ns = clock_boot_ns(), told_ns = 0;
    bool has_log = false;
    for (;;) {
        AUTO(buf_done) struct buf log = {0};
        int r = job_follow_step(f, &log, e);
        if (r < 0) return r;
        int written = output_write(&log);
        if (written < 0) return written == -EPIPE ? 0 : fail_errno(e, -written, "cannot write the output");
        has_log |= (r & FOLLOW_LOG) != 0;
        if ((r & FOLLOW_RUN) && !told_ns) told_ns = clock_boot_ns();
        if (f->is_log_over || (has_log && f->offset >= f->total)) return 0;
        if (told_ns && !has_log && clock_boot_ns() - told_ns > QUIET_NS) return 0;
        bool is_silent = !told_ns && !has_log && clock_boot_ns() - begin_ns > FIRST_NS;
        if (job_follow_fd(f) < 0 || is_silent) return 1;
        wait_for_more(f, NULL, r & FOLLOW_LOG);
    }
}

/* Until the job is over, whoever is restarted meanwhile. */
static int show_on(struct job_follow *f, const struct wish *w, const char *dir, struct job_news *news,
                   struct error *e) {
    struct job_watch *watch;
    struct job_line line;
    int64_t over_ns = 0;
    int r = job_watch_new(dir, w->id.job, w->id.element, LOOK_S, &watch, e);
    if (r < 0) return r;
    job_line_init(&line);
    for (;;) {
        AUTO(buf_done) struct buf log = {0}, text = {0};
        struct error ignored;
        r = job_follow_step(f, &log, e);
        if (r < 0) break;
        bool is_busy = r & FOLLOW_LOG;
        if (r & FOLLOW_RUN) job_watch_now(watch);
        if (log.len) job_line_clear(&line);
        if (output_write(&log) < 0) break;
        if (job_watch_take(watch, news, &ignored) > 0 && news->is_over && !over_ns) over_ns = clock_boot_ns();
        job_line_waiting(&w->id, news, clock_real_ns(), &text);
        if (text.len) job_line_put(&line, text.s, text.s);
        if (news->is_over && (f->is_log_over || clock_boot_ns() - over_ns > FIRST_NS)) break;
        wait_for_more(f, watch, is_busy);
    }
    job_line_done(&line);
    job_watch_free(watch);
    return r < 0 ? r : 0;
}

static int show(const struct command *self, const char *dir, const struct wish *w) {
    struct job_follow f = {.dir = dir, .job = w->id.job, .has_log = true, .talk = JOBS_TALK_CLOSED};
    struct job_news news = {0};
    struct error e = {0};
    char name[JOB_ID_TEXT];
    job_id_text(&w->id, name);
    int r = find(dir, w, &news, &f.element, &e);
    if (r >= 0 && !news.attempt && news.is_over)
        r = fail(&e, -ENOENT, "job %s never ran: it is %s", name, news.state);
    else if (r >= 0 && !news.attempt && !w->follow)
        r = fail(&e, -ENOENT, "job %s has not begun: it is %s; -f waits for it", name, news.state);
    if (r >= 0) r = w->follow ? show_on(&f, w, dir, &news, &e) : w->attempt > 0 ? 1 : show_now(&f, &e);
    if (r > 0) r = show_by_server(dir, w, &e);
    job_follow_close(&f);
    return r < 0 ? command_fail(self, &e, error_exit_code(r)) : EXIT_DONE;
}

static int run(const struct command *self, int argc, char **argv) {
    static char follow[] = "--follow";
    struct wish w = {0};
    const struct flag own[] = {
        {.name = "attempt", .kind = FLAG_NUMBER, .into = &w.attempt, .min = 1, .max = 1000},
        {.name = "follow",      .kind = FLAG_YES,                         .into = &w.follow                           },
    };
    struct flags flags;
    struct loaded loaded = {0};
    struct error e;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-f") == 0) argv[i] = follow;
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0 && flags.word_count != 1)
        r = fail(&e, -EINVAL, "which job? Name one, as in 17, or 17.3 for number 3 of an array");
    if (r == 0 && w.follow && w.attempt > 0) r = fail(&e, -EINVAL, "--attempt: one that is over cannot be followed");
    if (r == 0) r = job_id_parse(flags.words[0], &w.id, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    return show(self, loaded.values.dir, &w);
}

const struct command command_logs = {
    .name = "logs",
    .summary = "Show what a job wrote",
    .run = run,
    .words = "JOB",
    .help =
        "usage: gpumgr logs [-f] JOB[.NUMBER] [--attempt N] [--dir DIR]\n"
        "\n"
        "What the job wrote to standard output and standard error, in the order in which it did. A log belongs to the\n"
        "job's user: others get none. Of a log that grew too large (jobs.log_max_mb) the middle is gone, and a line\n"
        "says so.\n"
        "\n"
        "  --follow     -f: go on until the job is over; one that waits is waited for\n"
        "  --attempt N  of one that was tried again: the Nth try (the last)\n"
        "  --dir DIR    the instance to ask\n"
        "\n"
        "example: gpumgr logs -f 17\n",
};
