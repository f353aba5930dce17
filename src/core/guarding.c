#include "core/guarding.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "model/baseline.h"

#define SETTLE_NS (1500 * NS_PER_MS) /* after setting a limit, its echo may take this long */
#define DRIFT_SHARE 0.004            /* of the range: less is rounding */
#define COOL_C 30.0
#define MARGIN_FRESH_NS (2500 * NS_PER_MS)
#define STILL_NEEDED_C 4.0 /* a throttle found at start is kept if the card is that near its target */

static const char *unit(const struct guarding *g) { return gpu_lever_unit(g->lever.kind); }

static const char *lever(const struct guarding *g) { return gpu_lever_name(g->lever.kind); }

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

static bool record_read(const struct guarding *g, struct baseline *ret) {
    struct error e;
    AUTO(buf_done) struct buf text = {0};
    if (file_read(g->record_path, BASELINE_MAX, &text, &e) < 0) return false;
    if (baseline_decode(ret, text.s, &e) >= 0 && strcmp(ret->uuid, gpu_inventory(g->gpu)->uuid) == 0 &&
        ret->lever == (uint32_t)g->lever.kind)
        return true;
    board_event(g->board, EVENT_WARNING, (int)g->device, "guard_record", "the baseline record %s cannot be used",
                g->record_path);
    return false;
}

/* ---- setting ---- */

/* True when the limit is in force now, or would be in observe mode. Every change is an event with its reason. */
static bool limit_put(struct guarding *g, double v, const char *kind, enum event_severity severity, const char *why) {
    double fit = gpu_lever_fit(&g->lever, v), was = g->limit;
    bool acts = g->mode == RING_GUARD_ACTS;
    if (acts) {
        int r = fit >= g->lever.top && g->lever.kind == LEVER_CLOCKS ? gpu_lever_reset(g->gpu, &g->lever)
                                                                     : gpu_lever_set(g->gpu, &g->lever, fit);
        if (r == -EACCES) {
            g->mode = RING_GUARD_OBSERVES;
            snprintf(g->why, sizeof g->why, "this process may not set limits");
            board_event(g->board, EVENT_WARNING, (int)g->device, "guard_observes", "%s: it observes only", g->why);
            return false;
        }
        if (r < 0) {
            if (g->set_failures++ == 0)
                board_event(g->board, EVENT_ERROR, (int)g->device, "guard_set_failed",
                            "the %s could not be set to %.0f %s; trying again", lever(g), fit, unit(g));
            return false;
        }
        g->set_failures = 0;
    }
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
    p->target[GUARD_CORE] = g->hot_c = hot_c;
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

static void mode_set(struct guarding *g, const struct settings *s) {
    g->mode = s->guard_mode == GUARD_OFF       ? RING_GUARD_OFF
              : s->guard_mode == GUARD_OBSERVE ? RING_GUARD_OBSERVES
                                               : RING_GUARD_ACTS;
    snprintf(g->why, sizeof g->why, "%s", g->lever.why);
    if (g->mode == RING_GUARD_OBSERVES) snprintf(g->why, sizeof g->why, "guard.mode is observe");
    if (g->lever.kind == LEVER_NONE && g->mode == RING_GUARD_ACTS) g->mode = RING_GUARD_OBSERVES;
    if (g->mode != RING_GUARD_ACTS) return;
    /* one guard a card on this machine, whatever directories they run in */
    char path[400];
    snprintf(path, sizeof path, "%s/gpumgr-guard-%s", s->lock_dir, gpu_inventory(g->gpu)->uuid);
    g->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (g->lock_fd >= 0 && flock(g->lock_fd, LOCK_EX | LOCK_NB) == 0) return;
    g->mode = RING_GUARD_OBSERVES;
    snprintf(g->why, sizeof g->why, "another guard on this machine has it");
    board_event(g->board, EVENT_WARNING, (int)g->device, "guard_observes", "%s: this one observes only", g->why);
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
    g->manual = NAN;
    g->clear_stale = s->clear_stale;
    snprintf(g->record_path, sizeof g->record_path, "%s/guard/%s", s->dir, gpu_inventory(gpu)->uuid);
    gpu_lever_find(gpu, &g->lever);
    g->policy.control = (enum guard_control)g->lever.kind;
    guarding_reconfigure(g, s);
    mode_set(g, s);
    g->baseline = g->limit = g->lever.usual;
    double now;
    if (g->lever.kind != LEVER_NONE && gpu_lever_get(gpu, &g->lever, &now) == 0) g->baseline = g->limit = now;
}

static void sensors_find(struct guarding *g, const struct sample *s) {
    struct guard_policy *p = &g->policy;
    p->uses[GUARD_CORE] = sample_has(s, METRIC_TEMP_CORE);
    p->uses[GUARD_MEMORY] = sample_has(s, METRIC_TEMP_MEMORY) && !isnan(p->target[GUARD_MEMORY]);
}

/* The margin is read with the others only near the target; elsewhere it is not missed. One that is below its target on a
 * card that is cool otherwise is one of those that cannot be believed. */
static void margin_look(struct guarding *g, const struct sample *s, int64_t now_ns) {
    struct guard_policy *p = &g->policy;
    if (sample_has(s, METRIC_TEMP_MARGIN)) {
        bool is_cool = sample_has(s, METRIC_TEMP_CORE) && s->value[METRIC_TEMP_CORE] < p->target[GUARD_CORE] - COOL_C;
        p->uses[GUARD_MARGIN] = !(is_cool && s->value[METRIC_TEMP_MARGIN] <= p->target[GUARD_MARGIN]);
        g->margin_ns = now_ns;
    } else if (!guarding_is_near(g) && now_ns - g->margin_ns > MARGIN_FRESH_NS) {
        p->uses[GUARD_MARGIN] = false;
    }
}

static bool is_hot(const struct guarding *g, const struct sample *s) {
    return sample_has(s, METRIC_TEMP_CORE) &&
           s->value[METRIC_TEMP_CORE] > g->policy.target[GUARD_CORE] - STILL_NEEDED_C;
}

/* What an earlier guard left, or what the administrator set: the record tells them apart. */
static void baseline_find(struct guarding *g, const struct sample *s) {
    struct baseline record;
    double found = g->limit, slack = DRIFT_SHARE * (g->lever.top - g->lever.floor);
    bool has_record = record_read(g, &record);
    if (g->clear_stale == STALE_ALL) {
        g->baseline = g->lever.usual;
        if (fabs(found - g->baseline) > slack || g->lever.kind == LEVER_CLOCKS)
            limit_put(g, g->baseline, "guard_stale_cleared", EVENT_WARNING, "guard.clear_stale is all");
    } else if (has_record) {
        g->baseline = gpu_lever_fit(&g->lever, record.value);
        if (g->lever.kind == LEVER_CLOCKS) found = g->limit = NAN; /* a lock cannot be read: take it away */
        if (!isnan(found) && fabs(found - g->baseline) <= slack) return;
        if (!isnan(found) && found < g->baseline && is_hot(g, s)) {
            board_event(g->board, EVENT_INFO, (int)g->device, "guard_resumed",
                        "%.0f %s of an earlier guard are kept: the card is still hot", found, unit(g));
            return;
        }
        if (isnan(g->limit)) g->limit = g->baseline;
        limit_put(g, g->baseline, "guard_stale_cleared", EVENT_WARNING, "left by an earlier guard");
    } else if (found < g->lever.usual - slack) {
        board_event(g->board, EVENT_INFO, (int)g->device, "guard_baseline",
                    "%s %.0f %s, below the default of %.0f: taken for the administrator's, and kept as the baseline",
                    lever(g), found, unit(g), g->lever.usual);
    }
}

/* After the first complete reading: the card is ours. */
static void take(struct guarding *g, const struct sample *s) {
    sensors_find(g, s);
    if (g->lever.kind != LEVER_NONE) baseline_find(g, s);
    g->policy.floor = g->lever.floor;
    g->policy.baseline = g->baseline;
    guard_begin(&g->state, &g->policy, g->limit, clock_boot_ns());
    if (g->mode == RING_GUARD_ACTS) record_write(g);
    g->since_real_ns = clock_real_ns();
    g->is_taken = true;
}

/* ---- each round ---- */

static void order_take(struct guarding *g, int64_t now_ns) {
    pthread_mutex_lock(&g->lock);
    struct guarding_order o = g->order;
    g->order.what = ORDER_NONE;
    pthread_mutex_unlock(&g->lock);
    switch (o.what) {
    case ORDER_NONE: return;
    case ORDER_TARGET: g->policy.target[GUARD_CORE] = o.value; break;
    case ORDER_LIMIT: g->manual = o.value; break;
    case ORDER_CONFIRM: g->confirm_by_ns = 0; return;
    case ORDER_RESTORE:
        g->manual = NAN;
        g->manual_until_ns = g->confirm_by_ns = 0;
        g->policy.target[GUARD_CORE] = g->hot_c;
        limit_put(g, g->baseline, "guard_restored", EVENT_INFO, "asked for by hand");
        guard_begin(&g->state, &g->policy, g->limit, now_ns);
        return;
    }
    g->manual_until_ns = now_ns + o.for_ns;
    g->confirm_by_ns = o.confirm_ns ? now_ns + o.confirm_ns : 0;
}

static void manual_expire(struct guarding *g, int64_t now_ns) {
    if (!g->manual_until_ns) return;
    bool is_unconfirmed = g->confirm_by_ns && now_ns >= g->confirm_by_ns;
    if (!is_unconfirmed && now_ns < g->manual_until_ns) return;
    g->manual = NAN;
    g->manual_until_ns = g->confirm_by_ns = 0;
    g->policy.target[GUARD_CORE] = g->hot_c;
    board_event(g->board, EVENT_INFO, (int)g->device, "guard_manual_over", "what was set by hand is over: %s",
                is_unconfirmed ? "it was not confirmed" : "its time has passed");
}

/* Someone else's hand: the limit in force is not the one we know. */
static void drift_look(struct guarding *g, const struct sample *s, int64_t now_ns) {
    if (g->lever.kind != LEVER_POWER || !sample_has(s, METRIC_POWER_LIMIT_ENFORCED)) return;
    double there = s->value[METRIC_POWER_LIMIT_ENFORCED],
           slack = fmax(0.5, DRIFT_SHARE * (g->lever.top - g->lever.floor));
    double ours = g->mode == RING_GUARD_ACTS ? g->limit : g->baseline;
    if (now_ns - g->set_ns < SETTLE_NS || fabs(there - ours) <= slack) return;
    double asked;
    if (gpu_lever_get(g->gpu, &g->lever, &asked) < 0 || fabs(asked - ours) <= slack)
        return; /* another limiter, not a hand */
    if (g->drift == DRIFT_ASSERT && g->mode == RING_GUARD_ACTS) {
        board_event(g->board, EVENT_WARNING, (int)g->device, "guard_drift",
                    "someone set the power limit to %.0f W; setting %.0f W again", asked, g->limit);
        limit_put(g, g->limit, "guard_asserted", EVENT_INFO, "someone else had changed it");
        return;
    }
    board_event(g->board, EVENT_WARNING, (int)g->device, "guard_drift",
                "someone set the power limit to %.0f W: it is the baseline now (%.0f W before)", asked, g->baseline);
    g->baseline = g->limit = asked;
    g->policy.baseline = asked;
    g->set_ns = now_ns;
    guard_begin(&g->state, &g->policy, g->limit, now_ns);
    if (g->mode == RING_GUARD_ACTS) record_write(g);
}

static void decide(struct guarding *g, const struct sample *s, int64_t now_ns) {
    struct guard_action a = guard_step(&g->state, &g->policy, s, now_ns);
    double want = a.limit;
    g->wish = want;
    const char *why = guard_reason_words(a.reason);
    g->reason = a.reason;
    if (!isnan(g->manual) && g->manual < want) {
        want = g->manual;
        why = "set by hand";
    }
    if (g->cap < want) {
        want = g->cap;
        why = "the power budget of the machine";
    }
    double fit = gpu_lever_fit(&g->lever, want);
    if (fit == g->limit) return;
    if (now_ns - g->set_ns < NS_PER_S && g->set_failures) return;
    limit_put(g, fit, fit < g->limit ? "guard_lowered" : "guard_raised", EVENT_INFO, why);
}

/* What the budget goes by. */
static void tell_budget(struct guarding *g, const struct sample *s) {
    if (sample_has(s, METRIC_POWER_LIMIT_ENFORCED)) g->in_force = s->value[METRIC_POWER_LIMIT_ENFORCED];
    if (sample_has(s, METRIC_POWER)) g->draw_w = s->value[METRIC_POWER];
    bool is_capped = sample_has(s, METRIC_REASON_POWER_CAP) && s->value[METRIC_REASON_POWER_CAP] > 0;
    g->is_held = is_capped || g->draw_w > g->limit * 0.97;
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
    static const int metric[GUARD_SENSORS] = {METRIC_TEMP_CORE, METRIC_TEMP_MEMORY, METRIC_TEMP_MARGIN};
    struct ring_guard r = {.since_real_ns = g->since_real_ns,
                           .mode = g->mode,
                           .lever = g->lever.kind,
                           .reason = g->reason,
                           .floor = g->lever.floor,
                           .baseline = g->baseline,
                           .limit = g->limit,
                           .throttled_s = g->throttled_s,
                           .withheld_w = g->lever.kind == LEVER_POWER ? g->baseline - g->limit : NAN,
                           .manual_until_ns = g->manual_until_ns,
                           .confirm_by_ns = g->confirm_by_ns};
    for (int k = 0; k < GUARD_SENSORS; k++) {
        r.target[k] = g->policy.uses[k] ? g->policy.target[k] : NAN;
        r.reading[k] = sample_has(s, metric[k]) ? s->value[metric[k]] : NAN;
    }
    snprintf(r.why, sizeof r.why, "%s", g->why);
    board_guard(g->board, g->device, &r);
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
        return;
    }
    if (!g->is_taken) {
        if (!sample_has(s, METRIC_TEMP_CORE)) return;
        take(g, s);
    }
    margin_look(g, s, now_ns);
    if (g->lever.kind != LEVER_NONE) {
        manual_expire(g, now_ns);
        order_take(g, now_ns);
        drift_look(g, s, now_ns);
        decide(g, s, now_ns);
        tell_budget(g, s);
    }
    g->acts = g->mode == RING_GUARD_ACTS;
    publish(g, s, now_ns);
}

bool guarding_is_on(const struct guarding *g) { return g->is_taken && g->mode != RING_GUARD_OFF; }

/* How far one sensor lies below its target; NaN: it was not read yet. */
static double headroom_of(const struct guarding *g, int sensor) {
    struct guard_policy one = g->policy;
    for (int k = 0; k < GUARD_SENSORS; k++) one.uses[k] = k == sensor;
    return guard_headroom_c(&g->state, &one);
}

/* The margin counts from the hottest spot, which stands well above the rest under any load: it is near later. */
bool guarding_is_near(const struct guarding *g) {
    static const double near_c[GUARD_SENSORS] = {[GUARD_CORE] = 20, [GUARD_MEMORY] = 20, [GUARD_MARGIN] = 8};
    if (!guarding_is_on(g)) return false;
    for (int k = 0; k < GUARD_SENSORS; k++)
        if (g->policy.uses[k] && !(headroom_of(g, k) > near_c[k])) return true;
    return false;
}

void guarding_tell(struct guarding *g, const struct guarding_order *order) {
    pthread_mutex_lock(&g->lock);
    g->order = *order;
    pthread_mutex_unlock(&g->lock);
}

void guarding_close(struct guarding *g) {
    if (g->is_taken && g->mode == RING_GUARD_ACTS) {
        double slack = DRIFT_SHARE * (g->lever.top - g->lever.floor);
        bool is_back = fabs(g->limit - g->baseline) <= slack ||
                       limit_put(g, g->baseline, "guard_restored", EVENT_INFO, "the guard ends");
        if (is_back) unlink(g->record_path);
    }
    fd_done(&g->lock_fd);
    g->is_taken = false;
    g->mode = RING_GUARD_OFF;
}
