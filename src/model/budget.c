#include "model/budget.h"

#include <errno.h>
#include <math.h>

#define S 1000000000ll
#define TOLERANCE_W 2.0 /* drivers round; more than this is not what was asked */
#define RETRY_NS S      /* a lower that has not come is asked for again */
#define STUCK_NS (3 * S)
#define STUCK_RETRY_NS (10 * S)
#define CEILING_NS (60 * S) /* for how long a raise that did not take is not tried again */
#define WANT_NS S           /* wishes shorter than this are none */
#define GIVE_NS (2 * S)     /* watts that nobody has are handed out at most this often */
#define EPSILON_W 0.01

int budget_check(const struct budget_card *cards, size_t n, double total_w, struct error *e) {
    if (!(total_w > 0)) return fail(e, -EINVAL, "a power budget of %g W is not a number above 0", total_w);
    double least = 0, fixed = 0;
    for (size_t i = 0; i < n; i++) {
        const struct budget_card *c = &cards[i];
        if (c->can_set && c->is_there)
            least += c->min_w;
        else
            fixed += isnan(c->enforced_w) ? c->baseline_w : c->enforced_w;
    }
    if (least + fixed <= total_w) return 0;
    if (fixed > 0)
        return fail(e, -ERANGE,
                    "a power budget of %g W is below the %g W that the lowest limits add up to, with %g W of GPUs "
                    "that cannot be set",
                    total_w, least + fixed, fixed);
    return fail(e, -ERANGE, "a power budget of %g W is below the %g W that the lowest limits of %zu GPUs add up to",
                total_w, least, n);
}

static double band_w(const struct budget_card *c) { return fmax(BUDGET_BAND * c->baseline_w, BUDGET_BAND_LEAST_W); }

static double enforced_w(const struct budget_card *c) { return isnan(c->enforced_w) ? c->baseline_w : c->enforced_w; }

/* What may be in force: a lower counts when it was read back, a raise from when it was asked for. */
static double exposed_w(const struct budget_line *l, const struct budget_card *c) {
    return fmax(enforced_w(c), l->asked_w);
}

static double highest_w(const struct budget_line *l, const struct budget_card *c, int64_t now_ns) {
    double most = now_ns < l->ceiling_ns ? fmin(c->baseline_w, l->ceiling_w) : c->baseline_w;
    return fmax(most, c->min_w);
}

/* The highest draw of the last one to two windows: watts are not taken from a card between two of its bursts. */
static void peak_take(struct budget_line *l, double draw_w, int64_t now_ns) {
    if (now_ns - l->window_ns >= BUDGET_IDLE_NS) {
        l->peak_w[1] = l->peak_w[0];
        l->peak_w[0] = 0;
        l->window_ns = now_ns;
    }
    if (draw_w > l->peak_w[0]) l->peak_w[0] = draw_w;
}

/* Sees whether what was asked is in force. */
static void read_back(struct budget_line *l, const struct budget_card *c, int64_t now_ns) {
    double off = c->enforced_w - l->asked_w;
    if (fabs(off) <= TOLERANCE_W) {
        l->off_ns = 0;
        l->is_stuck = false;
        return;
    }
    if (!l->off_ns) l->off_ns = now_ns;
    l->is_stuck = off > 0 && (l->is_stuck || now_ns - l->off_ns > STUCK_NS);
    if (off > 0 || now_ns - l->off_ns <= STUCK_NS) return;
    l->asked_w = l->target_w = l->ceiling_w = fmax(c->enforced_w, c->min_w); /* someone else holds it lower */
    l->ceiling_ns = now_ns + CEILING_NS;
    l->off_ns = 0;
}

static void line_take(struct budget_line *l, const struct budget_card *c, int64_t now_ns) {
    double in_force = enforced_w(c);
    bool can_set = c->can_set && c->is_there && !isnan(c->enforced_w);
    bool is_back = can_set && !l->is_ours && now_ns - l->seen_ns > STUCK_NS;
    if (!l->is_begun || is_back)
        *l = (struct budget_line){
            .asked_w = in_force, .target_w = in_force, .is_begun = true, .window_ns = now_ns, .peak_w = {0}};
    l->is_ours = can_set;
    if (!can_set && c->is_there) l->asked_w = l->target_w = in_force; /* nothing of ours is under way there */
    if (!can_set) return;
    l->seen_ns = now_ns;
    peak_take(l, isnan(c->draw_w) ? c->baseline_w : c->draw_w, now_ns);
    read_back(l, c, now_ns);
}

static bool is_shared(const struct budget_line *l) { return l->is_ours && !l->is_stuck; }

/* By how much a driver has rounded up what it was asked: that much less to share. */
static double rounded_w(const struct budget_line *l, const struct budget_card *c) {
    double over = c->enforced_w - l->asked_w;
    return is_shared(l) && over > EPSILON_W && over <= TOLERANCE_W ? over : 0;
}

/* What a card has use for now, above which others come first. */
static double demand_w(const struct budget_line *l, const struct budget_card *c, int64_t now_ns) {
    double most = highest_w(l, c, now_ns);
    if (c->wants_more) return most;
    double draw = fmax(l->peak_w[0], l->peak_w[1]);
    return fmin(fmax(draw * (1 + BUDGET_SPARE) + BUDGET_SPARE_W, c->min_w), most);
}

struct share { /* one sharing under way */
    const struct budget_card *cards;
    size_t n;
    double got_w[GPU_MAX], most_w[GPU_MAX];
    double left_w;
};

static double level_cost(const struct share *s, const bool *in, double level) {
    double cost = 0;
    for (size_t i = 0; i < s->n; i++)
        if (in[i]) cost += fmax(fmin(level, s->most_w[i]) - s->got_w[i], 0);
    return cost;
}

/* Raises those that are in to one level, as high as what is left reaches, each up to its most. */
static void level_up(struct share *s, const bool *in) {
    double low = 0, high = 0;
    for (size_t i = 0; i < s->n; i++)
        if (in[i]) high = fmax(high, s->most_w[i]);
    if (level_cost(s, in, high) > s->left_w)
        for (int k = 0; k < 60; k++) {
            double middle = (low + high) / 2;
            *(level_cost(s, in, middle) > s->left_w ? &high : &low) = middle;
        }
    else
        low = high;
    s->left_w -= level_cost(s, in, low);
    for (size_t i = 0; i < s->n; i++)
        if (in[i]) s->got_w[i] = fmax(s->got_w[i], fmin(low, s->most_w[i]));
}

/* The highest priority below `below` among the shared cards; false when there is none. */
static bool next_priority(const struct budget_state *b, const struct share *s, int64_t below, int *ret) {
    bool is_any = false;
    for (size_t i = 0; i < s->n; i++) {
        int p = s->cards[i].priority;
        if (!is_shared(&b->line[i]) || p >= below || (is_any && p <= *ret)) continue;
        *ret = p;
        is_any = true;
    }
    return is_any;
}

/* Fills fair[] with the limit each shared card should have. Whole watts, so that a driver's rounding adds nothing. */
static bool share_out(const struct budget_state *b, const struct budget_card *cards, size_t n, double total_w,
                      int64_t now_ns, double *fair) {
    struct share s = {.cards = cards, .n = n, .left_w = total_w};
    bool in[GPU_MAX] = {false};
    for (size_t i = 0; i < n; i++) {
        const struct budget_line *l = &b->line[i];
        s.got_w[i] = is_shared(l) ? cards[i].min_w : exposed_w(l, &cards[i]);
        s.left_w -= s.got_w[i];
        s.left_w -= rounded_w(l, &cards[i]);
    }
    bool is_short = s.left_w < 0;
    if (is_short) s.left_w = 0;
    int priority = 0;
    for (int64_t below = INT64_MAX; next_priority(b, &s, below, &priority); below = priority) {
        for (size_t i = 0; i < n; i++) {
            in[i] = is_shared(&b->line[i]) && cards[i].priority == priority;
            s.most_w[i] = demand_w(&b->line[i], &cards[i], now_ns);
        }
        level_up(&s, in);
    }
    for (size_t i = 0; i < n; i++) {
        in[i] = is_shared(&b->line[i]);
        s.most_w[i] = highest_w(&b->line[i], &cards[i], now_ns);
    }
    level_up(&s, in);
    for (size_t i = 0; i < n; i++) {
        bool is_full = s.got_w[i] >= cards[i].baseline_w - EPSILON_W;
        fair[i] = is_full ? cards[i].baseline_w : fmax(floor(s.got_w[i] + EPSILON_W), cards[i].min_w);
    }
    return is_short;
}

/* The total less what the plan has given away and what cannot be changed. */
static double unplanned_w(const struct budget_state *b, const struct budget_card *cards, size_t n, double total_w) {
    for (size_t i = 0; i < n; i++) {
        const struct budget_line *l = &b->line[i];
        total_w -= (is_shared(l) ? l->target_w : exposed_w(l, &cards[i])) + rounded_w(l, &cards[i]);
    }
    return total_w;
}

/* Whether someone has wanted for a while what a sharing would bring. */
static bool is_wanted(struct budget_state *b, const struct budget_card *cards, size_t n, const double *fair,
                      int64_t now_ns) {
    bool is_any = false;
    for (size_t i = 0; i < n; i++) {
        struct budget_line *l = &b->line[i];
        if (!is_shared(l) || !cards[i].wants_more || fair[i] <= l->target_w + band_w(&cards[i])) {
            l->want_ns = 0;
            continue;
        }
        if (!l->want_ns) l->want_ns = now_ns;
        is_any |= now_ns - l->want_ns >= WANT_NS;
    }
    return is_any;
}

static void adopt(struct budget_state *b, size_t n, const double *fair, int64_t now_ns) {
    for (size_t i = 0; i < n; i++)
        if (is_shared(&b->line[i])) b->line[i].target_w = fair[i];
    b->share_ns = now_ns;
}

/* Hands out watts that nobody has; takes from nobody. */
static void give(struct budget_state *b, const struct budget_card *cards, size_t n, double left_w, const double *fair,
                 int64_t now_ns) {
    const double all_w = left_w; /* small gifts to many are worth it, too */
    for (int wants = 1; wants >= 0; wants--)
        for (size_t i = 0; i < n; i++) {
            struct budget_line *l = &b->line[i];
            double gap = fair[i] - l->target_w, more = floor(fmin(gap, left_w) + EPSILON_W);
            bool ends_full = fair[i] == cards[i].baseline_w && gap <= left_w && gap > EPSILON_W;
            if (ends_full) more = gap;
            bool is_worth = ends_full || (more >= 1 && (wants ? all_w : more) >= band_w(&cards[i]));
            if (!is_shared(l) || cards[i].wants_more != wants || !is_worth) continue;
            l->target_w += more;
            left_w -= more;
            b->share_ns = now_ns;
        }
}

static void plan_update(struct budget_state *b, const struct budget_card *cards, size_t n, double total_w,
                        const double *fair, int64_t now_ns) {
    for (size_t i = 0; i < n; i++) {
        struct budget_line *l = &b->line[i];
        l->target_w = fmax(fmin(l->target_w, cards[i].baseline_w), cards[i].min_w);
    }
    double left = unplanned_w(b, cards, n, total_w);
    bool is_wish = is_wanted(b, cards, n, fair, now_ns);
    int64_t since_ns = now_ns - b->share_ns;
    if (!b->is_begun || left < -EPSILON_W || (is_wish && since_ns >= BUDGET_SHARE_NS))
        adopt(b, n, fair, now_ns);
    else if (left > EPSILON_W && since_ns >= GIVE_NS)
        give(b, cards, n, left, fair, now_ns);
    b->is_begun = true;
}

/* A limit that is asked for again is as late as it was. */
static void put(struct budget_plan *out, struct budget_line *l, size_t card, enum budget_verb verb, double limit_w,
                int64_t now_ns) {
    out->change[out->changes++] = (struct budget_change){.card = card, .verb = verb, .limit_w = limit_w};
    if (fabs(l->asked_w - limit_w) > EPSILON_W) l->off_ns = 0;
    l->asked_w = limit_w;
    l->asked_ns = now_ns;
}

static void emit_lowers(struct budget_state *b, const struct budget_card *cards, size_t n, bool is_over, int64_t now_ns,
                        struct budget_plan *out) {
    for (size_t i = 0; i < n; i++) {
        struct budget_line *l = &b->line[i];
        double in_force = enforced_w(&cards[i]);
        if (!l->is_ours || l->target_w >= exposed_w(l, &cards[i]) - EPSILON_W) continue;
        bool is_asked = fabs(l->asked_w - l->target_w) < EPSILON_W;
        bool is_rounded = is_asked && in_force <= l->asked_w + TOLERANCE_W;
        int64_t wait_ns = l->is_stuck || is_rounded ? STUCK_RETRY_NS : RETRY_NS;
        if ((is_rounded && !is_over) || (is_asked && now_ns - l->asked_ns < wait_ns)) continue;
        put(out, l, i, BUDGET_LOWER, l->target_w, now_ns);
    }
}

/* One raise, the most urgent that has not been looked at. */
static size_t next_raise(const struct budget_state *b, const struct budget_card *cards, size_t n, const bool *seen) {
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        const struct budget_line *l = &b->line[i];
        if (seen[i] || !is_shared(l) || l->target_w <= l->asked_w + EPSILON_W) continue;
        if (best == n || cards[i].priority > cards[best].priority ||
            (cards[i].priority == cards[best].priority && cards[i].wants_more && !cards[best].wants_more))
            best = i;
    }
    return best;
}

static void emit_raises(struct budget_state *b, const struct budget_card *cards, size_t n, double free_w,
                        int64_t now_ns, struct budget_plan *out) {
    bool seen[GPU_MAX] = {false};
    for (size_t i; (i = next_raise(b, cards, n, seen)) < n;) {
        struct budget_line *l = &b->line[i];
        double has = exposed_w(l, &cards[i]), limit = fmin(l->target_w, has + fmax(free_w, 0));
        seen[i] = true;
        if (limit < l->target_w - EPSILON_W) limit = floor(limit);
        bool is_enough = limit >= l->target_w - EPSILON_W || limit - l->asked_w >= band_w(&cards[i]);
        if (!is_enough || limit <= l->asked_w) continue;
        free_w -= fmax(limit - has, 0);
        put(out, l, i, BUDGET_RAISE, limit, now_ns);
    }
}

void budget_step(struct budget_state *b, const struct budget_card *cards, size_t n, double total_w, int64_t now_ns,
                 struct budget_plan *out) {
    double fair[GPU_MAX];
    *out = (struct budget_plan){0};
    if (n > GPU_MAX) n = GPU_MAX;
    for (size_t i = 0; i < n; i++) line_take(&b->line[i], &cards[i], now_ns);
    out->is_short = share_out(b, cards, n, total_w, now_ns, fair);
    plan_update(b, cards, n, total_w, fair, now_ns);

    double before = 0;
    for (size_t i = 0; i < n; i++) before += exposed_w(&b->line[i], &cards[i]);
    emit_lowers(b, cards, n, before > total_w, now_ns, out);
    emit_raises(b, cards, n, total_w - before, now_ns, out);
    for (size_t i = 0; i < n; i++) {
        out->limit_w[i] = b->line[i].is_ours ? b->line[i].target_w : exposed_w(&b->line[i], &cards[i]);
        out->committed_w += exposed_w(&b->line[i], &cards[i]);
    }
}
