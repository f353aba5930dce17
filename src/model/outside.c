#include "model/outside.h"

#include <string.h>

static const char *const names[] = {
#define X(id, name) [OUTSIDE_##id] = name,
    OUTSIDE_STEPS(X)
#undef X
};

const char *outside_step_name(enum outside_step s) { return (unsigned)s < OUTSIDE_STEP_COUNT ? names[s] : ""; }

static void forget(struct outside *o) { *o = (struct outside){.wanted_ns = o->wanted_ns}; }

static void note_wish(struct outside *o, const struct outside_facts *f) {
    if (!f->is_known) return;
    if (f->is_wanted) {
        if (!o->wanted_ns) o->wanted_ns = f->now_ns;
        o->unwanted_ns = 0;
    } else {
        o->wanted_ns = 0;
        if (!o->unwanted_ns) o->unwanted_ns = f->now_ns;
    }
}

static enum outside_act warn(struct outside *o, const struct outside_policy *p, int64_t now_ns) {
    o->step = OUTSIDE_WARNED;
    o->is_promised = p->mode == OUTSIDE_END;
    o->warned_ns = now_ns;
    o->ends_ns = o->is_promised ? now_ns + p->end_ns : 0;
    return OUTSIDE_DO_WARN;
}

static enum outside_act take_back(struct outside *o) {
    forget(o);
    return OUTSIDE_DO_TAKE_BACK;
}

int64_t outside_ends_ns(const struct outside *o, const struct outside_policy *p) {
    if (o->step != OUTSIDE_WARNED || !o->is_promised || p->mode != OUTSIDE_END) return 0;
    int64_t later_ns = o->warned_ns + p->end_ns; /* the operator gives more time: it has that, too */
    return later_ns > o->ends_ns ? later_ns : o->ends_ns;
}

static enum outside_act of_warned(struct outside *o, const struct outside_policy *p, const struct outside_facts *f) {
    if (f->is_spared || p->mode == OUTSIDE_SHOW) return take_back(o);
    if (!f->is_known) return OUTSIDE_DO_NOTHING;
    if (!f->is_wanted) return f->now_ns - o->unwanted_ns >= p->warn_ns ? take_back(o) : OUTSIDE_DO_NOTHING;
    if (p->mode == OUTSIDE_WARN) return OUTSIDE_DO_NOTHING;
    if (!o->is_promised) return warn(o, p, f->now_ns); /* it was never told of an end */
    if (f->now_ns < outside_ends_ns(o, p)) return OUTSIDE_DO_NOTHING;
    o->step = OUTSIDE_TOLD;
    o->told_ns = f->now_ns;
    return OUTSIDE_DO_TERM;
}

enum outside_act outside_step(struct outside *o, const struct outside_policy *p, const struct outside_facts *f) {
    note_wish(o, f);
    switch ((enum outside_step)o->step) {
    case OUTSIDE_SEEN:
        if (f->is_spared || p->mode == OUTSIDE_SHOW || !f->is_known || !f->is_wanted) return OUTSIDE_DO_NOTHING;
        return f->now_ns - o->wanted_ns >= p->warn_ns ? warn(o, p, f->now_ns) : OUTSIDE_DO_NOTHING;
    case OUTSIDE_WARNED: return of_warned(o, p, f);
    case OUTSIDE_TOLD: /* begun is ended, unless the operator spares it now */
        if (f->is_spared || p->mode != OUTSIDE_END) return take_back(o);
        if (f->now_ns - o->told_ns < p->grace_ns) return OUTSIDE_DO_NOTHING;
        o->step = OUTSIDE_KILLED;
        return OUTSIDE_DO_KILL;
    default: return OUTSIDE_DO_NOTHING;
    }
}

bool outside_is_excepted(const char *list, const char *user, const char *path) {
    while (*list) {
        size_t n = strcspn(list, ", ");
        const char *own = *list == '/' ? path : user;
        if (n && strlen(own) == n && strncmp(own, list, n) == 0) return true;
        list += n + (list[n] != 0);
    }
    return false;
}
