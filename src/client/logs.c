/* `gpumgr logs`: what a job wrote, and what it goes on to write. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/command.h"
#include "client/job_follow.h"
#include "client/job_id.h"
#include "client/job_line.h"
#include "client/job_news.h"
#include "client/job_pick.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"
#include "net/http_client.h"

enum { LOOK_S = 1 };
#define FIRST_NS (5 * NS_PER_S) /* the node says something within this, or has nothing to say */
#define QUIET_NS NS_PER_S       /* of a log that is still empty it may say nothing at all */

struct wish {
    bool follow;
    double attempt;
    struct job_id id;
};

/* ---- showing ---- */

static void wait_for_more(struct job_follow *f, struct job_watch *watch, bool is_busy) {
    struct pollfd p[] = {
        {.fd = job_follow_fd(f),                 .events = POLLIN},
        {.fd = watch ? job_watch_fd(watch) : -1, .events = POLLIN},
    };
    poll(p, ARRAY_LEN(p), is_busy ? 0 : FOLLOW_AGAIN_MS);
}

/* A part of the log by the server, which asks the machine where it ran. */
struct part {
    struct buf bytes;
    uint64_t next; /* where the part behind it begins; of what was cut off before this one a line tells */
    bool is_over;  /* nothing will follow */
};

static void part_done(struct part *p) { buf_done(&p->bytes); }

static int ask_part(const char *dir, const struct wish *w, int attempt, uint64_t offset, struct part *ret,
                    struct error *e) {
    AUTO(buf_done) struct buf path = {0};
    struct http_wanted field[] = {{.name = "X-Log-Offset"}, {.name = "X-Log-Total"}, {.name = "X-Log-Over"}};
    buf_printf(&path, "/api/v1/jobs/%lld/log?offset=%llu", (long long)w->id.job, (unsigned long long)offset);
    if (w->id.element >= 0) buf_printf(&path, "&element=%lld", (long long)w->id.element);
    if (attempt > 0) buf_printf(&path, "&attempt=%d", attempt);
    AUTO(buf_done) struct buf bytes = {0};
    int r = server_ask_fields(dir, "GET", path.s, NULL, &bytes, field, ARRAY_LEN(field), e);
    if (r < 0) return r;
    uint64_t at = strtoull(field[0].value, NULL, 10), total = strtoull(field[1].value, NULL, 10);
    if (at > offset && bytes.len) job_follow_put_gap(at - offset, &ret->bytes);
    buf_add(&ret->bytes, bytes.s, bytes.len);
    ret->next = (at > offset ? at : offset) + bytes.len;
    ret->is_over = strcmp(field[2].value, "1") == 0 && ret->next >= total;
    return 0;
}

/* For an earlier try, and for jobs of other machines: what there is now. */
static int show_by_server(const char *dir, const struct wish *w, struct error *e) {
    uint64_t offset = 0;
    for (;;) {
        AUTO(part_done) struct part part = {0};
        int r = ask_part(dir, w, (int)w->attempt, offset, &part, e);
        if (r < 0) return r;
        if (!part.bytes.len) return 0;
        offset = part.next;
        r = output_write(&part.bytes);
        if (r < 0) return r == -EPIPE ? 0 : fail_errno(e, -r, "cannot write the output");
    }
}

/* Until a job of another machine is over; a machine that is away is waited for. */
static int show_by_server_on(const char *dir, const struct wish *w, struct job_news *news, struct error *e) {
    struct job_watch *watch;
    struct job_line line;
    uint64_t offset = 0;
    int attempt = news->attempt;
    int r = job_watch_new(dir, w->id.job, w->id.element, LOOK_S, &watch, e);
    if (r < 0) return r;
    job_line_init(&line);
    for (;;) {
        AUTO(part_done) struct part part = {0};
        AUTO(buf_done) struct buf text = {0};
        struct error away = {0};
        (void)!job_watch_take(watch, news, &away);
        bool was_over = news->is_over; /* asked before the log: what is there then is all of it */
        if (news->attempt != attempt) offset = 0;
        attempt = news->attempt;
        r = attempt ? ask_part(dir, w, attempt, offset, &part, e) : 0;
        bool is_away = r == -EIO || r == -ENOTCONN || r == -EAGAIN || r == -ETIMEDOUT;
        if (r < 0 && !is_away) break;
        if (part.next > offset) offset = part.next;
        if (part.bytes.len) job_line_clear(&line);
        if (output_write(&part.bytes) < 0) break;
        if (was_over && (!attempt || part.is_over || (is_away && !news->is_running))) break;
        job_line_waiting(&w->id, news, clock_real_ns(), &text);
        if (is_away) buf_printf(&text, "job %lld: %s", (long long)w->id.job, e->text);
        if (text.len) job_line_put(&line, text.s, text.s);
        struct pollfd p = {.fd = job_watch_fd(watch), .events = POLLIN};
        if (!part.bytes.len) poll(&p, 1, FOLLOW_AGAIN_MS);
    }
    job_line_done(&line);
    job_watch_free(watch);
    return r < 0 ? r : 0;
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
    int64_t heard_ns = clock_boot_ns(); /* when there last was news of it */
    int r = job_watch_new(dir, w->id.job, w->id.element, LOOK_S, &watch, e);
    if (r < 0) return r;
    job_line_init(&line);
    for (;;) {
        AUTO(buf_done) struct buf log = {0}, text = {0};
        struct error ignored;
        r = job_follow_step(f, &log, e);
        if (r < 0) break;
        bool is_busy = r & FOLLOW_LOG, was_over = news->is_over;
        if (r & FOLLOW_RUN) job_watch_now(watch);
        if (log.len) job_line_clear(&line);
        if (output_write(&log) < 0) break;
        (void)!job_watch_take(watch, news, &ignored);
        if (is_busy || news->is_over != was_over) heard_ns = clock_boot_ns();
        job_line_waiting(&w->id, news, clock_real_ns(), &text);
        if (text.len) job_line_put(&line, text.s, text.s);
        if (news->is_over && (f->is_log_over || clock_boot_ns() - heard_ns > FIRST_NS)) break;
        wait_for_more(f, watch, is_busy);
    }
    job_line_done(&line);
    job_watch_free(watch);
    return r < 0 ? r : 0;
}

static int show(const struct command *self, const char *dir, const struct wish *w) {
    struct job_follow f = {.dir = dir, .job = w->id.job, .has_log = true, .talk = JOBS_TALK_CLOSED};
    struct job_pick pick = {0};
    struct job_news *news = &pick.news;
    struct error e = {0};
    char name[JOB_ID_TEXT];
    job_id_text(&w->id, name);
    int r = job_pick(dir, &w->id, &pick, &e);
    f.element = pick.place;
    if (r >= 0 && !news->attempt && news->is_over)
        r = fail(&e, -ENOENT, "job %s never ran: it is %s", name, news->state);
    else if (r >= 0 && !news->attempt && !w->follow)
        r = fail(&e, -ENOENT, "job %s has not begun: it is %s; -f waits for it", name, news->state);
    if (r >= 0 && w->follow)
        r = pick.is_here ? show_on(&f, w, dir, news, &e) : show_by_server_on(dir, w, news, &e);
    else if (r >= 0)
        r = w->attempt > 0 || !pick.is_here ? 1 : show_now(&f, &e);
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
