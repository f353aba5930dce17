#include "model/task.h"

#include <string.h>

#define ENOUGH 3 /* of the past, to say something about the future */

/* Without a past to go by, and for a task that outlasts its past: a warning when this much of the deadline is used up. */
#define LATE_NUMERATOR 8
#define LATE_DENOMINATOR 10

void task_past_add(struct task_past *p, int64_t took_ns) { p->took_ns[p->count++ % TASK_PAST] = took_ns; }

static unsigned kept(const struct task_past *p) { return p->count < TASK_PAST ? p->count : TASK_PAST; }

int64_t task_past_expect(const struct task_past *p, int64_t elapsed_ns) {
    int64_t longer[TASK_PAST];
    unsigned n = 0;
    if (p->count < ENOUGH) return 0;
    for (unsigned i = 0; i < kept(p); i++) {
        if (p->took_ns[i] <= elapsed_ns) continue;
        unsigned at = n++;
        for (; at > 0 && longer[at - 1] > p->took_ns[i]; at--) longer[at] = longer[at - 1];
        longer[at] = p->took_ns[i];
    }
    return n ? longer[n / 2] : 0;
}

static int64_t due_ns(const struct task *t) { return t->start_ns + t->deadline_ns; }

void task_begin(struct task *t, struct task_key key, int64_t opened_ns, int64_t start_ns, int64_t deadline_ns,
                enum task_source source, const struct task_past *past) {
    *t = (struct task){.key = key,
                       .source = (uint8_t)source,
                       .opened_ns = opened_ns,
                       .start_ns = start_ns,
                       .deadline_ns = deadline_ns,
                       .float_ns = deadline_ns,
                       .expected_ns = task_past_expect(past, 0),
                       .verdict = deadline_ns ? TASK_PENDING : TASK_NO_DEADLINE};
}

void task_set_deadline(struct task *t, int64_t deadline_ns, int64_t now_ns) {
    if (t->state == TASK_ENDED || deadline_ns == t->deadline_ns) return;
    t->deadline_ns = deadline_ns;
    t->float_ns = deadline_ns;
    t->is_warned = 0;
    t->state = TASK_RUNNING;
    t->verdict = deadline_ns ? TASK_PENDING : TASK_NO_DEADLINE;
}

/* When the running task gives reason to fear: at once when its like take longer than the deadline; else when it has
 * outlasted all of them and most of its time is used up; else never before the deadline. */
static int64_t fear_ns(const struct task *t, const struct task_past *past) {
    int64_t longest = 0, kept_count = kept(past);
    if (!t->deadline_ns || t->is_warned) return INT64_MAX;
    if (past->count < ENOUGH) return INT64_MAX;
    for (unsigned i = 0; i < kept_count; i++)
        if (past->took_ns[i] > longest) longest = past->took_ns[i];
    if (task_past_expect(past, 0) > t->deadline_ns) return t->start_ns;
    int64_t late = t->deadline_ns / LATE_DENOMINATOR * LATE_NUMERATOR;
    /* Of those that took longer than the usual, do most miss? Then the moment it has outlasted the usual is the moment. */
    for (unsigned i = 0; i < kept_count; i++) {
        int64_t after = past->took_ns[i];
        if (after < t->deadline_ns && task_past_expect(past, after) > t->deadline_ns && after < late) late = after;
    }
    if (longest < t->deadline_ns && longest > late) late = longest;
    return t->start_ns + late;
}

int64_t task_wake_ns(const struct task *t, const struct task_past *past) {
    if (t->state != TASK_RUNNING || !t->deadline_ns) return INT64_MAX;
    int64_t fear = fear_ns(t, past);
    return fear < due_ns(t) ? fear : due_ns(t);
}

enum task_news task_tick(struct task *t, const struct task_past *past, int64_t now_ns) {
    if (t->state == TASK_ENDED) return TASK_NOTHING;
    t->expected_ns = task_past_expect(past, now_ns - t->start_ns);
    if (!t->deadline_ns) return TASK_NOTHING;
    t->float_ns = due_ns(t) - now_ns;
    if (t->state == TASK_RUNNING && now_ns >= due_ns(t)) {
        t->state = TASK_OVERDUE;
        t->verdict = TASK_MISS;
        return TASK_MISSED;
    }
    if (t->state == TASK_RUNNING && now_ns >= fear_ns(t, past)) {
        t->is_warned = 1;
        return TASK_WILL_MISS;
    }
    return TASK_NOTHING;
}

enum task_verdict task_end(struct task *t, int64_t end_ns, bool *ret_is_new) {
    bool was_missed = t->verdict == TASK_MISS;
    if (end_ns < t->start_ns) end_ns = t->start_ns; /* the list was read after the process had gone */
    *ret_is_new = t->state != TASK_ENDED && !was_missed;
    if (t->state == TASK_ENDED) return (enum task_verdict)t->verdict;
    t->state = TASK_ENDED;
    t->end_ns = end_ns;
    t->float_ns = 0;
    if (!t->deadline_ns) return TASK_NO_DEADLINE;
    t->float_ns = due_ns(t) - end_ns;
    t->verdict = t->float_ns >= 0 ? TASK_HIT : TASK_MISS;
    return (enum task_verdict)t->verdict;
}

int64_t task_left_ns(const struct task *t, int64_t now_ns) {
    return t->state == TASK_ENDED ? t->float_ns : t->deadline_ns ? due_ns(t) - now_ns : 0;
}

/* ---- periods ---- */

#define PERIOD_SHARE 10
#define PERIOD_LEAST_NS 50000000ll

static int64_t period_due_ns(const struct task_period *p, int64_t from_ns) {
    int64_t allowed = p->period_ns / PERIOD_SHARE;
    return from_ns + p->period_ns + (allowed > PERIOD_LEAST_NS ? allowed : PERIOD_LEAST_NS);
}

void task_period_set(struct task_period *p, int64_t period_ns) {
    if (p->period_ns == period_ns) return;
    p->period_ns = period_ns;
    if (p->begun_ns) p->due_ns = period_due_ns(p, p->begun_ns);
}

void task_period_stop(struct task_period *p) {
    p->begun_ns = 0;
    p->is_said = false;
}

int64_t task_period_wake_ns(const struct task_period *p) { return p->period_ns && p->begun_ns ? p->due_ns : INT64_MAX; }

bool task_period_tick(struct task_period *p, int64_t now_ns) {
    if (now_ns < task_period_wake_ns(p)) return false;
    int64_t missed = (now_ns - p->due_ns) / p->period_ns + 1;
    bool is_news = !p->is_said;
    p->judged += (uint32_t)missed;
    p->due_ns += missed * p->period_ns;
    p->is_said = true;
    return is_news;
}

void task_period_begin(struct task_period *p, int64_t start_ns) {
    if (p->period_ns && p->begun_ns) {
        if (start_ns - p->begun_ns < p->period_ns / 2) return;
        (void)task_period_tick(p, start_ns);
        p->judged++;
        p->kept++;
    }
    p->begun_ns = start_ns;
    p->due_ns = period_due_ns(p, start_ns);
    p->is_said = false;
}

const char *task_state_name(enum task_state s) {
    static const char *const names[] = {"running", "overdue", "ended"};
    return (unsigned)s <= TASK_ENDED ? names[s] : "unknown";
}

const char *task_source_name(enum task_source s) {
    static const char *const names[] = {"list", "open", "container"};
    return (unsigned)s <= TASK_BY_CONTAINER ? names[s] : "unknown";
}
