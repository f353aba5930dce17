#include "model/notice.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"

/* clang-format off */
const struct event_row event_rows[] = {
    {"gpu_lost",            "gpu",              NOTICE_OPENS,    EVENT_CRITICAL, "GPU lost"},
    {"gpu_not_answering",   "gpu",              NOTICE_OPENS,    EVENT_WARNING,  "GPU does not answer"},
    {"gpu_fenced",          "gpu",              NOTICE_OPENS,    EVENT_ERROR,    "GPU left alone"},
    {"gpu_forbidden",       "gpu",              NOTICE_OPENS,    EVENT_WARNING,  "GPU not permitted"},
    {"gpu_back",            "gpu",              NOTICE_CLOSES,   EVENT_INFO,     "GPU is back"},
    {"gpu_found",           "gpu",              NOTICE_CLOSES,   EVENT_INFO,     "GPU found"},
    {"gpu_starting",        "gpu",              NOTICE_SILENT,   EVENT_INFO,     "GPU starts"},
    {"driver_gone",         "driver",           NOTICE_OPENS,    EVENT_CRITICAL, "Driver gone"},
    {"driver_absent",       "driver",           NOTICE_OPENS,    EVENT_ERROR,    "No driver"},
    {"driver_back",         "driver",           NOTICE_CLOSES,   EVENT_INFO,     "Driver is back"},
    {"node_gone",           "node",             NOTICE_OPENS,    EVENT_CRITICAL, "Node silent"},
    {"node_back",           "node",             NOTICE_CLOSES,   EVENT_INFO,     "Node is back"},
    {"node_forgotten",      "node",             NOTICE_CLOSES,   EVENT_INFO,     "Node forgotten"},
    {"store_failed",        "store",            NOTICE_OPENS,    EVENT_CRITICAL, "Nothing can be stored"},
    {"store_back",          "store",            NOTICE_CLOSES,   EVENT_INFO,     "Readings are stored again"},
    {"xid",                 "xid",              NOTICE_ONCE,     EVENT_INFO,     "XID error"},
    {"call_stuck",          "call_stuck",       NOTICE_ONCE,     EVENT_WARNING,  "Driver call stuck"},
    {"guard_lowered",       "throttled",        NOTICE_OPENS,    EVENT_WARNING,  "Held back for heat or power"},
    {"guard_resumed",       "throttled",        NOTICE_OPENS,    EVENT_WARNING,  "Still held back"},
    {"guard_free",          "throttled",        NOTICE_CLOSES,   EVENT_INFO,     "At its full limit again"},
    {"guard_restored",      "throttled",        NOTICE_CLOSES,   EVENT_INFO,     "At its full limit again"},
    {"guard_stale_cleared", "throttled",        NOTICE_CLOSES,   EVENT_INFO,     "Stale limit cleared"},
    {"guard_raised",        "throttled",        NOTICE_SILENT,   EVENT_INFO,     "Limit raised"},
    {"guard_hot",           "hot",              NOTICE_SEVERITY, EVENT_WARNING,  "Above its target temperature"},
    {"guard_drift",         "drift",            NOTICE_ONCE,     EVENT_WARNING,  "Limit changed by someone else"},
    {"guard_set_failed",    "guard_set_failed", NOTICE_SEVERITY, EVENT_ERROR,    "Limit cannot be set"},
    {"guard_record",        "guard_record",     NOTICE_ONCE,     EVENT_WARNING,  "Baseline not recorded"},
    {"guard_observes",      "guard_observes",   NOTICE_SILENT,   EVENT_INFO,     "Guard observes only"},
    {"guard_baseline",      "guard_baseline",   NOTICE_SILENT,   EVENT_INFO,     "Baseline adopted"},
    {"guard_manual",        "guard_manual",     NOTICE_SILENT,   EVENT_INFO,     "Set by hand"},
    {"guard_manual_over",   "guard_manual",     NOTICE_SILENT,   EVENT_INFO,     "Set by hand: over"},
    {"guard_reapplied",     "guard_reapplied",  NOTICE_SILENT,   EVENT_INFO,     "Baseline set again"},
    {"failing_cooling",     "failing_cooling",  NOTICE_SEVERITY, EVENT_INFO,     "Cooling failing"},
    {"failing_unlike",      "failing_unlike",   NOTICE_SEVERITY, EVENT_INFO,     "Warmer than its neighbours"},
    {"failing_fan",         "failing_fan",      NOTICE_SEVERITY, EVENT_INFO,     "Fan failing"},
    {"failing_slowdown",    "failing_slowdown", NOTICE_SEVERITY, EVENT_INFO,     "Hardware slowdowns"},
    {"failing_brake",       "failing_brake",    NOTICE_SEVERITY, EVENT_INFO,     "Power brake"},
    {"failing_limit",       "failing_limit",    NOTICE_SEVERITY, EVENT_INFO,     "Limit does not take"},
    {"failing_draw",        "failing_draw",     NOTICE_SEVERITY, EVENT_INFO,     "Draws beyond its limit"},
    {"failing_overuse",     "failing_overuse",  NOTICE_SEVERITY, EVENT_INFO,     "Too hot for too long"},
    {"job_failed",          "job_failed",       NOTICE_ONCE,     EVENT_INFO,     "Job failed"},
    {"job_not_started",     "job_failed",       NOTICE_ONCE,     EVENT_WARNING,  "Job could not be started"},
    {"job_unknown",         "job_failed",       NOTICE_ONCE,     EVENT_WARNING,  "Job ended, its exit is not known"},
    {"job_timeout",         "job_failed",       NOTICE_ONCE,     EVENT_INFO,     "Job reached its time limit"},
    {"job_over_memory",     "job_failed",       NOTICE_ONCE,     EVENT_WARNING,  "Job took more memory than its share"},
    {"job_idle",            "job_failed",       NOTICE_ONCE,     EVENT_WARNING,  "Job held a GPU idle"},
    {"job_stray",           "job_stray",        NOTICE_ONCE,     EVENT_WARNING,  "Job uses a GPU that it was not given"},
    {"job_cancelled",       "job",              NOTICE_SILENT,   EVENT_INFO,     "Job cancelled"},
    {"job_started",         "job",              NOTICE_SILENT,   EVENT_INFO,     "Job started"},
    {"job_done",            "job",              NOTICE_SILENT,   EVENT_INFO,     "Job done"},
    {"gpu_unhealthy",       "fault",            NOTICE_OPENS,    EVENT_WARNING,  "GPU not given away: it has a fault"},
    {"gpu_sound",           "fault",            NOTICE_CLOSES,   EVENT_INFO,     "GPU is sound again"},
    {"outside_warned",      "outside",          NOTICE_SILENT,   EVENT_INFO,     "Warned: a GPU is used outside the queue"},
    {"outside_spared",      "outside",          NOTICE_SILENT,   EVENT_INFO,     "Warning taken back"},
    {"outside_ended",       "outside",          NOTICE_ONCE,     EVENT_WARNING,  "Ended: it used a GPU outside the queue"},
    {"outside_killed",      "outside",          NOTICE_ONCE,     EVENT_WARNING,  "Killed: it used a GPU outside the queue"},
    {"outside_left",        "outside",          NOTICE_ONCE,     EVENT_WARNING,  "Outside the queue, and cannot be ended"},
    {"failing_room",        "failing_room",     NOTICE_SEVERITY, EVENT_INFO,     "The room is too warm"},
};
/* clang-format on */
const unsigned event_rows_count = ARRAY_LEN(event_rows);

struct event_row event_row(const char *kind) {
    for (unsigned i = 0; i < event_rows_count; i++)
        if (strcmp(event_rows[i].kind, kind) == 0) return event_rows[i];
    return (struct event_row){kind, kind, NOTICE_SEVERITY, EVENT_INFO, kind};
}

static bool is_of(const struct notice *n, const char *subject, const char *topic, int code) {
    return n->code == code && strcmp(n->subject, subject) == 0 && strcmp(n->topic, topic) == 0;
}

static int find(const struct notice_book *b, const char *subject, const char *topic, int code) {
    for (uint32_t i = 0; i < b->count; i++)
        if (is_of(&b->of[i], subject, topic, code)) return (int)i;
    return -1;
}

/* A free place, or that of the notice which nobody has needed for longest: a closed one if there is one. */
static int place(struct notice_book *b) {
    if (b->count < NOTICE_BOOK_MAX) return (int)b->count++;
    int at = 0;
    for (int i = 1; i < NOTICE_BOOK_MAX; i++) {
        const struct notice *n = &b->of[i], *best = &b->of[at];
        if (n->is_open != best->is_open ? n->is_open < best->is_open : n->seen_ns < best->seen_ns) at = i;
    }
    return at;
}

static int find_or_make(struct notice_book *b, const char *subject, const char *topic, int code) {
    int at = find(b, subject, topic, code);
    if (at >= 0) return at;
    struct notice *n = &b->of[at = place(b)];
    *n = (struct notice){.code = code};
    snprintf(n->subject, sizeof n->subject, "%s", subject);
    snprintf(n->topic, sizeof n->topic, "%s", topic);
    return at;
}

static void say(struct notice *n, const struct event_row *row, const char *text) {
    snprintf(n->title, sizeof n->title, "%s", row->title);
    snprintf(n->text, sizeof n->text, "%s", text);
}

/* A clock that was set back must not keep a notice silent for longer than it should be. */
static bool is_too_soon(const struct notice *n, const struct notice_policy *p, int64_t now_ns) {
    int64_t since = now_ns - n->told_ns;
    return n->told_ns && since >= 0 && since < p->again_ns;
}

static enum notice_word tell(struct notice *n, int64_t now_ns) {
    n->is_told = 1;
    n->is_owed = 0;
    n->told_ns = now_ns;
    n->silent = n->count;
    n->count = 0;
    return NOTICE_TELL;
}

static enum notice_word open_it(struct notice *n, const struct notice_policy *p, const struct event_row *row,
                                const struct event *ev, bool has_end, int64_t now_ns) {
    int severity = ev->severity > (int)row->least ? ev->severity : (int)row->least;
    bool is_new = !n->is_open, is_worse = n->is_open && severity > n->severity;
    n->seen_ns = now_ns;
    n->count++;
    if (is_new) {
        n->opened_ns = now_ns;
        n->is_told = 0;
    }
    if (is_new || is_worse) {
        n->severity = severity;
        say(n, row, ev->text);
    }
    n->is_open = has_end;
    if ((!is_new && !is_worse && n->is_told) || severity < (int)p->least) return NOTICE_NOTHING;
    if (is_too_soon(n, p, now_ns) && !is_worse) {
        n->is_owed = has_end;
        return NOTICE_NOTHING;
    }
    return tell(n, now_ns);
}

static enum notice_word close_it(struct notice *n, const struct event_row *row, const struct event *ev,
                                 int64_t now_ns) {
    bool was_told = n->is_open && n->is_told;
    n->is_open = n->is_owed = n->is_told = 0;
    n->seen_ns = now_ns;
    if (!was_told) return NOTICE_NOTHING;
    say(n, row, ev->text);
    return NOTICE_TELL_OVER;
}

enum notice_word notice_take(struct notice_book *b, const struct notice_policy *p, const char *subject,
                             const struct event *ev, int64_t now_ns, int *ret_at) {
    const struct event_row row = event_row(ev->kind);
    enum notice_effect effect = row.effect;
    *ret_at = -1;
    if (effect == NOTICE_SEVERITY) effect = ev->severity == EVENT_INFO ? NOTICE_CLOSES : NOTICE_OPENS;
    if (effect == NOTICE_SILENT) return NOTICE_NOTHING;
    int code = effect == NOTICE_ONCE ? ev->code : 0;
    if (effect == NOTICE_CLOSES) {
        *ret_at = find(b, subject, row.topic, code);
        return *ret_at < 0 ? NOTICE_NOTHING : close_it(&b->of[*ret_at], &row, ev, now_ns);
    }
    *ret_at = find_or_make(b, subject, row.topic, code);
    return open_it(&b->of[*ret_at], p, &row, ev, effect == NOTICE_OPENS, now_ns);
}

enum notice_word notice_tick(struct notice_book *b, const struct notice_policy *p, int64_t now_ns, int *ret_at) {
    for (uint32_t i = 0; i < b->count; i++) {
        struct notice *n = &b->of[i];
        if (!n->is_open || !n->is_owed || is_too_soon(n, p, now_ns)) continue;
        *ret_at = (int)i;
        return tell(n, now_ns);
    }
    *ret_at = -1;
    return NOTICE_NOTHING;
}
