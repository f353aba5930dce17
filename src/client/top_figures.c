#include "client/top_figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "model/guard_words.h"

enum { XID_RECENT_S = 600 };

static const double gib = 1024.0 * 1024 * 1024;

static const struct {
    const char *word;
    int metric, line;
    uint32_t style;
} gauges[GAUGES] = {
    [GAUGE_UTIL] = {"util",  METRIC_UTIL_GPU,    -1,                          STYLE_UTIL  },
    [GAUGE_MEMORY] = {"mem",   METRIC_MEMORY_USED, -1,                          STYLE_MEMORY},
    [GAUGE_TEMP] = {"temp",  METRIC_TEMP_CORE,   METRIC_GUARD_TARGET,         STYLE_TEMP  },
    [GAUGE_POWER] = {"power", METRIC_POWER,       METRIC_POWER_LIMIT_ENFORCED, STYLE_POWER },
};

int top_gauge_metric(enum top_gauge g) { return gauges[g].metric; }
int top_gauge_line(enum top_gauge g) { return gauges[g].line; }
const char *top_gauge_word(enum top_gauge g) { return gauges[g].word; }

static double get(const struct view *v, const struct view_device *d, int metric) {
    return latest_has(&d->latest, metric, v->boot_ns) ? d->latest.of[metric].value : NAN;
}

static double first_known(double a, double b) { return isnan(a) ? b : a; }

/* ---- the sentence ---- */

static bool note_state(const struct view *v, const struct view_device *d, struct top_figures *f) {
    static const char *const loud[] = {[DEVICE_NOT_ANSWERING] = "NOT ANSWERING",
                                       [DEVICE_LOST] = "LOST",
                                       [DEVICE_FENCED] = "FENCED",
                                       [DEVICE_FORBIDDEN] = "FORBIDDEN"};
    char why[160], age[32];
    view_state(d, why, sizeof why);
    f->note_style = STYLE_ALARM;
    if (d->silent_ns) {
        number_age(d->silent_ns, age, sizeof age);
        snprintf(f->note, sizeof f->note, "STALE %s: its sampler is silent", age);
        return true;
    }
    if (d->state.state == DEVICE_STARTING) {
        f->note_style = STYLE_DIM;
        snprintf(f->note, sizeof f->note, "starting");
        return true;
    }
    if (view_is_well(d) || d->state.state >= ARRAY_LEN(loud)) return !view_is_well(d);
    number_age(v->real_ns - d->state.since_real_ns, age, sizeof age);
    snprintf(f->note, sizeof f->note, "%s %s%s%s", loud[d->state.state], age, *why ? ": " : "", why);
    return true;
}

static bool note_guard(const struct view_device *d, struct top_figures *f) {
    const struct ring_guard *g = &d->guard;
    if (!d->has_guard || g->mode == RING_GUARD_OFF || !guard_is_low(g) || !isfinite(g->limit)) return false;
    bool acts = g->mode == RING_GUARD_ACTS;
    const char *why = guard_short_reason(g);
    if (strcmp(why, "calm") == 0) why = "budget";
    f->note_style = acts ? STYLE_WARN : STYLE_DIM;
    snprintf(f->note, sizeof f->note, "%s at %.0f of %.0f %s: %s", acts ? "held" : "would be held", g->limit,
             g->baseline, guard_unit(g), why);
    snprintf(f->brief, sizeof f->brief, "%s: %s", acts ? "held" : "wants less", why);
    return true;
}

/* Why a card is slower than it could be; the gravest first, and an idle card is not slow. */
static bool note_slow(const struct view *v, const struct view_device *d, struct top_figures *f) {
    static const struct {
        int metric;
        const char *words, *brief;
        uint32_t style;
    } reasons[] = {
        {METRIC_REASON_HW_THERMAL,  "slowed by heat (hardware)", "heat! (hardware)", STYLE_BAD },
        {METRIC_REASON_POWER_BRAKE, "power brake",               "power brake!",     STYLE_BAD },
        {METRIC_REASON_HW_SLOWDOWN, "slowed by hardware",        "slow! (hardware)", STYLE_BAD },
        {METRIC_REASON_SW_THERMAL,  "slowed by heat",            "slowed by heat",   STYLE_WARN},
        {METRIC_REASON_POWER_CAP,   "at power limit",            "at power limit",   STYLE_DIM },
        {METRIC_REASON_SYNC_BOOST,  "sync boost",                "sync boost",       STYLE_DIM },
        {METRIC_REASON_APP_CLOCKS,  "clocks set",                "clocks set",       STYLE_DIM },
        {METRIC_REASON_DISPLAY,     "display clocks",            "display clocks",   STYLE_DIM },
    };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        double on = get(v, d, reasons[i].metric);
        if (isnan(on) || on == 0) continue;
        snprintf(f->note, sizeof f->note, "%s", reasons[i].words);
        snprintf(f->brief, sizeof f->brief, "%s", reasons[i].brief);
        f->note_style = reasons[i].style;
        return reasons[i].style != STYLE_DIM;
    }
    return false;
}

static bool note_xid(const struct view *v, const struct view_device *d, struct top_figures *f) {
    int64_t last = 0;
    uint64_t code = 0;
    for (uint64_t i = 0; i < d->xids.count && i < RING_XIDS_MAX; i++)
        if (d->xids.of[i].last_real_ns > last) last = d->xids.of[i].last_real_ns, code = d->xids.of[i].code;
    if (!last || v->real_ns - last > XID_RECENT_S * NS_PER_S) return false;
    char age[32];
    number_age(v->real_ns - last, age, sizeof age);
    snprintf(f->note, sizeof f->note, "XID %llu %s ago", (unsigned long long)code, age);
    f->note_style = STYLE_BAD;
    return true;
}

static void find_note(const struct view *v, const struct view_device *d, struct top_figures *f) {
    double action = get(v, d, METRIC_RECOVERY_ACTION);
    if (note_state(v, d, f) || note_xid(v, d, f)) return;
    if (action > 0) {
        snprintf(f->note, sizeof f->note, "driver asks for a %s",
                 action == 1   ? "reset"
                 : action == 2 ? "reboot"
                               : "drain");
        f->note_style = STYLE_BAD;
        return;
    }
    if (!note_guard(d, f)) note_slow(v, d, f);
}

/* ---- the figures ---- */

/* As the guard sees it: its own target, else the threshold that was set, else the card's own maximum less 3, else 83. */
static double target_of(const struct view_device *d, double hot_c) {
    if (d->has_guard && d->guard.mode != RING_GUARD_OFF && isfinite(d->guard.target[GUARD_CORE]))
        return d->guard.target[GUARD_CORE];
    if (!isnan(hot_c)) return hot_c;
    return d->inventory.temp_gpu_max_c > 0 ? d->inventory.temp_gpu_max_c - 3 : 83;
}

static void find_power(const struct view *v, const struct view_device *d, struct top_figures *f) {
    double limit = first_known(get(v, d, METRIC_POWER_LIMIT_ENFORCED), get(v, d, METRIC_POWER_LIMIT));
    double baseline =
        d->has_guard && d->guard.lever == GUARD_BY_POWER ? d->guard.baseline : get(v, d, METRIC_POWER_LIMIT_DEFAULT);
    f->value[GAUGE_POWER] = get(v, d, METRIC_POWER);
    f->full[GAUGE_POWER] = limit;
    if (!(baseline > limit + 0.5)) return;
    f->full[GAUGE_POWER] = baseline;
    f->notch[GAUGE_POWER] = limit / baseline;
}

void top_figures(const struct view *v, const struct view_device *d, double hot_c, struct top_figures *f) {
    *f = (struct top_figures){.is_well = view_is_well(d)};
    for (int i = 0; i < GAUGES; i++) {
        f->style[i] = gauges[i].style;
        f->metric[i] = gauges[i].metric;
        f->notch[i] = NAN;
    }
    f->value[GAUGE_UTIL] = get(v, d, METRIC_UTIL_GPU);
    if (isnan(f->value[GAUGE_UTIL])) { /* a card that is cut by MIG counts only this */
        f->value[GAUGE_UTIL] = get(v, d, METRIC_ACTIVE_GRAPHICS);
        f->metric[GAUGE_UTIL] = METRIC_ACTIVE_GRAPHICS;
    }
    f->full[GAUGE_UTIL] = 1;
    f->value[GAUGE_MEMORY] = get(v, d, METRIC_MEMORY_USED);
    f->full[GAUGE_MEMORY] = get(v, d, METRIC_MEMORY_TOTAL);
    f->value[GAUGE_TEMP] = get(v, d, METRIC_TEMP_CORE);
    f->full[GAUGE_TEMP] = target_of(d, hot_c);
    find_power(v, d, f);
    double room = f->full[GAUGE_TEMP] - f->value[GAUGE_TEMP];
    f->is_hot = room <= 0;
    if (room <= 5) f->style[GAUGE_TEMP] = room <= 0 ? STYLE_BAD : STYLE_WARN;
    if (f->value[GAUGE_MEMORY] > 0.97 * f->full[GAUGE_MEMORY]) f->style[GAUGE_MEMORY] = STYLE_WARN;
    f->sm_mhz = first_known(get(v, d, METRIC_CLOCK_SM), get(v, d, METRIC_CLOCK_GRAPHICS)) / 1e6;
    f->memory_mhz = get(v, d, METRIC_CLOCK_MEMORY) / 1e6;
    f->memory_temp_c = get(v, d, METRIC_TEMP_MEMORY);
    f->fan = get(v, d, METRIC_FAN_SPEED);
    f->pstate = get(v, d, METRIC_PSTATE);
    f->sm_active = get(v, d, METRIC_ACTIVE_SM);
    f->tensor_active = get(v, d, METRIC_ACTIVE_TENSOR);
    f->dram_active = get(v, d, METRIC_ACTIVE_DRAM);
    f->rx_bps = get(v, d, METRIC_PCIE_RX);
    f->tx_bps = get(v, d, METRIC_PCIE_TX);
    find_note(v, d, f);
    if (!*f->brief) snprintf(f->brief, sizeof f->brief, "%.23s", f->note);
}

/* ---- words ---- */

static void of_full(double value, double full, int decimals, const char *unit, bool is_long, char *ret, size_t room) {
    const char *gap = is_long ? " " : "";
    if (isnan(full))
        snprintf(ret, room, "%.*f%s%s", decimals, value, gap, unit);
    else if (is_long)
        snprintf(ret, room, "%.*f of %.*f %s", decimals, value, decimals, full, unit);
    else
        snprintf(ret, room, "%.*f/%.*f%s", decimals, value, decimals, full, unit);
}

void top_gauge_text(const struct top_figures *f, enum top_gauge g, bool has_utf8, bool is_long, char *ret,
                    size_t room) {
    double value = f->value[g], full = f->full[g];
    if (isnan(value)) {
        snprintf(ret, room, "-");
        return;
    }
    switch (g) {
    case GAUGE_UTIL: snprintf(ret, room, "%.0f%%", value * 100); return;
    case GAUGE_MEMORY:
        of_full(value / gib, full / gib, full >= 100 * gib && !is_long ? 0 : 1, is_long ? "GiB" : "G", is_long, ret,
                room);
        return;
    case GAUGE_TEMP: of_full(value, full, 0, has_utf8 ? "°C" : "C", is_long, ret, room); break;
    case GAUGE_POWER:
        of_full(value, isnan(f->notch[g]) ? full : full * f->notch[g], 0, "W", is_long, ret, room);
        return;
    default: return;
    }
    size_t n = strlen(ret);
    if (f->is_hot) snprintf(ret + n, room - n, "!"); /* nothing is told by colour alone */
}
