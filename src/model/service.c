#include "model/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/wire_code.h"

#define FILE_VERSION 1

static const char *const names[] = {
#define X(id, name) [SERVICE_IS_##id] = name,
    SERVICE_STATES(X)
#undef X
};

const char *service_state_name(enum service_state s) {
    return (unsigned)s < SERVICE_STATE_COUNT ? names[s] : "unknown";
}

static void PRINTF(2, 3) say(struct service *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->text, sizeof s->text, fmt, ap);
    va_end(ap);
}

/* ---- slots ---- */

static bool is_there(const struct service_slot *t) { return t->phase != SERVICE_NONE; }
static bool is_alive(const struct service_slot *t) { return is_there(t) && t->phase != SERVICE_ENDING; }

static struct service_slot *slot_of(struct service *s, int64_t job) {
    struct service_slot *slots[] = {&s->now, &s->next, &s->old};
    for (size_t i = 0; job > 0 && i < ARRAY_LEN(slots); i++)
        if (is_there(slots[i]) && slots[i]->job == job) return slots[i];
    return NULL;
}

const struct service_slot *service_slot_of(const struct service *s, int64_t job) {
    return slot_of((struct service *)(uintptr_t)s, job);
}

static void become(struct service_slot *t, enum service_phase phase, int64_t now_ns) {
    if (t->phase == phase) return;
    t->phase = (uint8_t)phase;
    t->since_ns = now_ns;
}

enum service_state service_state(const struct service *s) {
    if (s->rest == SERVICE_GOES_AWAY) return SERVICE_IS_REMOVED;
    if (s->rest == SERVICE_RESTS) return SERVICE_IS_SUSPENDED;
    if (s->rest == SERVICE_ENDED_SELF) return SERVICE_IS_ENDED;
    if (s->rest == SERVICE_GAVE_UP) return SERVICE_IS_FAILED;
    switch ((enum service_phase)s->now.phase) {
    case SERVICE_WAITING: return SERVICE_IS_WAITING;
    case SERVICE_WELL: return s->now.failures ? SERVICE_IS_UNHEALTHY : SERVICE_IS_HEALTHY;
    case SERVICE_YIELDED: return SERVICE_IS_YIELDED;
    case SERVICE_ENDING: return s->now.why == SERVICE_BY_HEALTH ? SERVICE_IS_UNHEALTHY : SERVICE_IS_STARTING;
    case SERVICE_NONE: return s->due_ns ? SERVICE_IS_BACKING_OFF : SERVICE_IS_STARTING;
    default: return SERVICE_IS_STARTING;
    }
}

/* ---- facts ---- */

void service_made(struct service *s, int64_t job, uint32_t revision) {
    struct service_slot *slots[] = {&s->now, &s->next};
    for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
        struct service_slot *t = slots[i];
        if (t->phase != SERVICE_ASKED || t->revision != revision || t->job) continue;
        t->job = job;
        t->phase = SERVICE_WAITING;
        return;
    }
}

void service_not_made(struct service *s, uint32_t revision) {
    struct service_slot *slots[] = {&s->now, &s->next};
    for (size_t i = 0; i < ARRAY_LEN(slots); i++)
        if (slots[i]->phase == SERVICE_ASKED && slots[i]->revision == revision && !slots[i]->job) {
            *slots[i] = (struct service_slot){0};
            return;
        }
}

void service_waits(struct service *s, int64_t job, bool has_yielded, int64_t now_ns) {
    struct service_slot *t = slot_of(s, job);
    if (!t || t->phase == SERVICE_ENDING) return;
    if (t == &s->now) s->well_ns = 0;
    t->failures = 0;
    t->is_running = false;
    become(t, has_yielded ? SERVICE_YIELDED : SERVICE_WAITING, now_ns);
}

void service_starts(struct service *s, int64_t job, int64_t now_ns) {
    struct service_slot *t = slot_of(s, job);
    if (t && (t->phase == SERVICE_WAITING || t->phase == SERVICE_YIELDED || t->phase == SERVICE_ASKED))
        become(t, SERVICE_STARTING, now_ns);
}

static void well(struct service *s, struct service_slot *t, int64_t now_ns) {
    t->failures = 0;
    t->was_well = true;
    become(t, SERVICE_WELL, now_ns);
    if (t != &s->now) return;
    if (!s->well_ns) s->well_ns = now_ns;
    if (s->back_revision && t->revision == s->revision) {
        s->back_revision = 0;
        s->replaces = false;
        say(s, "updated to revision %u", s->revision);
    }
}

static const struct service_spec *rules_of(const struct service *s, const struct service_rules *p,
                                           const struct service_slot *t) {
    return t == &s->next && p->next ? p->next : p->now;
}

/* It runs, and its grace begins now, however long it has been about to. */
void service_runs(struct service *s, const struct service_rules *p, int64_t job, int64_t now_ns) {
    struct service_slot *t = slot_of(s, job);
    if (!t || t->phase == SERVICE_ENDING || t->is_running) return;
    t->is_running = true;
    t->was_well = false;
    t->failures = 0;
    t->phase = SERVICE_STARTING;
    t->since_ns = now_ns;
    if (rules_of(s, p, t)->probe == SERVICE_UNPROBED) well(s, t, now_ns);
}

static void forget_old(struct service *s, const struct service_spec *p, int64_t now_ns) {
    uint16_t kept = 0;
    for (uint16_t i = 0; i < s->recent; i++)
        if (now_ns - s->recent_ns[i] < p->within_ns) s->recent_ns[kept++] = s->recent_ns[i];
    s->recent = kept;
}

/* A pause, or the end of trying. */
static void restart_later(struct service *s, const struct service_spec *p, const char *how, int64_t now_ns) {
    forget_old(s, p, now_ns);
    if (p->give_up && s->recent >= p->give_up) {
        s->rest = SERVICE_GAVE_UP;
        say(s, "given up after %d restart%s: %.120s", p->give_up, p->give_up == 1 ? "" : "s", how);
        return;
    }
    if (s->recent == SERVICE_GIVE_UP_MAX) {
        memmove(s->recent_ns, s->recent_ns + 1, sizeof s->recent_ns - sizeof s->recent_ns[0]);
        s->recent--;
    }
    s->recent_ns[s->recent++] = now_ns;
    s->pause_ns = !s->pause_ns ? p->pause_ns : s->pause_ns > p->pause_most_ns / 2 ? p->pause_most_ns : 2 * s->pause_ns;
    if (s->pause_ns > p->pause_most_ns) s->pause_ns = p->pause_most_ns;
    s->due_ns = now_ns + s->pause_ns;
    s->restarts++;
    say(s, "%.150s", how);
}

static void roll_back(struct service *s, uint32_t bad, uint32_t good, const char *why) {
    s->next_revision = s->back_revision = 0;
    s->replaces = false;
    say(s, "revision %u was taken back, revision %u stays: %.120s", bad, good, why);
}

static void now_ends(struct service *s, const struct service_spec *p, const struct service_slot *was,
                     const struct service_end *end, bool is_foreign, int64_t now_ns) {
    char how[160];
    if (s->rest != SERVICE_GOES_ON || was->why == SERVICE_BY_PERSON || was->why == SERVICE_BY_UPDATE) return;
    if (is_foreign) {
        s->rest = SERVICE_RESTS;
        say(s, "its job %lld was cancelled; resume starts it again", (long long)was->job);
        return;
    }
    if (was->why == SERVICE_BY_HEALTH)
        snprintf(how, sizeof how, "%.150s", s->text);
    else
        snprintf(how, sizeof how, "it ended: %.110s", end->text);
    if (s->back_revision) { /* the new one, in the old one's place, was never well */
        uint32_t bad = s->revision;
        s->revision = s->back_revision;
        roll_back(s, bad, s->revision, how);
        return;
    }
    if (was->why != SERVICE_BY_HEALTH &&
        (p->restart == SERVICE_NEVER || (p->restart == SERVICE_ON_FAILURE && end->is_good))) {
        s->rest = SERVICE_ENDED_SELF;
        say(s, "%.150s", how);
        return;
    }
    restart_later(s, p, how, now_ns);
}

void service_ends(struct service *s, const struct service_rules *p, int64_t job, const struct service_end *end,
                  int64_t now_ns) {
    struct service_slot *t = slot_of(s, job);
    if (!t) return;
    const struct service_slot was = *t;
    const bool is_foreign = end->is_cancelled && was.phase != SERVICE_ENDING; /* not ours */
    *t = (struct service_slot){0};
    if (t == &s->now) {
        s->well_ns = 0;
        now_ends(s, p->now, &was, end, is_foreign, now_ns);
    } else if (t == &s->next && s->next_revision == was.revision && s->rest == SERVICE_GOES_ON) {
        char how[160];
        snprintf(how, sizeof how, "%s%.110s",
                 is_foreign ? "its job was cancelled" : "it ended: ", is_foreign ? "" : end->text);
        roll_back(s, was.revision, s->revision, how);
    }
}

void service_checked(struct service *s, const struct service_rules *p, int64_t job, bool is_good, const char *text,
                     int64_t now_ns) {
    struct service_slot *t = slot_of(s, job);
    if (!t || (t->phase != SERVICE_STARTING && t->phase != SERVICE_WELL)) return;
    const struct service_spec *rules = rules_of(s, p, t);
    if (rules->probe == SERVICE_UNPROBED) return;
    if (is_good) {
        well(s, t, now_ns);
        return;
    }
    if (t->phase == SERVICE_STARTING && now_ns - t->since_ns < rules->grace_ns) return;
    if (t->failures < UINT16_MAX) t->failures++;
    if (t->failures < rules->failures) return;
    if (t == &s->next) {
        roll_back(s, t->revision, s->revision, text);
        return; /* service_settle ends it: no update is under way any more */
    }
    say(s, "it failed %u check%s in a row: %.110s", t->failures, t->failures == 1 ? "" : "s", text);
    t->why = SERVICE_BY_HEALTH;
    s->well_ns = 0;
}

/* ---- wishes ---- */

static int is_going(const struct service *s, struct error *e) {
    return s->rest == SERVICE_GOES_AWAY ? fail(e, -EBUSY, "it is being removed") : 0;
}

static void start_afresh(struct service *s) {
    s->pause_ns = s->due_ns = 0;
    s->recent = 0;
}

int service_suspend(struct service *s, struct error *e) {
    if (is_going(s, e) < 0) return -EBUSY;
    if (s->rest == SERVICE_RESTS) return fail(e, -EBUSY, "it is suspended already");
    if (s->next_revision) roll_back(s, s->next_revision, s->revision, "it was suspended");
    if (s->back_revision) s->back_revision = 0;
    s->rest = SERVICE_RESTS;
    start_afresh(s);
    say(s, "suspended");
    return 0;
}

int service_resume(struct service *s, struct error *e) {
    if (is_going(s, e) < 0) return -EBUSY;
    if (s->rest == SERVICE_GOES_ON)
        return fail(e, -EBUSY, "it is not suspended: it is %s", service_state_name(service_state(s)));
    s->rest = SERVICE_GOES_ON;
    start_afresh(s);
    s->text[0] = 0;
    return 0;
}

int service_restart(struct service *s, struct error *e) {
    if (is_going(s, e) < 0) return -EBUSY;
    if (s->rest == SERVICE_RESTS) return fail(e, -EBUSY, "it is suspended; resume starts it");
    s->rest = SERVICE_GOES_ON;
    start_afresh(s);
    s->text[0] = 0;
    if (is_alive(&s->now)) s->now.why = SERVICE_BY_PERSON;
    return 0;
}

int service_remove(struct service *s, struct error *e) {
    if (is_going(s, e) < 0) return -EBUSY;
    s->rest = SERVICE_GOES_AWAY;
    s->next_revision = s->back_revision = 0;
    return 0;
}

int service_update(struct service *s, uint32_t revision, bool replaces, struct error *e) {
    if (is_going(s, e) < 0) return -EBUSY;
    if (s->next_revision || s->back_revision)
        return fail(e, -EBUSY, "an update to revision %u is under way already",
                    s->next_revision ? s->next_revision : s->revision);
    s->text[0] = 0;
    if (s->rest != SERVICE_GOES_ON) { /* nothing serves: it is simply what will be started */
        s->revision = revision;
        return 0;
    }
    if (s->now.phase != SERVICE_WELL) replaces = true; /* nobody is served by the old one */
    start_afresh(s);
    s->replaces = replaces;
    if (replaces) {
        s->back_revision = s->revision;
        s->revision = revision;
        if (is_alive(&s->now)) s->now.why = SERVICE_BY_UPDATE;
    } else {
        s->next_revision = revision;
    }
    return 0;
}

/* ---- orders ---- */

static void stop(struct service_slot *t, enum service_why why, int64_t now_ns, struct service_orders *o) {
    if (!is_alive(t) || t->phase == SERVICE_ASKED) return; /* asked: it has no number yet */
    if (t->why == SERVICE_BY_NOBODY) t->why = (uint8_t)why;
    become(t, SERVICE_ENDING, now_ns);
    o->stop[o->stops++] = t->job;
}

static void start(struct service_slot *t, uint32_t revision, int64_t now_ns, struct service_orders *o) {
    *t = (struct service_slot){.revision = revision, .phase = SERVICE_ASKED, .since_ns = now_ns};
    o->start = revision;
}

/* The new one serves: it takes the old one's place, which ends. */
static void promote(struct service *s, int64_t now_ns, struct service_orders *o) {
    if (is_there(&s->old)) return; /* one at a time */
    s->old = s->now;
    s->now = s->next;
    s->next = (struct service_slot){0};
    s->revision = s->now.revision;
    s->next_revision = 0;
    s->well_ns = now_ns;
    s->pause_ns = s->due_ns = 0;
    s->recent = 0;
    say(s, "updated to revision %u", s->revision);
    stop(&s->old, SERVICE_BY_UPDATE, now_ns, o);
}

static void settle_update(struct service *s, int64_t now_ns, struct service_orders *o) {
    if (!s->next_revision) {
        stop(&s->next, SERVICE_BY_UPDATE, now_ns, o);
        return;
    }
    if (s->next.phase == SERVICE_WELL && s->next.revision == s->next_revision)
        promote(s, now_ns, o);
    else if (!is_there(&s->next) && !o->start)
        start(&s->next, s->next_revision, now_ns, o);
}

static void settle_now(struct service *s, const struct service_spec *p, int64_t now_ns, struct service_orders *o) {
    if (is_there(&s->now) && s->now.why != SERVICE_BY_NOBODY) stop(&s->now, SERVICE_BY_PERSON, now_ns, o);
    if (is_there(&s->now)) return;
    if (s->due_ns - now_ns > p->pause_most_ns) s->due_ns = now_ns + p->pause_most_ns; /* the clock was set */
    if (s->due_ns > now_ns || o->start) return;
    s->due_ns = 0;
    start(&s->now, s->revision, now_ns, o);
}

static int64_t when_again(const struct service *s, const struct service_spec *p, int64_t now_ns) {
    if (s->rest != SERVICE_GOES_ON) return INT64_MAX;
    if (s->due_ns) return s->due_ns;
    if (s->well_ns && s->pause_ns) return s->well_ns + p->forget_ns > now_ns ? s->well_ns + p->forget_ns : now_ns;
    return INT64_MAX;
}

void service_settle(struct service *s, const struct service_rules *p, int64_t now_ns, struct service_orders *ret) {
    *ret = (struct service_orders){.again_ns = INT64_MAX};
    if (s->well_ns > now_ns) s->well_ns = now_ns; /* the clock was set back */
    if (s->rest != SERVICE_GOES_ON) {
        stop(&s->now, SERVICE_BY_PERSON, now_ns, ret);
        stop(&s->next, SERVICE_BY_PERSON, now_ns, ret);
        stop(&s->old, SERVICE_BY_PERSON, now_ns, ret);
        ret->is_gone = s->rest == SERVICE_GOES_AWAY && !is_there(&s->now) && !is_there(&s->next) && !is_there(&s->old);
        return;
    }
    if (s->well_ns && s->pause_ns && now_ns - s->well_ns >= p->now->forget_ns) start_afresh(s);
    settle_update(s, now_ns, ret);
    settle_now(s, p->now, now_ns, ret);
    ret->again_ns = when_again(s, p->now, now_ns);
}

/* ---- in a file ---- */

static void put_slot(struct buf *b, const struct service_slot *t) {
    bool is_made = is_there(t) && t->job; /* one that was only asked for is not there */
    out_i64(b, is_made ? t->job : 0);
    out_u32(b, is_made ? t->revision : 0);
    out_u8(b, is_made ? t->phase : SERVICE_NONE);
    out_u8(b, is_made ? t->why : SERVICE_BY_NOBODY);
    out_u8(b, is_made && t->is_running);
    out_u8(b, is_made && t->was_well);
    out_i64(b, is_made ? t->since_ns : 0);
}

static void get_slot(struct wire_in *in, struct service_slot *t) {
    t->job = in_i64(in);
    t->revision = in_u32(in);
    t->phase = in_u8(in);
    t->why = in_u8(in);
    t->is_running = in_u8(in) == 1;
    t->was_well = in_u8(in) == 1;
    t->since_ns = in_i64(in);
    in->is_bad |= t->phase > SERVICE_ENDING || t->why > SERVICE_BY_UPDATE || (t->phase != SERVICE_NONE && t->job <= 0);
}

void service_encode(const struct service *s, struct buf *b) {
    out_u8(b, FILE_VERSION);
    out_u8(b, s->rest);
    out_u8(b, s->replaces);
    out_u32(b, s->revision);
    out_u32(b, s->next_revision);
    out_u32(b, s->back_revision);
    put_slot(b, &s->now);
    put_slot(b, &s->next);
    put_slot(b, &s->old);
    out_i64(b, s->pause_ns);
    out_i64(b, s->due_ns);
    out_u32(b, s->restarts);
    out_u16(b, s->recent);
    for (uint16_t i = 0; i < s->recent; i++) out_i64(b, s->recent_ns[i]);
    out_i64(b, s->well_ns);
    out_text(b, s->text);
}

int service_decode(const void *bytes, size_t len, struct service *ret, struct error *e) {
    struct service s = {0};
    struct wire_in in = {.at = bytes, .end = (const uint8_t *)bytes + len};
    in.is_bad = in_u8(&in) != FILE_VERSION;
    s.rest = in_u8(&in);
    s.replaces = in_u8(&in) == 1;
    s.revision = in_u32(&in);
    s.next_revision = in_u32(&in);
    s.back_revision = in_u32(&in);
    get_slot(&in, &s.now);
    get_slot(&in, &s.next);
    get_slot(&in, &s.old);
    s.pause_ns = in_i64(&in);
    s.due_ns = in_i64(&in);
    s.restarts = in_u32(&in);
    s.recent = in_u16(&in);
    in.is_bad |= s.recent > SERVICE_GIVE_UP_MAX || s.rest > SERVICE_GOES_AWAY || !s.revision;
    for (uint16_t i = 0; !in.is_bad && i < s.recent; i++) s.recent_ns[i] = in_i64(&in);
    s.well_ns = in_i64(&in);
    in_text(&in, s.text, sizeof s.text);
    if (in.is_bad || in.at != in.end) return fail(e, -EPROTO, "a service's state that makes no sense");
    *ret = s;
    return 0;
}
