#include "model/repeat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/duration.h"

#define LATE_LEAST_NS 1000000000LL
#define CLOCK_WRONG_S 86400
#define LOOK_MOST 20000 /* times that one step looks at: two weeks of minutes */

const char *repeat_overlap_name(enum repeat_overlap o) {
    static const char *const names[REPEAT_OVERLAPS] = {"skip", "queue", "cancel"};
    return (unsigned)o < REPEAT_OVERLAPS ? names[o] : "unknown";
}

const char *repeat_fate_name(enum repeat_fate f) {
    static const char *const names[REPEAT_FATES] = {"run", "missed", "skipped", "paused", "by hand"};
    return (unsigned)f < REPEAT_FATES ? names[f] : "unknown";
}

/* ---- words ---- */

static void put_blanks_once(struct buf *b, const char *text) {
    bool is_first = true;
    for (const char *at = text; *(at += strspn(at, " \t"));) {
        size_t n = strcspn(at, " \t");
        if (!is_first) buf_putc(b, ' ');
        buf_add(b, at, n);
        at += n;
        is_first = false;
    }
}

void repeat_spec_write(const struct repeat_spec *s, struct buf *b) {
    char late[DURATION_TEXT];
    buf_puts(b, *s->cron ? "cron=" : "interval=");
    put_blanks_once(b, *s->cron ? s->cron : s->interval);
    buf_putc(b, 0);
    buf_printf(b, "zone=%s", s->zone);
    buf_putc(b, 0);
    duration_text(s->late_ns, late);
    buf_printf(b, "late=%s", late);
    buf_putc(b, 0);
    buf_printf(b, "overlap=%s", repeat_overlap_name(s->overlap));
    buf_putc(b, 0);
    if (!s->edits) return;
    buf_printf(b, "edits=%lld", (long long)s->edits);
    buf_putc(b, 0);
}

/* The value of the next word if it has this key; else NULL. */
static const char *take(const struct job_words *w, const char **at, const char *key) {
    const char *next = job_word_next(w, *at);
    size_t n = strlen(key);
    if (!next || strncmp(next, key, n) != 0 || next[n] != '=') return NULL;
    *at = next;
    return next + n + 1;
}

int repeat_spec_read(const struct job_words *w, struct repeat_spec *ret, struct error *e) {
    const char *at = NULL;
    struct repeat_spec s = {.cron = take(w, &at, "cron"), .overlap = REPEAT_OVERLAPS};
    s.interval = s.cron ? "" : take(w, &at, "interval");
    if (!s.cron) s.cron = "";
    s.zone = s.interval ? take(w, &at, "zone") : NULL;
    const char *late = s.zone ? take(w, &at, "late") : NULL, *overlap = late ? take(w, &at, "overlap") : NULL;
    for (int i = 0; overlap && i < REPEAT_OVERLAPS; i++)
        if (strcmp(overlap, repeat_overlap_name((enum repeat_overlap)i)) == 0) s.overlap = (enum repeat_overlap)i;
    const char *edits = overlap && w->count == 5 ? take(w, &at, "edits") : NULL;
    if (edits) s.edits = strtoll(edits, NULL, 10); /* what it leaves unread is not what is written again */
    if (s.overlap == REPEAT_OVERLAPS || w->count != (edits ? 5 : 4))
        return fail(e, -EPROTO, "repeat: words that make no sense");
    int r = duration_parse(late, &s.late_ns, e);
    if (r < 0) return fail_in(e, r, "repeat.late");
    r = repeat_spec_check(&s, NULL, e);
    if (r < 0) return r;
    AUTO(buf_done) struct buf again = {0};
    repeat_spec_write(&s, &again);
    if (again.len != w->len || memcmp(again.s, w->s, w->len) != 0)
        return fail(e, -EPROTO, "repeat: words that nobody wrote so");
    *ret = s;
    return 0;
}

int repeat_spec_check(const struct repeat_spec *s, struct recur *ret_recur, struct error *e) {
    struct recur recur;
    int r = recur_parse(s->cron, s->interval, &recur, e);
    if (r < 0) {
        struct error was = *e;
        return fail(e, r, "repeat.%s", was.text);
    }
    if (*s->zone && !zone_name_is_good(s->zone))
        return fail(e, -EINVAL, "repeat.zone: \"%.60s\" is no time zone, as in Europe/Berlin or UTC", s->zone);
    if (s->late_ns < LATE_LEAST_NS || s->late_ns > DURATION_MOST_NS)
        return fail(e, -EINVAL, "repeat.late: not from 1s to 366 days");
    if (s->edits < 0) return fail(e, -EINVAL, "repeat.edits: is no repeat's number");
    if (ret_recur) *ret_recur = recur;
    return 0;
}

int repeat_spec_check_job(const struct job_spec *j, struct error *e) {
    struct repeat_spec s;
    const char *other = j->service.count  ? "service"
                        : j->after.count  ? "after"
                        : j->finish_by_ns ? "finish_by"
                        : j->is_pty       ? "pty"
                                          : NULL;
    if (!j->repeat.count) return 0;
    if (other) return fail(e, -EINVAL, "%s: does not go with repeat, which makes a job each time", other);
    return repeat_spec_read(&j->repeat, &s, e);
}

void repeat_spec_json(struct buf *b, const struct repeat_spec *s) {
    char late[DURATION_TEXT];
    json_open(b, '{');
    json_pair_str(b, *s->cron ? "cron" : "interval", *s->cron ? s->cron : s->interval);
    if (*s->zone) json_pair_str(b, "zone", s->zone);
    duration_text(s->late_ns, late);
    json_pair_str(b, "late", late);
    json_pair_str(b, "overlap", repeat_overlap_name(s->overlap));
    json_close(b, '}');
}

/* ---- the step ---- */

struct due {
    int64_t last[REPEAT_STEP_MAX]; /* the newest ones, as a ring */
    int64_t count;
    int64_t older_s; /* the last of those that fell out of it */
};

static void collect(const struct recur *r, const struct zone *z, int64_t after_s, int64_t now_s, struct due *ret) {
    for (int64_t at; (at = recur_next(r, z, after_s)) <= now_s; after_s = at) {
        int64_t *slot = &ret->last[ret->count % REPEAT_STEP_MAX];
        if (ret->count >= REPEAT_STEP_MAX) ret->older_s = *slot;
        *slot = at;
        if (++ret->count < LOOK_MOST) continue;
        /* a server that stood still for months does not count them all */
        int64_t skip_s = now_s - (int64_t)REPEAT_STEP_MAX * 60;
        if (at < skip_s) at = skip_s;
    }
}

void repeat_step(const struct repeat_spec *s, const struct recur *r, const struct zone *z, const struct repeat_now *at,
                 struct repeat_step *ret) {
    struct due due = {0};
    *ret = (struct repeat_step){.mark_s = at->mark_s};
    collect(r, z, at->mark_s, at->now_s, &due);
    int64_t shown = due.count < REPEAT_STEP_MAX ? due.count : REPEAT_STEP_MAX;
    enum repeat_fate lost = at->is_paused ? REPEAT_PAUSED : REPEAT_MISSED;
    if (due.count > shown) ret->slot[ret->count++] = (struct repeat_slot){due.older_s, lost, due.count - shown};
    for (int64_t i = due.count - shown; i < due.count && !ret->runs; i++) {
        struct repeat_slot *slot = &ret->slot[ret->count++];
        *slot = (struct repeat_slot){.at_s = due.last[i % REPEAT_STEP_MAX], .count = 1};
        bool is_late = at->now_s - slot->at_s > s->late_ns / 1000000000, is_last = i == due.count - 1;
        if (at->is_paused || is_late)
            slot->fate = lost;
        else if (s->overlap == REPEAT_QUEUE)
            slot->fate = at->open < REPEAT_WAITING_MAX ? REPEAT_RUN : REPEAT_SKIPPED;
        else
            slot->fate = is_last && (s->overlap == REPEAT_CANCEL || !at->open) ? REPEAT_RUN : REPEAT_SKIPPED;
        ret->runs = slot->fate == REPEAT_RUN;
    }
    if (ret->count) ret->mark_s = ret->slot[ret->count - 1].at_s;
}

bool repeat_clock_was_wrong(int64_t mark_s, int64_t now_s) { return mark_s - now_s > CLOCK_WRONG_S; }
