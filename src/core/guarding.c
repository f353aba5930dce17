#include "core/guarding.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/lock.h"
#include "model/baseline.h"

#define SETTLE_NS (400 * NS_PER_MS) /* after setting a limit, its echo may take this long */
#define RETRY_NS NS_PER_S           /* a limit that could not be set is tried again so often */
#define DRIFT_LOOK_NS (900 * NS_PER_MS)
#define ASSERT_SAY_NS (30 * NS_PER_S)  /* someone who sets a limit again and again is told of so often */
#define DRIFT_SHARE 0.004              /* of the range: less is rounding */
#define LOCK_LOOK_NS (900 * NS_PER_MS) /* how often a card that another guard has is asked for */
#define LOCK_FREE_NS (1800 * NS_PER_MS)
#define SHOWN_NS (1500 * NS_PER_MS) /* so long a reading is shown that did not come this time */
#define COOL_C 30.0
#define HOT_BAND_C 3.0
#define STILL_NEEDED_C 4.0 /* a throttle found at start is kept if the card is that near its target */

static const char *unit(const struct guarding *g) { return gpu_lever_unit(g->lever.kind); }

static const char *lever(const struct guarding *g) { return gpu_lever_name(g->lever.kind); }

/* Less is rounding. */
static double slack(const struct guarding *g) {
    double share = DRIFT_SHARE * (g->lever.top - g->lever.floor);
    return g->lever.kind == LEVER_POWER ? fmax(0.5, share) : share;
}

/* ---- the record ---- */

static void record_write(struct guarding *g) {
    struct error e;
    AUTO(buf_done) struct buf text = {0};
    struct baseline b = {
        .lever = g->lever.kind, .value = g->baseline, .memory_mhz = g->lever.memory_mhz, .real_ns = clock_real_ns()};
    snprintf(b.uuid, sizeof b.uuid, "%s", gpu_inventory(g->gpu)->uuid);
    baseline_encode(&b, &text);
    if (file_write(g->record_path, 0644, text.s, text.len, true, &e) >= 0) return;
    if (!g->is_record_failed)
        board_event(g->board, EVENT_WARNING, (int)g->device, "guard_record",
                    "the baseline cannot be recorded (%s); guarding all the same", e.text);
    g->is_record_failed = true;
}

static int record_check(const struct guarding *g, const struct baseline *b, struct error *e) {
    if (strcmp(b->uuid, gpu_inventory(g->gpu)->uuid) != 0) return fail(e, -EINVAL, "of another card");
    if (b->lever != (uint32_t)g->lever.kind)
        return fail(e, -EINVAL, "of its %s, and its lever is %s now", gpu_lever_name((enum gpu_lever_kind)b->lever),
                    lever(g));
    if (b->value < g->lever.floor - 0.5 || b->value > g->lever.top + 0.5)
        return fail(e, -EINVAL, "%.0f %s is not from %.0f to %.0f", b->value, unit(g), g->lever.floor, g->lever.top);
    return 0;
}

static bool record_read(const struct guarding *g, const char *path, struct baseline *ret) {
    struct error e;
    AUTO(buf_done) struct buf text = {0};
    int r = file_read(path, BASELINE_MAX, &text, &e);
    if (r == -ENOENT || r == -ENOTDIR) return false;
    if (r == 0) r = baseline_decode(ret, text.s, &e);
    if (r == 0) r = record_check(g, ret, &e);
    if (r == 0) return true;
    board_event(g->board, EVENT_WARNING, (int)g->device, "guard_record", "its baseline record cannot be used: %s",
                e.text);
    return false;
}

/* ---- setting ---- */

/* The driver does not let us: what is left is to look. Our own record says nothing, as nothing was set; an earlier guard's
 * is for someone who may. */
static void may_not_set(struct guarding *g) {
    g->mode = RING_GUARD_OBSERVES;
    snprintf(g->why, sizeof g->why, "this process may not set limits");
    board_event(g->board, EVENT_WARNING, (int)g->device, "guard_observes", "%s: it observes only", g->why);
    if (!g->had_record) unlink(g->record_path);
    fd_done(&g->lock_fd);
}

/* The only place that changes a card. */
static bool lever_move(struct guarding *g, double v) {
    int r = gpu_lever_set(g->gpu, &g->lever, v);
    if (r >= 0) {
        g->set_failures = 0;
        g->found = v;
        return true;
    }
    g->failed_ns = clock_boot_ns();
    if (r == -EACCES)
        may_not_set(g);
    else if (g->set_failures++ == 0)
        board_event(g->board, EVENT_ERROR, (int)g->device, "guard_set_failed",
                    "the %s could not be set to %.0f %s; trying again", lever(g), v, unit(g));
    return false;
}

/* True when the limit is in force now, or would be in observe mode. Every change is an event with its reason. */
static bool limit_put(struct guarding *g, double v, const char *kind, enum event_severity severity, const char *why) {
    double fit = gpu_lever_fit(&g->lever, v), was = g->limit;
    bool acts = g->mode == RING_GUARD_ACTS;
    if (!isfinite(fit) || (acts && !lever_move(g, fit))) return false;
    g->limit = fit;
    g->set_ns = clock_boot_ns();
    g->since_real_ns = clock_real_ns();
    board_event(g->board, severity, (int)g->device, kind, "%s%s %.0f -> %.0f %s: %s",
                acts ? "" : "would set: ", lever(g), was, fit, unit(g), why);
    return true;
}

/* ---- taking the card ---- */

static void targets_set(struct guarding *g, const struct settings *s) {
    const struct inventory *inv = gpu_inventory(g->gpu);
    struct guard_policy *p = &g->policy;
    double hot_c = !isnan(s->hot_c) ? s->hot_c : inv->temp_gpu_max_c > 0 ? inv->temp_gpu_max_c - 3 : 83;
    g->hot_c = hot_c;
    if (isnan(g->manual[MANUAL_TARGET].value)) p->target[GUARD_CORE] = hot_c; /* what was set by hand stays */
    p->target[GUARD_MEMORY] = !isnan(s->memory_c)          ? s->memory_c
                              : inv->temp_memory_max_c > 0 ? inv->temp_memory_max_c - 3
                                                           : NAN;
    p->target[GUARD_MARGIN] = s->margin_c;
    p->grace_ns = (int64_t)s->grace_ms * NS_PER_MS;
}

void guarding_reconfigure(struct guarding *g, const struct settings *s) {
    targets_set(g, s);
    g->drift = s->drift;
}

/* One guard a card on this machine, whatever directories they run in. An earlier process of ours that is stuck with another
 * card still has the lock of this one, but not its fence, which was passed before it was opened. */
static bool card_lock(struct guarding *g) {
    char who[300];
    struct error e;
    g->lock_fd = lock_take(g->lock_path, g->dir, who, sizeof who, &e);
    if (g->lock_fd == -EBUSY)
        snprintf(g->why, sizeof g->why, "another guard has it%s%.63s%s", *who ? " (" : "", who, *who ? ")" : "");
    else if (g->lock_fd < 0)
        snprintf(g->why, sizeof g->why, "its lock %.40s: %s", g->lock_path, strerror(-g->lock_fd));
    if (g->lock_fd < 0) return false;
    const char *before = lock_owner(who);
    if (before) snprintf(g->left_path, sizeof g->left_path, "%.250s/guard/%s", before, gpu_inventory(g->gpu)->uuid);
    return true;
}

static void mode_set(struct guarding *g, const struct settings *s) {
    g->mode = s->guard_mode == GUARD_OFF       ? RING_GUARD_OFF
              : s->guard_mode == GUARD_OBSERVE ? RING_GUARD_OBSERVES
                                               : RING_GUARD_ACTS;
    snprintf(g->why, sizeof g->why, "%s", g->lever.why);
    if (g->mode == RING_GUARD_OBSERVES) snprintf(g->why, sizeof g->why, "guard.mode is observe");
    if (g->lever.kind == LEVER_NONE && g->mode == RING_GUARD_ACTS) g->mode = RING_GUARD_OBSERVES;
    if (g->mode != RING_GUARD_ACTS || card_lock(g)) return;
    g->mode = RING_GUARD_OBSERVES;
    g->is_kept_out = true;
    board_event(g->board, EVENT_WARNING, (int)g->device, "guard_observes",
                "%s: this one observes only, until that one is gone", g->why);
}

/* The guard that had the card may be gone. One that was killed may be followed by its own successor: that one is left the
 * time to come back. */
static void take_over(struct guarding *g, int64_t now_ns) {
    if (now_ns - g->lock_look_ns < LOCK_LOOK_NS) return;
    g->lock_look_ns = now_ns;
    bool is_free = lock_is_free(g->lock_path);
    if (!is_free || !g->lock_free_ns) g->lock_free_ns = is_free ? now_ns : 0;
    if (!is_free || now_ns - g->lock_free_ns < LOCK_FREE_NS || !card_lock(g)) return;
    g->is_kept_out = false;
    g->mode = RING_GUARD_ACTS;
    snprintf(g->why, sizeof g->why, "%s", g->lever.why);
    g->is_taken = false; /* as at a start: what the other left is looked at first */
    board_event(g->board, EVENT_WARNING, (int)g->device, "guard_takes_over",
                "the guard that had it is gone: this one has the card now");
}

void guarding_open(struct guarding *g, struct gpu *gpu, struct board *b, unsigned device, const struct settings *s) {
    memset(g, 0, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    g->board = b;
    g->device = device;
    g->gpu = gpu;
    g->lock_fd = -1;
    g->cap = g->wish = INFINITY;
    g->in_force = g->draw_w = NAN;
    for (int k = 0; k < MANUAL_KINDS; k++) g->manual[k].value = NAN;
    g->clear_stale = s->clear_stale;
    snprintf(g->dir, sizeof g->dir, "%s", s->dir);
    snprintf(g->record_path, sizeof g->record_path, "%s/guard/%s", s->dir, gpu_inventory(gpu)->uuid);
    snprintf(g->lock_path, sizeof g->lock_path, "%s/gpumgr-guard-%s", s->lock_dir, gpu_inventory(gpu)->uuid);
    gpu_lever_find(gpu, &g->lever);
    g->policy.control = (enum guard_control)g->lever.kind;
    guarding_reconfigure(g, s);
    mode_set(g, s);
}

/* A sensor that was ever read is missed when it is silent. One that a card has by its own word is missed from the start. */
static void sensors_look(struct guarding *g, const struct sample *s) {
    struct guard_policy *p = &g->policy;
    p->uses[GUARD_CORE] |= sample_has(s, METRIC_TEMP_CORE) || gpu_inventory(g->gpu)->temp_gpu_max_c > 0;
    p->uses[GUARD_MEMORY] |= sample_has(s, METRIC_TEMP_MEMORY);
    p->uses[GUARD_MEMORY] &= !isnan(p->target[GUARD_MEMORY]);
}

/* The margin is read with the others only near the target; elsewhere it is not missed. One that is below its target on a
 * card that is cool otherwise is one of those that cannot be believed. */
static void margin_look(struct guarding *g, const struct sample *s) {
    struct guard_policy *p = &g->policy;
    if (sample_has(s, METRIC_TEMP_MARGIN)) {
        bool is_cool = sample_has(s, METRIC_TEMP_CORE) && s->value[METRIC_TEMP_CORE] < p->target[GUARD_CORE] - COOL_C;
        p->uses[GUARD_MARGIN] = !(is_cool && s->value[METRIC_TEMP_MARGIN] <= p->target[GUARD_MARGIN]);
    } else if (!guarding_is_near(g)) {
        p->uses[GUARD_MARGIN] = false;
    }
}

/* What cannot be read counts as hot. */
static bool is_hot(const struct guarding *g, const struct sample *s) {
    static const int metric[] = {[GUARD_CORE] = METRIC_TEMP_CORE, [GUARD_MEMORY] = METRIC_TEMP_MEMORY};
    for (int k = GUARD_CORE; k <= GUARD_MEMORY; k++)
        if (g->policy.uses[k] &&
            (!sample_has(s, metric[k]) || s->value[metric[k]] > g->policy.target[k] - STILL_NEEDED_C))
            return true;
    return false;
}

/* An earlier guard had the card. */
static void baseline_resume(struct guarding *g, const struct baseline *record, const struct sample *s) {
    g->baseline = gpu_lever_fit(&g->lever, record->value);
    if (g->lever.kind == LEVER_APP_CLOCKS && record->memory_mhz > 0) g->lever.memory_mhz = record->memory_mhz;
    if (isnan(g->found)) { /* a lock cannot be read: take it away */
        g->limit = g->baseline;
        limit_put(g, g->baseline, "guard_stale_cleared", EVENT_WARNING, "whatever an earlier guard left is taken away");
    } else if (g->found < g->baseline - slack(g) && is_hot(g, s)) {
        board_event(g->board, EVENT_INFO, (int)g->device, "guard_resumed",
                    "%.0f %s of an earlier guard are kept: the card is still hot", g->found, unit(g));
    } else if (g->found < g->baseline) {
        limit_put(g, g->baseline, "guard_stale_cleared", EVENT_WARNING, "left by an earlier guard");
    } else if (g->found > g->baseline + slack(g)) { /* limits are lost when the driver is loaded anew */
        limit_put(g, g->baseline, "guard_reapplied", EVENT_INFO, "the baseline that an earlier guard recorded");
    }
}

/* What an earlier guard left, or what the administrator set: the record tells them apart. */
static void baseline_find(struct guarding *g, const struct sample *s) {
    struct baseline record;
    if (gpu_lever_get(g->gpu, &g->lever, &g->found) < 0) g->found = NAN;
    g->baseline = g->limit = isnan(g->found) ? g->lever.usual : g->found;
    g->had_record = record_read(g, g->record_path, &record) || (*g->left_path && record_read(g, g->left_path, &record));
    if (g->clear_stale == STALE_ALL) {
        g->baseline = g->lever.usual;
        if (isnan(g->found) || g->found != g->baseline)
            limit_put(g, g->baseline, "guard_stale_cleared", EVENT_WARNING, "guard.clear_stale is all");
    } else if (g->had_record) {
        baseline_resume(g, &record, s);
    } else if (g->found < g->lever.usual - slack(g)) {
        board_event(g->board, EVENT_INFO, (int)g->device, "guard_baseline",
                    "%s %.0f %s, below the default of %.0f: taken for the administrator's, and kept as the baseline",
                    lever(g), g->found, unit(g), g->lever.usual);
    }
}

/* After the first complete reading: the card is ours. The record is on the disk before the first limit of our own is set;
 * what is set before is a baseline. */
static void take(struct guarding *g, const struct sample *s, int64_t now_ns) {
    if (g->lever.kind != LEVER_NONE) baseline_find(g, s);
    g->policy.floor = g->lever.floor;
    g->policy.baseline = g->baseline;
    guard_begin(&g->state, &g->policy, g->limit, now_ns);
    if (g->mode == RING_GUARD_ACTS) record_write(g);
    if (g->mode == RING_GUARD_ACTS && *g->left_path && !g->is_record_failed)
        unlink(g->left_path); /* ours stands for it */
    g->left_path[0] = 0;
    /* who is not root learns now that he may not, not when the card is hot */
    if (g->mode == RING_GUARD_ACTS && geteuid() != 0 && !isnan(g->found)) lever_move(g, g->found);
    g->since_real_ns = clock_real_ns();
    g->is_taken = true;
}

/* ---- by hand ---- */

static void manual_forget(struct guarding *g, int kind) {
    g->manual[kind] = (struct guarding_manual){.value = NAN};
    if (kind == MANUAL_TARGET) g->policy.target[GUARD_CORE] = g->hot_c;
}

static void order_restore(struct guarding *g, int64_t now_ns) {
    for (int k = 0; k < MANUAL_KINDS; k++) manual_forget(g, k);
    limit_put(g, fmin(g->baseline, g->cap), "guard_restored", EVENT_INFO, "asked for by hand");
    guard_begin(&g->state, &g->policy, g->baseline, now_ns);
}

static void order_take(struct guarding *g, const struct guarding_order *o, int64_t now_ns) {
    int kind = o->what == ORDER_TARGET ? MANUAL_TARGET : MANUAL_LIMIT;
    if (o->what == ORDER_RESTORE) order_restore(g, now_ns);
    if (o->what == ORDER_CONFIRM)
        for (int k = 0; k < MANUAL_KINDS; k++) g->manual[k].confirm_by_ns = 0;
    if (o->what != ORDER_LIMIT && o->what != ORDER_TARGET) return;
    g->manual[kind] = (struct guarding_manual){
        .value = o->value, .until_ns = now_ns + o->for_ns, .confirm_by_ns = o->confirm_ns ? now_ns + o->confirm_ns : 0};
    board_event(g->board, EVENT_INFO, (int)g->device, "guard_manual", "%s %.0f %s, set by hand for %lld s%s",
                kind == MANUAL_TARGET ? "target" : "at most", o->value, kind == MANUAL_TARGET ? "C" : unit(g),
                (long long)(o->for_ns / NS_PER_S), o->confirm_ns ? ", to be confirmed" : "");
    if (kind == MANUAL_TARGET) g->policy.target[GUARD_CORE] = o->value;
}

static void orders_take(struct guarding *g, int64_t now_ns) {
    struct guarding_order orders[ORDERS_MAX];
    pthread_mutex_lock(&g->lock);
    unsigned n = g->order_count;
    memcpy(orders, g->orders, n * sizeof orders[0]);
    g->order_count = 0;
    pthread_mutex_unlock(&g->lock);
    for (unsigned i = 0; i < n; i++) order_take(g, &orders[i], now_ns);
}

static void manual_expire(struct guarding *g, int64_t now_ns) {
    for (int k = 0; k < MANUAL_KINDS; k++) {
        const struct guarding_manual *m = &g->manual[k];
        if (isnan(m->value)) continue;
        bool is_unconfirmed = m->confirm_by_ns && now_ns >= m->confirm_by_ns;
        if (!is_unconfirmed && now_ns < m->until_ns) continue;
        manual_forget(g, k);
        board_event(g->board, EVENT_INFO, (int)g->device, "guard_manual_over", "the %s set by hand is over: %s",
                    k == MANUAL_TARGET ? "target" : "limit",
                    is_unconfirmed ? "it was not confirmed" : "its time has passed");
    }
}

/* ---- each round ---- */

/* Whether what is asked of the card should be read: the power limit when the one in force, which every round reads, is
 * not ours; application clocks once a second. */
static bool is_drift_due(struct guarding *g, const struct sample *s, int64_t now_ns) {
    if (now_ns - g->set_ns < SETTLE_NS || g->lever.kind == LEVER_CLOCKS || isnan(g->found)) return false;
    if (g->lever.kind == LEVER_POWER)
        return sample_has(s, METRIC_POWER_LIMIT_ENFORCED) &&
               fabs(s->value[METRIC_POWER_LIMIT_ENFORCED] - g->found) > slack(g);
    if (now_ns - g->drift_ns < DRIFT_LOOK_NS) return false;
    g->drift_ns = now_ns;
    return true;
}

/* Someone who does it again and again is said now and then, with how often. */
static void drift_assert(struct guarding *g, double asked, int64_t now_ns) {
    g->asserted++;
    if (!lever_move(g, g->limit)) return;
    g->set_ns = now_ns;
    if (g->asserted_ns && now_ns - g->asserted_ns < ASSERT_SAY_NS) return;
    board_event(g->board, EVENT_WARNING, (int)g->device, "guard_drift",
                "someone set the %s to %.0f %s; set to %.0f again (%u times by now)", lever(g), asked, unit(g),
                g->limit, g->asserted);
    g->asserted_ns = now_ns;
}

/* Someone else's hand: what is asked of the card is not what we asked, or found. What the guard has learnt stays: when the
 * card is hot it goes down from there again. */
static void drift_look(struct guarding *g, const struct sample *s, int64_t now_ns) {
    double asked;
    if (!is_drift_due(g, s, now_ns)) return;
    if (gpu_lever_get(g->gpu, &g->lever, &asked) < 0 || fabs(asked - g->found) <= slack(g))
        return; /* another limiter, not a hand */
    if (g->drift == DRIFT_ASSERT && g->mode == RING_GUARD_ACTS) {
        drift_assert(g, asked, now_ns);
        return;
    }
    board_event(g->board, EVENT_WARNING, (int)g->device, "guard_drift",
                "someone set the %s to %.0f %s: it is the baseline now (%.0f before)", lever(g), asked, unit(g),
                g->baseline);
    g->baseline = g->policy.baseline = g->found = asked;
    if (g->mode == RING_GUARD_ACTS || g->limit > asked) g->limit = asked;
    g->since_real_ns = clock_real_ns();
    if (g->mode == RING_GUARD_ACTS) record_write(g);
}

static void decide(struct guarding *g, const struct sample *s, int64_t now_ns) {
    struct guard_action a = guard_step(&g->state, &g->policy, s, now_ns);
    double want = a.limit, hand = g->manual[MANUAL_LIMIT].value, cap = g->cap;
    const char *why = guard_reason_words(a.reason);
    g->reason = a.reason;
    g->held_by = RING_HELD_BY_GUARD;
    if (hand < want) {
        want = hand;
        why = "set by hand";
        g->held_by = RING_HELD_BY_HAND;
    }
    g->wish = want;
    if (cap < want) {
        want = cap;
        why = "the power budget of the machine";
        g->held_by = RING_HELD_BY_BUDGET;
    }
    double fit = gpu_lever_fit(&g->lever, want);
    if (fit == g->limit) return;
    if (g->set_failures && now_ns - g->failed_ns < RETRY_NS) return;
    if (fit > g->limit && g->held_by == RING_HELD_BY_GUARD && a.verb == GUARD_HOLD)
        why = "nothing holds it lower any more";
    const char *kind = fit < g->limit ? "guard_lowered" : fit >= g->baseline ? "guard_free" : "guard_raised";
    limit_put(g, fit, kind, EVENT_INFO, why);
}

/* A card that nothing can be done about: what is left is to say so. */
static void only_say(struct guarding *g, const struct sample *s) {
    if (!sample_has(s, METRIC_TEMP_CORE)) return;
    double over = s->value[METRIC_TEMP_CORE] - g->policy.target[GUARD_CORE];
    bool is_hot = over > 0 || (g->reason == GUARD_HOT_CORE && over > -HOT_BAND_C);
    if (is_hot && g->reason != GUARD_HOT_CORE)
        board_event(g->board, EVENT_WARNING, (int)g->device, "guard_hot",
                    "%.0f C, above its target of %.0f C; %s: look after its cooling, or end what runs there",
                    s->value[METRIC_TEMP_CORE], g->policy.target[GUARD_CORE], g->why);
    g->reason = is_hot ? GUARD_HOT_CORE : GUARD_CALM;
}

/* What the budget goes by. */
static void tell_budget(struct guarding *g, const struct sample *s) {
    if (sample_has(s, METRIC_POWER_LIMIT_ENFORCED)) g->in_force = s->value[METRIC_POWER_LIMIT_ENFORCED];
    if (sample_has(s, METRIC_POWER)) g->draw_w = s->value[METRIC_POWER];
    bool is_capped = sample_has(s, METRIC_REASON_POWER_CAP) && s->value[METRIC_REASON_POWER_CAP] > 0;
    g->is_held = is_capped || g->draw_w > g->limit * 0.97;
}

static void publish_ring(struct guarding *g, const struct sample *s) {
    static const int metric[GUARD_SENSORS] = {METRIC_TEMP_CORE, METRIC_TEMP_MEMORY, METRIC_TEMP_MARGIN};
    static const char *const held[] = {"", "; held lower by hand", "; held lower by the power budget"};
    struct ring_guard r = {.since_real_ns = g->since_real_ns,
                           .mode = g->mode,
                           .lever = g->lever.kind,
                           .reason = g->reason,
                           .held_by = g->held_by,
                           .floor = g->lever.floor,
                           .baseline = g->baseline,
                           .limit = g->limit,
                           .throttled_s = g->throttled_s,
                           .withheld_w = g->lever.kind == LEVER_POWER ? g->baseline - g->limit : NAN};
    for (int k = 0; k < MANUAL_KINDS; k++) { /* the one that ends first */
        const struct guarding_manual *m = &g->manual[k];
        if (isnan(m->value)) continue;
        if (!r.manual_until_ns || m->until_ns < r.manual_until_ns) r.manual_until_ns = m->until_ns;
        if (m->confirm_by_ns && (!r.confirm_by_ns || m->confirm_by_ns < r.confirm_by_ns))
            r.confirm_by_ns = m->confirm_by_ns;
    }
    for (int k = 0; k < GUARD_SENSORS; k++) {
        r.target[k] = g->policy.uses[k] ? g->policy.target[k] : NAN;
        if (sample_has(s, metric[k])) {
            g->read[k] = s->value[metric[k]];
            g->read_ns[k] = s->boot_ns;
        }
        r.reading[k] = g->read_ns[k] && s->boot_ns - g->read_ns[k] < SHOWN_NS ? g->read[k] : NAN;
    }
    snprintf(r.why, sizeof r.why, "%.60s%s", g->why, g->limit < g->baseline ? held[g->held_by] : "");
    if (strlen(g->why) > 60) snprintf(r.why, sizeof r.why, "%s", g->why);
    board_guard(g->board, g->device, &r);
}

static void publish(struct guarding *g, struct sample *s, int64_t now_ns) {
    double range = g->baseline - g->lever.floor;
    double dt = g->last_ns ? (double)(now_ns - g->last_ns) * 1e-9 : 0;
    bool is_low = g->lever.kind != LEVER_NONE && g->limit < g->baseline;
    g->last_ns = now_ns;
    if (is_low && g->mode == RING_GUARD_ACTS && dt < 60) g->throttled_s += dt;
    sample_put(s, METRIC_GUARD_TARGET, g->policy.target[GUARD_CORE]);
    if (g->mode == RING_GUARD_ACTS) {
        sample_put(s, METRIC_GUARD_THROTTLED, g->throttled_s);
        if (range > 0) sample_put(s, METRIC_GUARD_LIMIT, (g->limit - g->lever.floor) / range);
        if (g->lever.kind == LEVER_POWER) sample_put(s, METRIC_GUARD_WITHHELD, fmax(0, g->baseline - g->limit));
    }
    publish_ring(g, s);
}

static void publish_off(struct guarding *g) {
    struct ring_guard r = {.mode = RING_GUARD_OFF, .lever = g->lever.kind, .since_real_ns = clock_real_ns()};
    snprintf(r.why, sizeof r.why, "guard.mode is off");
    board_guard(g->board, g->device, &r);
}

void guarding_step(struct guarding *g, struct sample *s, int64_t now_ns) {
    if (g->mode == RING_GUARD_OFF) {
        if (!g->is_taken) publish_off(g);
        g->is_taken = true;
        g->is_settled = true;
        return;
    }
    if (!g->begun_ns) g->begun_ns = now_ns;
    if (g->is_kept_out) take_over(g, now_ns);
    sensors_look(g, s);
    if (!g->is_taken) {
        /* a card that does not tell its temperature is taken all the same, and is blind */
        if (!sample_has(s, METRIC_TEMP_CORE) && now_ns - g->begun_ns < g->policy.grace_ns) return;
        take(g, s, now_ns);
    }
    margin_look(g, s);
    if (g->lever.kind != LEVER_NONE) {
        manual_expire(g, now_ns);
        orders_take(g, now_ns);
        drift_look(g, s, now_ns);
        decide(g, s, now_ns);
    } else {
        only_say(g, s);
    }
    tell_budget(g, s);
    g->acts = g->mode == RING_GUARD_ACTS;
    g->is_settled = true;
    publish(g, s, now_ns);
}

/* A card that nothing can be done about needs no rounds of its own. */
bool guarding_is_on(const struct guarding *g) { return g->mode != RING_GUARD_OFF && g->lever.kind != LEVER_NONE; }

/* How far one sensor lies below its target; NaN: it was not read yet. */
static double headroom_of(const struct guarding *g, int sensor) {
    struct guard_policy one = g->policy;
    for (int k = 0; k < GUARD_SENSORS; k++) one.uses[k] = k == sensor;
    return guard_headroom_c(&g->state, &one);
}

/* The margin counts from the hottest spot, which stands well above the rest under any load: it is near later. */
bool guarding_is_near(const struct guarding *g) {
    static const double near_c[GUARD_SENSORS] = {[GUARD_CORE] = 20, [GUARD_MEMORY] = 20, [GUARD_MARGIN] = 8};
    if (!g->is_taken || !guarding_is_on(g)) return false;
    for (int k = 0; k < GUARD_SENSORS; k++)
        if (g->policy.uses[k] && !(headroom_of(g, k) > near_c[k])) return true;
    return false;
}

bool guarding_tell(struct guarding *g, const struct guarding_order *order) {
    pthread_mutex_lock(&g->lock);
    bool has_room = g->order_count < ORDERS_MAX;
    if (has_room) g->orders[g->order_count++] = *order;
    pthread_mutex_unlock(&g->lock);
    return has_room;
}

void guarding_close(struct guarding *g) {
    if (g->is_taken && g->mode == RING_GUARD_ACTS) {
        bool is_back =
            g->limit == g->baseline || limit_put(g, g->baseline, "guard_restored", EVENT_INFO, "the guard ends");
        if (is_back) unlink(g->record_path);
    }
    fd_done(&g->lock_fd);
    g->is_taken = false;
    g->mode = RING_GUARD_OFF;
}
