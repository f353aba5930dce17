/* The guard against simulated plants and against cards drawn at random: each under the guard, under the simple rule "above
 * the threshold the lowest limit, below it restore", under nothing but the card's own slowdown, and under the best
 * constant limit. Same seeds, same load. Prints a table, charts and one line of JSON; exits 1 when a target is missed.
 *
 *   guard_bench [--seeds FIRST-LAST]
 *
 * Cards drawn at random are held to the same targets. What cannot be asked of them is to do more work than the rule: it
 * may pass the target by five degrees on a card whose sensor comes late, and work done hotter than allowed is no merit. So
 * there the rule's threshold is lowered, degree by degree, until it is no hotter than the guard was, and what it does then
 * is compared. "Settled" of a load that comes and goes says only that no second was too hot on the mean: its limit may be
 * another while it pauses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "bench/guard_scenarios.h"

#define SETTLE_MOST_S 60.0
#define CHANGES_MOST 6.0
#define WORK_LEAST 0.97
#define COOL_WORK_LEAST 0.999 /* where nobody would be too hot */
#define ROUNDING_C 0.5        /* a sensor of whole degrees shows the target from here below it on */
#define BUDGET_MOST_S 1.0
#define COOL_LEAST 0.9 /* of random cards on which the rule, made as cool as the guard, does no more work */
#define PLANTS_MOST 10000

struct row { /* what one scenario came to */
    const struct rig_scenario *sc;
    struct rig_outcome guard, rule, none, best, cool; /* cool: the rule, no hotter than the guard */
    double settled_s, best_limit;
    unsigned missed; /* bit per target */
};

enum target {
    OVERSHOOT,
    FLOOR,
    SETTLING,
    CHANGES,
    WORK,
    BUDGET,
    RULE_COOLER,
    RULE_FASTER,
    NOBODY_COOLER,
    NOBODY_FASTER,
    TARGETS
};

static const char *const target_words[TARGETS] = {
    [OVERSHOOT] = "overshoot",
    [FLOOR] = "floor when blind",
    [SETTLING] = "settling",
    [CHANGES] = "changes",
    [WORK] = "work",
    [BUDGET] = "budget",
    [RULE_COOLER] = "more overshoot than the rule",
    [RULE_FASTER] = "less work than the rule",
    [NOBODY_COOLER] = "hotter than with nobody",
    [NOBODY_FASTER] = "less work than with nobody",
};

static void miss(struct row *r, bool is_missed, enum target what) {
    if (is_missed) r->missed |= 1u << what;
}

static void missed_print(const struct row *r, const char *before, const char *after) {
    const char *sep = before;
    for (int k = 0; k < TARGETS; k++) {
        if (!(r->missed >> k & 1)) continue;
        printf("%s%s", sep, target_words[k]);
        sep = ", ";
    }
    printf("%s", after);
}

/* The targets. Whether the rule is beaten as it is, too, is asked of the plants that stand for real cards only. */
static void judge(struct row *r) {
    const struct rig_scenario *sc = r->sc;
    const struct rig_outcome *g = &r->guard;
    miss(r, g->over_c > sc->allowed_c, OVERSHOOT);
    if (sc->is_blind) {
        miss(r, !(g->floor_s <= RIG_GRACE_S + RIG_BLIND_S), FLOOR);
        return;
    }
    miss(r, r->settled_s > SETTLE_MOST_S, SETTLING);
    miss(r, g->changes_a_min > CHANGES_MOST, CHANGES);
    miss(r, g->work < WORK_LEAST * r->best.work, WORK);
    miss(r, sc->has_budget && !(g->budget_s <= BUDGET_MOST_S), BUDGET);
    bool rule_acts = r->rule.work < r->none.work;
    miss(r, sc->model && rule_acts && g->over_c > r->rule.over_c, RULE_COOLER);
    miss(r, sc->model && rule_acts && g->work <= r->rule.work, RULE_FASTER);
    if (sc->has_budget) return; /* nobody would not keep it */
    miss(r, r->none.over_c > sc->allowed_c && g->over_c >= r->none.over_c, NOBODY_COOLER);
    miss(r, r->none.over_c <= (sc->model ? 0 : -ROUNDING_C) && g->work < COOL_WORK_LEAST * r->none.work, NOBODY_FASTER);
}

static void row_run(struct row *r, const struct rig_scenario *sc) {
    memset(r, 0, sizeof *r);
    r->sc = sc;
    rig_run(sc, RIG_GUARD, 0, &r->guard);
    rig_run(sc, RIG_RULE, 0, &r->rule);
    rig_run(sc, RIG_NOBODY, 0, &r->none);
    r->best_limit = rig_best_constant(sc, &r->best);
    r->settled_s = rig_settled_s(sc, &r->guard, &r->none);
    judge(r);
}

static void row_print(const struct row *r) {
    const struct rig_outcome *g = &r->guard;
    double best = r->best.work / 100;
    printf("%-33s %+7.2f %6.0f %7.1f %8.1f | %+7.2f %7.1f | %+7.2f %7.1f | %5.0f", r->sc->name, g->over_c, r->settled_s,
           g->changes_a_min, g->work / best, r->rule.over_c, r->rule.work / best, r->none.over_c, r->none.work / best,
           r->best_limit);
    if (r->sc->is_blind) printf("  at the floor after %.1f s", g->floor_s);
    if (r->sc->has_budget) printf("  within its budget after %.1f s", g->budget_s);
    missed_print(r, "  MISSED: ", "\n");
}

/* ---- charts ---- */

#define COLUMNS 100
#define LINES 7

/* The hottest second of each column, the target as a line, and the limit as a digit: 0 floor, 9 baseline. */
static void chart_print(const struct row *r) {
    const struct rig_outcome *g = &r->guard;
    double hot[COLUMNS], low = INFINITY, high = r->sc->target_c + 2;
    for (int c = 0; c < COLUMNS; c++) {
        hot[c] = -INFINITY;
        for (int s = c * RIG_SECONDS / COLUMNS; s < (c + 1) * RIG_SECONDS / COLUMNS; s++)
            hot[c] = fmax(hot[c], g->temp[0][s]);
        low = fmin(low, hot[c]);
        high = fmax(high, hot[c]);
    }
    printf("\n%s: %d s, target %.0f C\n", r->sc->name, RIG_SECONDS, r->sc->target_c);
    double height = (high - low) / LINES;
    for (int line = LINES - 1; line >= 0; line--) {
        double from = low + line * height, to = line == LINES - 1 ? INFINITY : from + height;
        bool is_target = r->sc->target_c >= from && r->sc->target_c < to;
        printf("%5.0f |", from + height / 2);
        for (int c = 0; c < COLUMNS; c++) putchar(hot[c] >= from && hot[c] < to ? '*' : is_target ? '-' : ' ');
        putchar('\n');
    }
    printf("limit |");
    for (int c = 0; c < COLUMNS; c++) {
        double limit = g->limit[0][c * RIG_SECONDS / COLUMNS];
        printf("%.0f", floor(9 * (limit - g->floor) / (g->baseline - g->floor) + 1e-6));
    }
    putchar('\n');
}

/* ---- cards drawn at random ---- */

struct spread {
    const char *name;
    double of[PLANTS_MOST];
};

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void spread_print(struct spread *s, int n) {
    qsort(s->of, (size_t)n, sizeof s->of[0], by_size);
    printf("%-44s %8.2f %8.2f %8.2f %8.2f %8.2f\n", s->name, s->of[0], s->of[n / 20], s->of[n / 2],
           s->of[n - 1 - n / 20], s->of[n - 1]);
}

struct random_sum {
    int plants, missed, missing[TARGETS];
    int rule_hotter, rule_slower; /* than the guard, as it is */
    int cool_slower;              /* where it is made as cool */
    int out_of_reach;             /* where not even the best constant limit keeps the target */
};

static struct spread over = {.name = "overshoot, C (beyond 1; 2 where cooling fails)"},
                     settled = {.name = "settled after, s"}, changes = {.name = "changes a minute"},
                     work = {.name = "work, % of the best constant"},
                     against = {.name = "work, % of the simple rule's"},
                     cool = {.name = "the same, made no hotter than the guard"};

static struct random_sum random_run(uint64_t first, int plants) {
    struct random_sum sum = {.plants = plants};
    static struct row r;
    printf("\nseeds %llu to %llu, cards drawn from: %s\n", (unsigned long long)first,
           (unsigned long long)(first + (uint64_t)plants - 1), toy_ranges);
    for (int k = 0; k < plants; k++) {
        struct rig_scenario sc = guard_random_scenario(first + (uint64_t)k);
        row_run(&r, &sc);
        over.of[k] = r.guard.over_c - sc.allowed_c;
        settled.of[k] = r.settled_s;
        changes.of[k] = r.guard.changes_a_min;
        work.of[k] = 100 * r.guard.work / r.best.work;
        against.of[k] = 100 * r.guard.work / r.rule.work;
        rig_rule_as_cool(&sc, fmax(r.guard.over_c, 0), &r.cool);
        cool.of[k] = 100 * r.guard.work / r.cool.work;
        sum.cool_slower += r.cool.work <= r.guard.work;
        sum.out_of_reach += r.best.over_c > 0;
        sum.rule_hotter += r.rule.over_c > fmax(r.guard.over_c, 0);
        sum.rule_slower += r.rule.work < r.guard.work;
        if (!r.missed) continue;
        sum.missed++;
        for (int n = 0; n < TARGETS; n++) sum.missing[n] += r.missed >> n & 1;
        printf("seed %-6llu %+.2f C of %+.0f, settled %.0f s, %.1f changes/min, work %.1f %%",
               (unsigned long long)sc.seed, r.guard.over_c, sc.allowed_c, r.settled_s, r.guard.changes_a_min,
               work.of[k]);
        missed_print(&r, ": MISSED: ", "\n");
    }
    printf("%-44s %8s %8s %8s %8s %8s\n", "", "least", "5 %", "median", "95 %", "most");
    struct spread *all[] = {&over, &settled, &changes, &work, &against, &cool};
    for (size_t k = 0; k < ARRAY_LEN(all); k++) spread_print(all[k], plants);
    printf(
        "%d of %d missed a target; the simple rule passed the target further on %d and did less work on %d; with its\n"
        "threshold lowered until it was no hotter it did no more work on %d\n",
        sum.missed, plants, sum.rule_hotter, sum.rule_slower, sum.cool_slower);
    printf("not even the best constant limit, found by who knows the card, would keep the target on %d\n",
           sum.out_of_reach);
    for (int n = 0; n < TARGETS; n++)
        if (sum.missing[n]) printf("  missed on %d: %s\n", sum.missing[n], target_words[n]);
    return sum;
}

/* ---- all of it ---- */

static void heading(void) {
    printf("Overshoot is the highest true temperature (core or memory, at 50 Hz, before rounding) less the target.\n"
           "Settled: seconds after a disturbance, or after the card would pass its target with nobody to hold it if "
           "that is\n"
           "later, until the mean of each second stays below target + 0.75 C (a sensor of whole degrees tells no less) "
           "and,\n"
           "under steady load, the limit within 5 %% of the baseline of its final mean.\n"
           "Changes a minute are counted from %.0f s after the last disturbance, of the busiest card.\n"
           "Work is in %% of what the best constant limit does, which keeps the target itself.\n"
           "The guard reads at 10 Hz within 20 C of its target and at 1 Hz further off, the rule always at 10 Hz.\n\n",
           RIG_SETTLE_S);
    printf("%-33s %7s %6s %7s %8s | %7s %7s | %7s %7s | %5s\n", "", "guard C", "settl.", "chg/min", "work %", "rule C",
           "work %", "nobody", "work %", "const");
}

static void json_row(const struct row *r, bool is_first) {
    double best = r->best.work;
    printf("%s{\"name\":\"%s\",\"overshoot_c\":%.3f,\"settled_s\":%.0f,\"changes_a_minute\":%.2f,\"work\":%.4f,"
           "\"rule_overshoot_c\":%.3f,\"rule_work\":%.4f,\"nobody_overshoot_c\":%.3f,\"nobody_work\":%.4f,\"missed\":"
           "\"",
           is_first ? "" : ",", r->sc->name, r->guard.over_c, r->settled_s, r->guard.changes_a_min,
           r->guard.work / best, r->rule.over_c, r->rule.work / best, r->none.over_c, r->none.work / best);
    missed_print(r, "", "\"}");
}

/* "--seeds FIRST-LAST", or nothing: the 200 that every run is held to. */
static bool seeds_read(int argc, char **argv, uint64_t *ret_first, int *ret_plants) {
    unsigned long long first = 1, last = 200;
    char rest;
    if (argc != 1 && argc != 3) return false;
    if (argc == 3 && strcmp(argv[1], "--seeds") != 0) return false;
    if (argc == 3 && sscanf(argv[2], "%llu-%llu%c", &first, &last, &rest) != 2) return false;
    if (last < first || last - first >= PLANTS_MOST) return false;
    *ret_first = first;
    *ret_plants = (int)(last - first) + 1;
    return true;
}

int main(int argc, char **argv) {
    uint64_t first;
    int plants, missed = 0;
    if (!seeds_read(argc, argv, &first, &plants)) {
        fprintf(stderr, "usage: guard_bench [--seeds FIRST-LAST], up to %d of them\n", PLANTS_MOST);
        return 2;
    }
    struct row *rows = calloc(guard_scenario_count, sizeof *rows);
    if (!rows) return 1;
    heading();
    for (size_t k = 0; k < guard_scenario_count; k++) {
        row_run(&rows[k], &guard_scenarios[k]);
        row_print(&rows[k]);
        missed += rows[k].missed != 0;
    }
    for (size_t k = 0; k < guard_scenario_count; k++) chart_print(&rows[k]);
    struct random_sum sum = random_run(first, plants);
    printf("{\"bench\":\"guard\",\"rows\":[");
    for (size_t k = 0; k < guard_scenario_count; k++) json_row(&rows[k], k == 0);
    printf("],\"random\":{\"first_seed\":%llu,\"plants\":%d,\"missed\":%d,\"rule_hotter\":%d,\"rule_slower\":%d},"
           "\"missed\":%d}\n",
           (unsigned long long)first, sum.plants, sum.missed, sum.rule_hotter, sum.rule_slower, missed + sum.missed);
    free(rows);
    if (sum.cool_slower < COOL_LEAST * plants) fprintf(stderr, "the rule, made as cool, does more work too often\n");
    return missed + sum.missed > 0 || sum.cool_slower < COOL_LEAST * plants;
}
