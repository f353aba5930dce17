/* What people want of a repeating job: pause it, let it go on, run it now, take it away. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "server/repeat_own.h"

struct order {
    struct repeats *all;
    int64_t id, now_s;
    enum repeat_verb verb;
    struct repeat_step paused; /* times that went by meanwhile */
    repeat_done_fn done;
    void *ctx;
};

static int work(struct sql *db, void *ctx, struct error *e) {
    const struct order *o = ctx;
    CRASH_POINT();
    if (o->verb == REPEAT_DO_REMOVE) return repeat_store_remove(db, o->id, e);
    int r = repeat_store_pause(db, o->id, o->verb == REPEAT_DO_PAUSE, e);
    if (r >= 0 && o->paused.count)
        r = repeat_store_slots(db, o->id, o->paused.slot, o->paused.count, o->paused.mark_s, 0, e);
    CRASH_POINT();
    return r < 0 ? r : 0;
}

static void ordered(void *ctx, int result, const struct error *e) {
    struct order *o = ctx;
    struct repeat *r = repeat_find(o->all, o->id);
    if (r) r->is_busy = false;
    if (r && result >= 0 && o->verb == REPEAT_DO_REMOVE) {
        repeat_drop(o->all, o->id);
    } else if (r && result >= 0) {
        r->is_paused = o->verb == REPEAT_DO_PAUSE;
        if (o->paused.count) repeat_mark(r, o->paused.mark_s);
        repeat_look(o->all, r);
    }
    o->done(o->ctx, result, 0, e);
    free(o);
}

static int run_work(struct sql *db, void *ctx, int64_t job, struct error *e) {
    const struct order *o = ctx;
    return repeat_store_by_hand(db, o->id, o->now_s, job, e);
}

static void run_done(void *ctx, int result, int64_t job, const struct error *e) {
    struct order *o = ctx;
    struct repeat *r = repeat_find(o->all, o->id);
    if (r) r->is_busy = false;
    if (r && result >= 0) {
        repeat_open_add(r, job);
        repeat_end_others(o->all, r);
    }
    o->done(o->ctx, result, job, e);
    free(o);
}

static bool may(const struct repeat *r, const struct queue_who *who) {
    if (who->is_admin || (who->has_uid && who->uid == r->uid)) return true;
    return *who->account && strcmp(who->account, r->account) == 0;
}

static int check(const struct repeat *r, enum repeat_verb verb, struct error *e) {
    long long id = r->id;
    if (r->is_busy) return fail(e, -EAGAIN, "repeat %lld: one of its times is being decided; ask again", id);
    if (verb == REPEAT_DO_PAUSE && r->is_paused) return fail(e, -EBUSY, "repeat %lld is paused already", id);
    if (verb == REPEAT_DO_RESUME && !r->is_paused) return fail(e, -EBUSY, "repeat %lld is not paused", id);
    if (verb != REPEAT_DO_RUN || !r->open_count) return 0;
    if (r->spec.overlap == REPEAT_SKIP)
        return fail(e, -EBUSY, "repeat %lld: its job %lld is not over, and its overlap is skip", id,
                    (long long)r->open[r->open_count - 1]);
    if (r->spec.overlap == REPEAT_QUEUE && r->open_count >= REPEAT_WAITING_MAX)
        return fail(e, -EBUSY, "repeat %lld: %zu of its jobs are not over", id, r->open_count);
    return 0;
}

int repeat_control(struct repeats *all, const struct queue_who *who, int64_t id, enum repeat_verb verb,
                   repeat_done_fn done, void *ctx, struct error *e) {
    struct repeat *r = repeat_find(all, id);
    if (!r) return fail(e, -ENOENT, "there is no repeat %lld", (long long)id);
    if (!may(r, who)) return fail(e, -EACCES, "repeat %lld is %s's", (long long)id, r->user);
    int result = check(r, verb, e);
    if (result < 0) return result;
    struct order *o = calloc(1, sizeof *o);
    if (!o) abort();
    *o = (struct order){
        .all = all, .id = id, .now_s = clock_real_ns() / NS_PER_S, .verb = verb, .done = done, .ctx = ctx};
    if (verb == REPEAT_DO_RESUME && !*r->problem) {
        const struct repeat_now now = {.mark_s = r->mark_s, .now_s = o->now_s, .is_paused = true};
        repeat_step(&r->spec, &r->recur, &r->zone, &now, &o->paused);
    }
    const struct queue_spawn job = repeat_job(r);
    result = verb == REPEAT_DO_RUN ? queue_spawn(all->queue, &job, run_work, run_done, o, e)
                                   : state_submit(all->state, work, ordered, o, e);
    r->is_busy = result >= 0;
    if (result < 0) free(o);
    return result;
}
