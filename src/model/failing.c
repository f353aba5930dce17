#include "model/failing.h"

#include <math.h>

#include "base/auto.h"

#define GAP_S 30.0       /* nobody knows what happened in a longer one */
#define STEADY 0.08      /* minutes whose mean power differs by less than this ... */
#define STEADY_FULL 0.01 /* ... and this share of full power are of one load */
#define BLOCK_MINUTES 10 /* the mean of so many counts without being steady: heat follows power */
#define FAN_FROM 0.4     /* below, fans idle along */
#define FAN_C 30.0       /* what running the fans from there to full is worth, in degrees */
#define STALE_S 900.0
#define IDLE 0.2 /* of full power: below, the card tells the air's temperature */
#define IDLE_STALE_S 21600.0
#define IDLE_GAIN 0.05
#define LEARNT_MINUTES 1440.0 /* before this, a card has no history to speak of, ... */
#define SURE_MINUTES 4320.0   /* ... and before this, one to be careful with */
#define TELLING 2.0           /* times the least: a smaller rise cannot show a fault of half again as much */
#define BLIND_C 5.0           /* more is allowed where nothing tells the room, or told it long ago */
#define WEIGHT_MOST 4.0       /* what is far too warm counts for more than what is just so */
#define RUN_MINUTES 5         /* of one load, before its lowest warmth is a measure */
#define RUN_C 10.0            /* above that, within one load, ... */
#define RUN_LEAK_C 0.25       /* ... with so much a minute granted: no room warms like this */
#define RUN_MEMORY 0.1
#define UNLIKE 1.4 /* times the slope of the neighbours' median */
#define UNLIKE_SPREAD 0.12
#define UNLIKE_MINUTES 4320.0
#define UNLIKE_PEERS 3
#define ROUGH 0.25 /* of full power */
#define FAN_ASKED 0.2
#define WARM_C 50.0 /* below, nobody needs to be told */
#define DRAW 1.1
#define DRAW_FULL 0.8
#define DAY_S 86400.0
#define ROOM_MEMORY_MINUTES 20000.0
#define ROOM_STEP_C 3.0

/* clang-format off */
const struct failing_row failing_rows[FAILING_KINDS] = {
    [FAILING_COOLING]  = {"failing_cooling", EVENT_ERROR, 600, 3600,
        "runs much hotter for its power than it used to and than its neighbours: clean the cooler and check its fan and airflow",
        "is as warm for its power as it used to be"},
    [FAILING_UNLIKE]   = {"failing_unlike", EVENT_WARNING, 86400, 86400,
        "has warmed more per watt than its neighbours ever since it was first seen: check how its cooler is mounted",
        "warms as its neighbours do"},
    [FAILING_FAN]      = {"failing_fan", EVENT_CRITICAL, 60, 300,
        "has a fan that stands or turns far slower than it is told to while the card is hot: replace the fan",
        "has fans that turn as they are told"},
    [FAILING_SLOWDOWN] = {"failing_slowdown", EVENT_ERROR, 0, 0,
        "is slowed by its hardware again and again: check its cooling and its power cables before it fails",
        "is no longer slowed by its hardware"},
    [FAILING_BRAKE]    = {"failing_brake", EVENT_ERROR, 0, 0,
        "is slowed by the power brake signal again and again: check power supplies, their redundancy and the cables",
        "is no longer slowed by the power brake signal"},
    [FAILING_LIMIT]    = {"failing_limit", EVENT_ERROR, 10, 10,
        "does not take the power limit it is given: look for another program or a BMC that sets limits",
        "has the power limit it was given"},
    [FAILING_DRAW]     = {"failing_draw", EVENT_ERROR, 180, 600,
        "draws more than the power limit in force allows: its power sensor or regulator is likely broken",
        "draws what its power limit allows"},
    [FAILING_OVERUSE]  = {"failing_overuse", EVENT_WARNING, 0, 0,
        "has been above its target temperature for much of the week: give it more air, a lower limit or less work",
        "has been below its target temperature for most of the week"},
    [FAILING_ROOM]     = {"failing_room", EVENT_ERROR, 900, 1800,
        "all GPUs run hotter for their power than they used to: check the room's air, the machine's fans and its filters",
        "all GPUs are as warm for their power as they used to be"},
};
/* clang-format on */

const struct failing_policy failing_defaults = {
    .factor = 0.25,
    .least_c = 6,
    .room_c = 9,
    .slow_minutes = 6,
    .overuse_share = 0.1,
    .limit_tolerance = 0.01,
    .limit_tolerance_w = 2,
};

enum finding { CANNOT_TELL, GOOD, BAD };

static void mark_take(struct failing_mark *m, enum failing_kind k, enum finding what, double seconds) {
    const struct failing_row *row = &failing_rows[k];
    if (what == CANNOT_TELL) return;
    if (what == BAD) {
        m->bad_s += (float)seconds;
        m->good_s = 0;
    } else {
        m->good_s += (float)seconds;
        m->bad_s = fmaxf(m->bad_s - (float)seconds, 0);
    }
    if (!m->is_up && what == BAD && m->bad_s >= (float)row->raise_s) m->is_up = true;
    if (m->is_up && what == GOOD && m->good_s >= (float)row->clear_s) {
        m->is_up = false;
        m->bad_s = 0;
    }
}

static bool has(const struct sample *s, int id) { return s && sample_has(s, id); }
static bool says(const struct sample *s, int id) { return has(s, id) && s->value[id] > 0; }

/* ---- what every reading tells ---- */

static enum finding look_at_fan(const struct failing_card *c, const struct sample *s) {
    if (!has(s, METRIC_FAN_SPEED) || !has(s, METRIC_FAN_RPM) || !has(s, METRIC_TEMP_CORE)) return CANNOT_TELL;
    double asked = s->value[METRIC_FAN_SPEED], rpm = s->value[METRIC_FAN_RPM];
    if (asked < FAN_ASKED) return CANNOT_TELL;
    double due = asked * (double)c->past.rpm_full;
    bool is_slow = rpm <= 0 || rpm < 0.4 * due;
    if (is_slow) return s->value[METRIC_TEMP_CORE] >= WARM_C ? BAD : CANNOT_TELL;
    return rpm >= 0.6 * due ? GOOD : CANNOT_TELL;
}

static void fan_learn(struct failing_history *h, const struct sample *s, double dt) {
    if (!has(s, METRIC_FAN_SPEED) || !has(s, METRIC_FAN_RPM)) return;
    double asked = s->value[METRIC_FAN_SPEED], rpm = s->value[METRIC_FAN_RPM];
    if (asked < 0.3 || rpm <= 0 || rpm < 0.6 * asked * (double)h->rpm_full) return;
    double gain = h->rpm_full > 0 ? fmin(dt / 3600, 1) : 1;
    h->rpm_full += (float)((rpm / asked - (double)h->rpm_full) * gain);
}

static enum finding look_at_limit(const struct failing_policy *p, const struct sample *s, double asked_w) {
    if (isnan(asked_w) || !has(s, METRIC_POWER_LIMIT_ENFORCED)) return CANNOT_TELL;
    double off = fabs(s->value[METRIC_POWER_LIMIT_ENFORCED] - asked_w);
    return off > fmax(p->limit_tolerance_w, p->limit_tolerance * asked_w) ? BAD : GOOD;
}

/* Only a card that is at its limit can tell; a moment above it is nothing, minutes are. */
static enum finding look_at_draw(const struct sample *s) {
    if (!has(s, METRIC_POWER) || !has(s, METRIC_POWER_LIMIT_ENFORCED)) return CANNOT_TELL;
    double enforced_w = s->value[METRIC_POWER_LIMIT_ENFORCED], power_w = s->value[METRIC_POWER];
    if (enforced_w <= 0 || power_w < DRAW_FULL * enforced_w) return CANNOT_TELL;
    return power_w > DRAW * enforced_w ? BAD : GOOD;
}

/* A slowdown may flash when the performance state changes: two readings running count. */
static void look_at_reasons(struct failing_card *c, const struct sample *s) {
    bool is_brake = says(s, METRIC_REASON_POWER_BRAKE);
    bool is_slow = says(s, METRIC_REASON_HW_THERMAL) || (says(s, METRIC_REASON_HW_SLOWDOWN) && !is_brake);
    c->slow_now |= is_slow && c->was_slow;
    c->brake_now |= is_brake && c->was_brake;
    c->was_slow = is_slow;
    c->was_brake = is_brake;
}

static void fan_take(struct failing_minute *m, double power_w, double fan, double dt) {
    m->low_w = m->has_fan ? fmin(m->low_w, power_w) : power_w;
    m->high_w = m->has_fan ? fmax(m->high_w, power_w) : power_w;
    m->fan_low = m->has_fan ? fmin(m->fan_low, fan) : fan;
    m->fan_high = m->has_fan ? fmax(m->fan_high, fan) : fan;
    m->has_fan = true;
    m->fan += fmax(fan - FAN_FROM, 0) / (1 - FAN_FROM) * dt;
}

static void minute_take(struct failing_card *c, const struct sample *s, double dt) {
    if (!has(s, METRIC_POWER) || !has(s, METRIC_TEMP_CORE)) return;
    struct failing_minute *m = &c->now;
    int memory = has(s, METRIC_ACTIVE_DRAM) ? METRIC_ACTIVE_DRAM : METRIC_UTIL_MEMORY;
    m->seconds += dt;
    m->power_w += s->value[METRIC_POWER] * dt;
    m->temp_c += s->value[METRIC_TEMP_CORE] * dt;
    if (has(s, memory)) m->memory += s->value[memory] * dt;
    if (has(s, METRIC_FAN_SPEED)) fan_take(m, s->value[METRIC_POWER], s->value[METRIC_FAN_SPEED], dt);
    double full = has(s, METRIC_POWER_LIMIT_DEFAULT) ? s->value[METRIC_POWER_LIMIT_DEFAULT]
                                                     : fmax((double)c->past.full_w, s->value[METRIC_POWER]);
    c->past.full_w = (float)fmax(full, 1);
}

static void over_take(struct failing_history *h, bool is_over, double dt) {
    if (is_over) h->over_s[0] += (float)dt;
    h->day_s += (float)dt;
    if (h->day_s < (float)DAY_S) return;
    for (int d = 6; d > 0; d--) h->over_s[d] = h->over_s[d - 1];
    h->over_s[0] = h->day_s = 0;
}

static void second_take(struct failing_card *c, const struct failing_policy *p, const struct failing_input *in,
                        double dt) {
    const struct sample *s = in->s;
    mark_take(&c->mark[FAILING_FAN], FAILING_FAN, look_at_fan(c, s), dt);
    mark_take(&c->mark[FAILING_LIMIT], FAILING_LIMIT, look_at_limit(p, s, in->asked_w), dt);
    mark_take(&c->mark[FAILING_DRAW], FAILING_DRAW, look_at_draw(s), dt);
    fan_learn(&c->past, s, dt);
    look_at_reasons(c, s);
    minute_take(c, s, dt);
    over_take(&c->past, has(s, METRIC_TEMP_CORE) && s->value[METRIC_TEMP_CORE] > in->hot_c, dt);
}

/* ---- what a minute tells ---- */

struct view { /* one card's minute, where it was of one load */
    bool is_any;
    bool is_warm, is_rough;
    double minutes, warm_c;
    struct warmth_load load;
    struct warmth_guess guess;
};

static void minute_add(struct failing_minute *to, const struct failing_minute *m) {
    to->seconds += m->seconds;
    to->power_w += m->power_w;
    to->temp_c += m->temp_c;
    to->memory += m->memory;
    to->fan += m->fan;
    to->low_w = to->has_fan ? fmin(to->low_w, m->low_w) : m->low_w;
    to->high_w = fmax(to->high_w, m->high_w);
    to->fan_low = to->has_fan ? fmin(to->fan_low, m->fan_low) : m->fan_low;
    to->fan_high = fmax(to->fan_high, m->fan_high);
    to->has_fan |= m->has_fan;
}

/* Power swings and fans go after it, or they start and stop: warmth does not follow mean power then. */
static bool is_rough(const struct failing_card *c, const struct failing_minute *m) {
    if (!m->has_fan || m->fan_high <= 0) return false;
    return m->fan_low < FAN_FROM || m->high_w - m->low_w > ROUGH * (double)c->past.full_w;
}

static struct view view_of(const struct failing_card *c, const struct failing_minute *m, double minutes) {
    struct view v = {.is_any = true, .minutes = minutes};
    v.load = (struct warmth_load){m->power_w / m->seconds / (double)c->past.full_w, m->memory / m->seconds};
    v.warm_c = (m->temp_c + FAN_C * m->fan) / m->seconds;
    v.is_warm = m->temp_c / m->seconds >= WARM_C;
    v.is_rough = is_rough(c, m);
    v.guess = warmth_guess(&c->past.warmth, v.load);
    return v;
}

/* Ends the minute. What it says of warmth counts when the two before had the same power, or as part of a long block. */
static struct view minute_close(struct failing_card *c) {
    struct failing_minute m = c->now;
    struct view v = {0};
    c->now = (struct failing_minute){0};
    if (m.seconds < 30) {
        c->before_w[0] = c->before_w[1] = -1;
        c->block = (struct failing_minute){0};
        c->block_minutes = 0;
        return v;
    }
    double w = m.power_w / m.seconds, band = STEADY * w + STEADY_FULL * (double)c->past.full_w;
    bool is_steady = fabs(w - c->before_w[0]) <= band && fabs(w - c->before_w[1]) <= band;
    c->before_w[1] = c->before_w[0];
    c->before_w[0] = w;
    minute_add(&c->block, &m);
    c->block_minutes++;
    if (is_steady)
        v = view_of(c, &m, 1);
    else if (c->block_minutes >= BLOCK_MINUTES)
        v = view_of(c, &c->block, BLOCK_MINUTES);
    if (v.is_any) {
        c->block = (struct failing_minute){0};
        c->block_minutes = 0;
    }
    return v;
}

static int count_bits(unsigned word) { return __builtin_popcount(word & 0x3ff); }

static enum finding often(unsigned word, double most) {
    int n = count_bits(word);
    return n >= most ? BAD : n <= 1 ? GOOD : CANNOT_TELL;
}

static void reasons_check(struct failing_card *c, const struct failing_policy *p) {
    c->slow = (uint16_t)(c->slow << 1 | c->slow_now);
    c->brake = (uint16_t)(c->brake << 1 | c->brake_now);
    c->slow_now = c->brake_now = false;
    mark_take(&c->mark[FAILING_SLOWDOWN], FAILING_SLOWDOWN, often(c->slow, p->slow_minutes), 60);
    mark_take(&c->mark[FAILING_BRAKE], FAILING_BRAKE, often(c->brake, p->slow_minutes), 60);
}

static void overuse_check(struct failing_card *c, const struct failing_policy *p) {
    double over = 0, most = p->overuse_share * 7 * DAY_S;
    for (int d = 0; d < 7; d++) over += (double)c->past.over_s[d];
    enum finding what = over > most ? BAD : over < most / 2 ? GOOD : CANNOT_TELL;
    mark_take(&c->mark[FAILING_OVERUSE], FAILING_OVERUSE, what, 60);
}

/* ---- what neighbours tell ---- */

static bool is_known(const struct warmth_guess *g) { return g->minutes >= WARMTH_NEAR; }

static void insert(double *sorted, size_t *n, double value) {
    size_t at = (*n)++;
    for (; at > 0 && sorted[at - 1] > value; at--) sorted[at] = sorted[at - 1];
    sorted[at] = value;
}

struct others {      /* how much warmer than their histories the others are */
    double off_c;    /* their median; of two the higher, which calls less */
    double mean_c;   /* and of two their mean, to learn by: the higher would pull every history down, for ever */
    double spread_c; /* between their quarters: neighbours that disagree tell less */
    double blind;    /* 1: nothing tells the room; its own idle hours tell the less the longer they are ago */
    size_t count;
};

/* self: a card, or n for what all of them say. */
static struct others others_of(const struct failing *f, size_t n, size_t self) {
    double sorted[GPU_MAX + 1];
    struct others o = {0};
    for (size_t i = 0; i < n; i++) {
        const struct failing_card *c = &f->card[i];
        bool is_bad = c->mark[FAILING_COOLING].is_up || c->mark[FAILING_FAN].is_up;
        if (i != self && c->off_age_s < STALE_S && !is_bad) insert(sorted, &o.count, c->off_c);
    }
    if (self < n && o.count < 2 && f->card[self].idle_age_s < IDLE_STALE_S) {
        double age = f->card[self].idle_age_s / IDLE_STALE_S, idle_c = f->card[self].idle_c;
        o.blind = o.count ? 0 : age;
        insert(sorted, &o.count, idle_c < 0 ? idle_c * (1 - age) : idle_c); /* a cool night says little of the noon */
    }
    if (o.count == 0) {
        o.blind = 1;
        return o;
    }
    size_t low = (o.count - 1) / 2, high = o.count / 2;
    o.off_c = sorted[self < n ? high : low]; /* of two: whichever calls less */
    o.mean_c = (sorted[low] + sorted[high]) / 2;
    o.spread_c = sorted[(o.count - 1) - (o.count - 1) / 4] - sorted[(o.count - 1) / 4];
    return o;
}

static void off_take(struct failing_card *c, const struct view *v) {
    c->off_age_s += 60;
    c->idle_age_s += 60;
    if (!v->is_any || v->is_rough || !is_known(&v->guess)) return;
    c->off_c = v->warm_c - v->guess.warm_c;
    c->off_age_s = 0;
    if (v->load.power > IDLE) return;
    double gain = c->idle_age_s < STALE_S ? IDLE_GAIN : 1;
    c->idle_c += (c->off_c - c->idle_c) * gain;
    c->idle_age_s = 0;
}

/* How much warmer than expected is still nothing, the more the less is known: of this load, of the card, of the room. */
static double allowed_c(const struct failing_policy *p, const struct view *v, const struct others *others) {
    double allowed = fmax(p->least_c, p->factor * v->guess.rise_c);
    if (!is_known(&v->guess) || v->is_rough) allowed *= 2;
    if (v->guess.total < SURE_MINUTES) allowed *= 1.5;
    if (others->count == 0 || v->is_rough) allowed += BLIND_C * others->blind;
    return allowed + others->spread_c / 2;
}

static double risen_c(double *low_c, double warm_c, bool is_early) {
    *low_c = is_early ? warm_c : fmin(*low_c + RUN_LEAK_C, warm_c);
    return warm_c - *low_c;
}

/* Within one load, how much warmer a card is than it was, without the neighbours being so: tells a fan that stops before
 * there is any history. */
static double run_take(struct failing_run *r, const struct view *v, double shared_c) {
    double band = STEADY * v->load.power + STEADY_FULL;
    bool is_same = r->minutes > 0 && v->minutes == 1 && fabs(v->load.power - r->load.power) <= band &&
                   fabs(v->load.memory - r->load.memory) <= RUN_MEMORY;
    if (!is_same) *r = (struct failing_run){.load = v->load};
    bool is_early = ++r->minutes <= RUN_MINUTES; /* it is still warming */
    double in_all = risen_c(&r->low_c, v->warm_c, is_early),
           of_its_own = risen_c(&r->low_own_c, v->warm_c - shared_c, is_early);
    return fmin(in_all, of_its_own);
}

static void cooling_check(struct failing *f, const struct failing_policy *p, size_t n, size_t i, const struct view *v) {
    struct failing_card *c = &f->card[i];
    if (!v->is_any) return;
    struct others others = others_of(f, n, i);
    double excess = v->warm_c - v->guess.warm_c - others.off_c, allowed = allowed_c(p, v, &others);
    double risen = run_take(&c->run, v, others.count >= 2 ? others.off_c : 0);
    double much = fmax(excess / allowed, risen / RUN_C);

    bool has_past = v->guess.total >= LEARNT_MINUTES, has_risen = risen > RUN_C;
    enum finding what = CANNOT_TELL;
    if (v->is_warm && ((has_past && excess > allowed) || has_risen)) what = BAD;
    if (has_past && !has_risen && excess < allowed * 0.6 && v->guess.rise_c >= TELLING * p->least_c) what = GOOD;
    double seconds = v->minutes * 60 * (what == BAD ? fmin(much * much, WEIGHT_MOST) : 1);
    if (what == BAD) seconds = fmin(seconds, failing_rows[FAILING_COOLING].raise_s / 2); /* never one look alone */
    mark_take(&c->mark[FAILING_COOLING], FAILING_COOLING, what, seconds);
    if (has_past) {
        c->excess_c = excess;
        c->expected_c = v->guess.rise_c;
    }
    bool is_suspect = has_risen || (has_past && (excess > allowed * 0.6 || c->mark[FAILING_COOLING].is_up));
    if (!is_suspect && !v->is_rough) warmth_learn(&c->past.warmth, v->load, v->warm_c - others.mean_c, v->minutes);
}

/* A card that was bad from its first day has a history that says so: only others of its kind tell. */
static void unlike_check(struct failing *f, const struct failing_input *in, size_t n, size_t i, const struct view *v) {
    double sorted[GPU_MAX];
    size_t count = 0;
    if (!v->is_any || v->guess.total < UNLIKE_MINUTES || v->guess.spread < UNLIKE_SPREAD) return;
    for (size_t j = 0; j < n; j++) {
        if (j == i || in[j].model != in[i].model || f->card[j].mark[FAILING_COOLING].is_up) continue;
        struct warmth_guess g = warmth_guess(&f->card[j].past.warmth, v->load);
        if (g.total >= UNLIKE_MINUTES && g.spread >= UNLIKE_SPREAD) insert(sorted, &count, g.slope_c);
    }
    if (count < UNLIKE_PEERS) return;
    double ratio = v->guess.slope_c / fmax(sorted[count / 2], 1);
    enum finding what = ratio > UNLIKE ? BAD : ratio < (1 + UNLIKE) / 2 ? GOOD : CANNOT_TELL;
    mark_take(&f->card[i].mark[FAILING_UNLIKE], FAILING_UNLIKE, what, v->minutes * 60);
}

/* What all share is normal where it goes with the power of the machine: cards warm each other's air. */
static void room_check(struct failing *f, const struct failing_policy *p, const struct view *views, size_t n) {
    double power = 0, cards = 0;
    for (size_t i = 0; i < n; i++) {
        if (!views[i].is_any) continue;
        power += views[i].load.power;
        cards++;
    }
    struct others all = others_of(f, n, n);
    f->room_off_c = all.off_c;
    if (all.count < 2 || cards < 2) return;
    int k = (int)fmin(power / cards * WARMTH_POWERS, WARMTH_POWERS - 1);
    struct failing_room *r = &f->room;
    double total = 0, drift = all.off_c - (double)r->off_c[k];
    for (int b = 0; b < WARMTH_POWERS; b++) total += (double)r->minutes[b];
    bool has_past = total >= LEARNT_MINUTES && r->minutes[k] >= WARMTH_NEAR;
    enum finding what = !has_past                              ? CANNOT_TELL
                        : drift > p->room_c + all.spread_c / 2 ? BAD
                        : drift < p->room_c * 0.6              ? GOOD
                                                               : CANNOT_TELL;
    mark_take(&f->room_mark, FAILING_ROOM, what, 60);
    if (f->room_mark.is_up) return;
    if (has_past) drift = fmin(fmax(drift, -ROOM_STEP_C), ROOM_STEP_C);
    r->minutes[k] = (float)fmin((double)r->minutes[k] + 1, ROOM_MEMORY_MINUTES);
    r->off_c[k] += (float)(drift / (double)r->minutes[k]);
}

static void minute_end(struct failing *f, const struct failing_policy *p, const struct failing_input *in, size_t n) {
    struct view views[GPU_MAX];
    for (size_t i = 0; i < n; i++) {
        struct failing_card *c = &f->card[i];
        reasons_check(c, p);
        overuse_check(c, p);
        views[i] = minute_close(c);
        off_take(c, &views[i]);
    }
    for (size_t i = 0; i < n; i++) {
        cooling_check(f, p, n, i, &views[i]);
        unlike_check(f, in, n, i, &views[i]);
    }
    room_check(f, p, views, n);
}

static uint32_t bits_up(const struct failing_card *c) {
    uint32_t up = 0;
    for (int k = 0; k < FAILING_KINDS; k++)
        if (c->mark[k].is_up) up |= (uint32_t)BIT(k);
    return up;
}

void failing_step(struct failing *f, const struct failing_policy *p, const struct failing_input *in, size_t n,
                  int64_t now_ns) {
    if (n > GPU_MAX) n = GPU_MAX;
    double dt = (double)(now_ns - f->last_ns) * 1e-9;
    bool is_gap = !f->last_ns || dt > GAP_S;
    f->last_ns = now_ns;
    if (dt <= 0) return;
    if (is_gap) {
        f->minute_s = 0;
        for (size_t i = 0; i < n; i++) {
            f->card[i].now = (struct failing_minute){0};
            f->card[i].off_age_s = f->card[i].idle_age_s = INFINITY;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) second_take(&f->card[i], p, &in[i], dt);
    f->minute_s += dt;
    if (f->minute_s >= 60) {
        f->minute_s = 0;
        minute_end(f, p, in, n);
    }
    for (size_t i = 0; i < n; i++) f->card[i].up = bits_up(&f->card[i]);
    f->room_up = f->room_mark.is_up ? (uint32_t)BIT(FAILING_ROOM) : 0;
}
