/* `gpumgr guard set`, `confirm` and `restore` where a gpumgr runs: everything is checked against what the rings say, then
 * the sampler that has the GPU is asked, then the ring is watched until the guard has taken it. */
#include "client/guard_ask.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "client/control_ask.h"
#include "client/gpu_pick.h"
#include "model/guard_words.h"

#define TAKEN_NS (3 * NS_PER_S)

struct asking {
    const struct command *self;
    enum control_verb verb;
    const struct guard_wish *wish; /* with CONTROL_GUARD_SET */
    struct view *view;             /* as it was before */
    struct gpu_picked picked;
};

static int ask(const struct source *s, const struct asking *a, const struct view_device *d, struct error *e) {
    struct control_reply reply;
    int64_t argument[CONTROL_ARGUMENTS] = {d->inventory.index};
    if (a->wish) {
        argument[1] = a->wish->what == WISH_TARGET_C ? CONTROL_GUARD_TARGET : CONTROL_GUARD_LIMIT;
        argument[2] = llround(a->wish->value * 1000);
        argument[3] = a->wish->for_ms;
        argument[4] = a->wish->confirm_ms;
    }
    int r = control_ask(&s->instance, d->worker, a->verb, argument, &reply, e);
    return r < 0 ? fail_in(e, r, "GPU %d", (int)d->inventory.index) : 0;
}

/* ---- what came of it ---- */

static bool is_taken(const struct asking *a, const struct ring_guard *before, const struct ring_guard *now) {
    switch (a->verb) {
    case CONTROL_GUARD_SET:
        return now->manual_until_ns && now->manual_until_ns != before->manual_until_ns &&
               !now->confirm_by_ns == !a->wish->confirm_ms;
    case CONTROL_GUARD_CONFIRM: return !now->confirm_by_ns;
    case CONTROL_GUARD_RESTORE: return !now->manual_until_ns;
    default: return true;
    }
}

static const struct view_device *same_gpu(const struct view *v, const struct view_device *d) {
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->of[i].inventory.uuid, d->inventory.uuid) == 0) return &v->of[i];
    return NULL;
}

/* The thread that reads a GPU takes an order at its next round. One that was asked later has the less time. */
static bool wait_until_taken(struct source *s, const struct asking *a, const struct view_device *d, int64_t until_ns) {
    AUTO(view_done) struct view now = {0};
    struct error e;
    for (;;) {
        struct rings_bells bells = rings_listen(&s->rings);
        if (source_view(s, &now, &e) < 0) return false;
        const struct view_device *there = same_gpu(&now, d);
        if (there && there->has_guard && is_taken(a, &d->guard, &there->guard)) return true;
        if (clock_boot_ns() >= until_ns) return false;
        rings_wait(&s->rings, &bells, 100 * NS_PER_MS);
    }
}

static void time_after(int64_t ms, char *ret, size_t room) {
    int64_t now_ns = clock_real_ns();
    number_time_here(now_ns + ms * NS_PER_MS, now_ns, ret, room);
}

static void say_set(const struct guard_wish *w, const struct view_device *d, struct buf *b) {
    char until[40], by[40];
    time_after(w->for_ms, until, sizeof until);
    if (w->what == WISH_TARGET_C)
        buf_printf(b, "GPU %d: the target is %g C until %s", (int)d->inventory.index, w->value, until);
    else
        buf_printf(b, "GPU %d: %s at most %g %s until %s", (int)d->inventory.index, guard_lever_words(&d->guard),
                   w->value, guard_unit(&d->guard), until);
    if (w->confirm_ms) {
        time_after(w->confirm_ms, by, sizeof by);
        buf_printf(b, ", undone at %s unless `gpumgr guard confirm %d` comes before", by, (int)d->inventory.index);
    }
}

static void say_restored(const struct view_device *d, struct buf *b) {
    if (d->has_guard && d->guard.lever != GUARD_BY_NONE)
        buf_printf(b, "GPU %d: back to its baseline of %g %s, nothing is set by hand", (int)d->inventory.index,
                   d->guard.baseline, guard_unit(&d->guard));
    else
        buf_printf(b, "GPU %d: nothing is set by hand", (int)d->inventory.index);
}

static void say(const struct asking *a, const struct view_device *d, bool taken, struct buf *b) {
    if (a->verb == CONTROL_GUARD_SET) say_set(a->wish, d, b);
    if (a->verb == CONTROL_GUARD_CONFIRM)
        buf_printf(b, "GPU %d: confirmed, it stays for its time", (int)d->inventory.index);
    if (a->verb == CONTROL_GUARD_RESTORE) say_restored(d, b);
    if (d->has_guard && d->guard.mode == RING_GUARD_OBSERVES)
        buf_printf(b, " (it observes only, nothing is set: %s)", d->guard.why);
    buf_puts(b, taken ? ".\n" : "; asked, but the guard has not taken it yet.\n");
}

/* ---- all of it ---- */

static int ask_all(struct source *s, const struct asking *a) {
    AUTO(buf_done) struct buf out = {0};
    uint64_t asked = 0; /* bits by place in picked */
    int code = EXIT_DONE;
    for (size_t i = 0; i < a->picked.count; i++) {
        struct error e;
        if (ask(s, a, &a->view->of[a->picked.of[i]], &e) == 0) {
            asked |= BIT(i);
            continue;
        }
        code = command_fail(a->self, &e, EXIT_FAILED);
        if (e.code == -EPERM) return code; /* the others would say the same */
    }
    int64_t until_ns = clock_boot_ns() + TAKEN_NS;
    for (size_t i = 0; i < a->picked.count; i++) {
        const struct view_device *d = &a->view->of[a->picked.of[i]];
        if (asked & BIT(i)) say(a, d, wait_until_taken(s, a, d, until_ns), &out);
    }
    int shown = output_exit(&out);
    return code != EXIT_DONE ? code : shown;
}

static int exit_of(int r) { return r == -EINVAL ? EXIT_INPUT : EXIT_FAILED; }

/* Either all of them can have it or nobody is asked. */
static int check(const struct asking *a, struct error *e) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < a->picked.count; i++) {
        const struct view_device *d = &a->view->of[a->picked.of[i]];
        if (a->wish)
            r = guard_wish_check(a->wish, d, e);
        else if (a->verb == CONTROL_GUARD_CONFIRM && d->has_guard && !d->guard.manual_until_ns)
            r = fail(e, -ENOENT, "GPU %d: nothing is set by hand that could be confirmed", (int)d->inventory.index);
    }
    return r;
}

/* Of all GPUs those that something was set on. */
static void keep_set_by_hand(struct asking *a) {
    size_t n = 0;
    for (size_t i = 0; i < a->picked.count; i++)
        if (a->view->of[a->picked.of[i]].guard.manual_until_ns) a->picked.of[n++] = a->picked.of[i];
    if (n) a->picked.count = n;
}

static int run(const struct asking *what, struct source *s, const char *gpu) {
    AUTO(view_done) struct view view = {0};
    struct asking a = *what;
    struct error e;
    a.view = &view;
    int r = source_view(s, &view, &e);
    if (r == 0) r = gpu_pick(&view, gpu, &a.picked, &e);
    if (r == 0 && a.verb == CONTROL_GUARD_CONFIRM) keep_set_by_hand(&a);
    if (r == 0) r = check(&a, &e);
    return r < 0 ? command_fail(a.self, &e, exit_of(r)) : ask_all(s, &a);
}

static int open_and_run(const struct asking *a, const struct loaded *l, const char *gpu) {
    AUTO(source_close) struct source s;
    struct error e;
    int r = source_open(&s, &l->values, SOURCE_DAEMON, &e);
    return r < 0 ? command_fail(a->self, &e, EXIT_FAILED) : run(a, &s, gpu);
}

int guard_set(const struct command *self, const struct loaded *l, const char *gpu, const struct guard_wish *w) {
    const struct asking a = {.self = self, .verb = CONTROL_GUARD_SET, .wish = w};
    return open_and_run(&a, l, gpu);
}

int guard_confirm(const struct command *self, const struct loaded *l, const char *gpu) {
    const struct asking a = {.self = self, .verb = CONTROL_GUARD_CONFIRM};
    return open_and_run(&a, l, gpu);
}

int guard_ask_restore(const struct command *self, const struct loaded *l, const char *gpu) {
    const struct asking a = {.self = self, .verb = CONTROL_GUARD_RESTORE};
    return open_and_run(&a, l, gpu);
}
