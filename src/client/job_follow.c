#include "client/job_follow.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"

enum { LOG_PIECE = 1 << 20 };

void job_follow_close(struct job_follow *f) { jobs_talk_close(&f->talk); }

int job_follow_fd(const struct job_follow *f) { return f->talk.fd; }

static void lose(struct job_follow *f) {
    jobs_talk_close(&f->talk);
    f->again_ns = clock_boot_ns() + FOLLOW_AGAIN_MS * NS_PER_MS;
}

static int dial(struct job_follow *f, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    if (clock_boot_ns() < f->again_ns) return -ENOTCONN;
    int r = jobs_talk_open(&f->talk, f->dir, e);
    if (r < 0) {
        f->talk.fd = -1;
        f->again_ns = clock_boot_ns() + FOLLOW_AGAIN_MS * NS_PER_MS;
        return r;
    }
    jobs_put_follow(&b, &(struct jobs_follow){.request = 1,
                                              .job = f->job,
                                              .element = f->element,
                                              .has_log = f->has_log,
                                              .attempt = f->attempt,
                                              .offset = f->offset});
    r = jobs_talk_send(&f->talk, &b, e);
    if (r < 0) lose(f);
    return r < 0 ? -ENOTCONN : 0;
}

static int take_run(struct job_follow *f, const struct wire_frame *frame, struct error *e) {
    struct wire_run run;
    int r = wire_get_run(frame, &run, e);
    if (r < 0) return r;
    if (run.key.job != f->job || run.key.element != f->element) return 0;
    if (f->attempt && run.key.attempt != f->attempt) { /* tried again: another log */
        f->offset = f->total = 0;
        f->is_log_over = false;
    } /* of one that was over before we asked the log comes first, and then this */
    f->attempt = run.key.attempt;
    f->run = run;
    f->has_run = true;
    return FOLLOW_RUN;
}

void job_follow_put_gap(uint64_t bytes, struct buf *log) {
    char size[32];
    number_bytes((double)bytes, size, sizeof size);
    buf_printf(log, "\n[gpumgr: %s of the log are not kept here: it grew beyond jobs.log_max_mb]\n", size);
}

/* What was cut off is skipped with the node's offset, and said; what was shown already is not shown twice. */
static int take_log(struct job_follow *f, const struct wire_frame *frame, struct buf *log, struct error *e) {
    struct wire_log l;
    int r = wire_get_log(frame, &l, e);
    if (r < 0) return r;
    if (l.result < 0) return fail(e, l.result, "%s", l.text);
    uint64_t end = l.offset + l.len;
    if (end > f->offset) {
        size_t skip = l.offset < f->offset ? (size_t)(f->offset - l.offset) : 0;
        if (l.offset > f->offset) job_follow_put_gap(l.offset - f->offset, log);
        buf_add(log, l.bytes + skip, l.len - skip);
        f->offset = end;
    }
    f->total = l.total;
    f->is_log_over = l.is_over && f->offset >= l.total;
    return FOLLOW_LOG;
}

static int take_refusal(const struct wire_frame *frame, struct error *e) {
    struct wire_job_result result = {0};
    int r = wire_get_job_result(frame, &result, e);
    if (r < 0) return r;
    return result.result < 0 ? fail(e, result.result, "%s", result.text) : 0;
}

static int take(struct job_follow *f, const struct wire_frame *frame, struct buf *log, struct error *e) {
    if (frame->type == WIRE_JOB_RUN) return take_run(f, frame, e);
    if (frame->type == WIRE_JOB_LOG) return take_log(f, frame, log, e);
    if (frame->type == WIRE_JOB_CONTROLLED) return take_refusal(frame, e);
    return 0; /* of a later version */
}

int job_follow_step(struct job_follow *f, struct buf *log, struct error *e) {
    int happened = 0;
    size_t before = log->len;
    if (f->talk.fd < 0) {
        int r = dial(f, e);
        if (r == -ENOTCONN) return 0;
        if (r < 0) return r;
    }
    while (log->len - before < LOG_PIECE) {
        struct wire_frame frame;
        int r = jobs_talk_next(&f->talk, 0, &frame, e);
        if (r == -ECONNRESET) {
            lose(f);
            return happened;
        }
        if (r <= 0) return r < 0 ? r : happened;
        r = take(f, &frame, log, e);
        if (r < 0) return r;
        happened |= r;
    }
    return happened;
}
