/* How well failing parts are found: simulated months of healthy machines and of machines in which one thing breaks, and
 * what was missed, how long it took, and what was said of healthy parts. Prints a table by machine, one by kind of part,
 * and one line of JSON; exits 1 when a limit is exceeded anywhere. For script/bench failing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "bench/failing_life.h"

#define DAY_S 86400.0
#define OVER_S (0.1 * 7 * DAY_S)
#define FALSE_MOST 0.1 /* false alarms a card-month, of each machine and of each kind of part */

struct row {
    const char *name;
    struct life_plan life;
    int seeds;
    double within_s; /* after it has shown for so long: work, with a card that is warm where cooling is what broke */
};

/* clang-format off */
static const struct row rows[] = {
    {"healthy, 8 x h200",             {{"h200",    8, 0.6, 3, 0.002, MONTH_HEALTHY,  0}, 30, true,  84, FAILING_KINDS},    2, 0},
    {"healthy, 8 x a100, hot days",   {{"a100",    8, 0.8, 4, 0.003, MONTH_HEALTHY,  0}, 30, true,  84, FAILING_KINDS},    1, 0},
    {"healthy, 4 x rtx4090",          {{"rtx4090", 4, 0.4, 3, 0.004, MONTH_HEALTHY,  0}, 30, true,  84, FAILING_KINDS},    1, 0},
    {"healthy, 2 x rtx4090",          {{"rtx4090", 2, 0.4, 3, 0.004, MONTH_HEALTHY,  0}, 30, true,  84, FAILING_KINDS},    2, 0},
    {"healthy, 1 x rtx4090",          {{"rtx4090", 1, 0.3, 3, 0,     MONTH_HEALTHY,  0}, 30, true,  84, FAILING_KINDS},   12, 0},
    {"clogged, 8 x h200",             {{"h200",    8, 0.6, 3, 0.002, MONTH_CLOG,     8}, 15, true,  84, FAILING_COOLING},  1, DAY_S},
    {"clogged, 4 x a100, hot days",   {{"a100",    4, 0.8, 4, 0.003, MONTH_CLOG,     8}, 15, true,  84, FAILING_COOLING},  2, DAY_S},
    {"clogged, 4 x rtx4090",          {{"rtx4090", 4, 0.4, 3, 0.004, MONTH_CLOG,     8}, 16, true,  84, FAILING_COOLING},  2, DAY_S},
    {"clogged, 2 x rtx4090",          {{"rtx4090", 2, 0.4, 3, 0.004, MONTH_CLOG,     8}, 16, true,  84, FAILING_COOLING},  2, DAY_S},
    {"clogged, 1 x rtx4090",          {{"rtx4090", 1, 0.4, 3, 0,     MONTH_CLOG,     8}, 18, true,  84, FAILING_COOLING},  8, DAY_S},
    {"badly mounted, 4 x h200",       {{"h200",    4, 0.6, 3, 0.002, MONTH_MOUNTED,  0}, 12, true,  84, FAILING_UNLIKE},   2, 7 * DAY_S},
    {"badly mounted, 8 x a100",       {{"a100",    8, 0.7, 4, 0.003, MONTH_MOUNTED,  0}, 12, true,  84, FAILING_UNLIKE},   1, 7 * DAY_S},
    {"fan stops, 4 x rtx4090",        {{"rtx4090", 4, 0.9, 3, 0.004, MONTH_FAN_STOP, 3},  4, true,  84, FAILING_FAN},      2, 3600},
    {"fan stops, no rpm, 4 x rtx4090",{{"rtx4090", 4, 0.9, 3, 0.004, MONTH_FAN_STOP, 7},  8, false, 84, FAILING_COOLING},  2, 3600},
    {"fan stops, no rpm, 1 x rtx4090",{{"rtx4090", 1, 0.9, 3, 0,     MONTH_FAN_STOP, 7},  9, false, 84, FAILING_COOLING},  8, 3600},
    {"hardware slowdown, 2 x h200",   {{"h200",    2, 0.9, 3, 0.002, MONTH_SLOWED,   2},  3, true,  84, FAILING_SLOWDOWN}, 4, 3600},
    {"power brake, 2 x h200",         {{"h200",    2, 0.9, 3, 0.002, MONTH_BRAKE,    2},  3, true,  84, FAILING_BRAKE},    4, 3600},
    {"limit does not take, 2 x h200", {{"h200",    2, 0.6, 3, 0.002, MONTH_DEAF,     2},  4, true,  84, FAILING_LIMIT},    4, 60},
    {"draws too much, 2 x h200",      {{"h200",    2, 0.9, 3, 0.002, MONTH_GREEDY,   2},  4, true,  84, FAILING_DRAW},     4, 1800},
    {"above target, 2 x h200",        {{"h200",    2, 0.6, 3, 0.002, MONTH_HEALTHY,  0},  9, true,  50, FAILING_OVERUSE},  2, OVER_S + 120},
    {"warm room, 8 x h200",           {{"h200",    8, 0.6, 3, 0.002, MONTH_ROOM,     7},  9, true,  84, FAILING_ROOM},     1, DAY_S},
};
/* clang-format on */

struct tally {
    double card_months, worst_s;
    int broken, missed, late, wrong;
};

static double a_month(const struct tally *t) { return t->card_months > 0 ? t->wrong / t->card_months : 0; }

static bool is_met(const struct tally *t) { return t->missed == 0 && t->late == 0 && a_month(t) <= FALSE_MOST; }

static void tally_add(struct tally *to, const struct tally *t) {
    to->broken += t->broken;
    to->missed += t->missed;
    to->late += t->late;
    to->wrong += t->wrong;
    to->worst_s = fmax(to->worst_s, t->worst_s);
}

/* One machine's time: what was found of the part that broke, and for each kind what was said wrongly. */
static void judge(const struct row *row, const struct life *l, struct tally *machine,
                  struct tally parts[FAILING_KINDS]) {
    struct tally t = {0};
    if (!life_is_healthy(&row->life)) {
        double found_s = l->found_s[row->life.expect];
        t.broken = 1;
        t.missed = isnan(found_s);
        t.late = found_s > row->within_s;
        t.worst_s = t.missed ? 0 : found_s;
        tally_add(&parts[row->life.expect], &t);
    }
    for (int k = 0; k < FAILING_KINDS; k++) {
        t.wrong += l->wrong[k];
        parts[k].wrong += l->wrong[k];
    }
    tally_add(machine, &t);
}

static void note(const struct row *row, uint64_t seed, const struct life *l) {
    for (int k = 0; k < FAILING_KINDS; k++)
        if (l->wrong[k])
            fprintf(stderr, "%s: seed %d: %s without cause, first on day %.2f\n", row->name, (int)seed,
                    failing_rows[k].name, l->wrong_day);
    if (life_is_healthy(&row->life) || l->found_s[row->life.expect] <= row->within_s) return;
    fprintf(stderr, "%s: seed %d: found after %.0f minutes\n", row->name, (int)seed, l->found_s[row->life.expect] / 60);
}

static void head(const char *what) {
    printf("%-32s %11s %7s %7s %6s %12s %12s %13s\n", what, "card-months", "broken", "missed", "late", "slowest, min",
           "false alarms", "a card-month");
}

static void print(const char *name, const struct tally *t) {
    printf("%-32s %11.1f %7d %7d %6d %12.0f %12d %13.3f%s\n", name, t->card_months, t->broken, t->missed, t->late,
           t->worst_s / 60, t->wrong, a_month(t), is_met(t) ? "" : "   MISSED ITS LIMITS");
    fflush(stdout);
}

static void months(const struct row *row, int times, struct tally *machine, struct tally parts[FAILING_KINDS]) {
    for (int s = 1; s <= row->seeds * times; s++) {
        struct life_plan plan = row->life;
        struct life l;
        plan.month.seed = (uint64_t)s;
        life_live(&plan, &l);
        note(row, plan.month.seed, &l);
        judge(row, &l, machine, parts);
        machine->card_months += (double)plan.month.cards * plan.days / 30;
    }
}

int main(int argc, char **argv) {
    struct tally all = {0}, parts[FAILING_KINDS] = {0};
    int times = argc > 1 ? atoi(argv[1]) : 1, failed = 0;
    const char *only = argc > 2 ? argv[2] : "";
    if (times < 1) {
        fprintf(stderr, "usage: failing_bench [TIMES [PART OF A NAME]]\n");
        return 2;
    }
    head("by machine");
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct tally t = {0};
        if (!strstr(rows[k].name, only)) continue;
        months(&rows[k], times, &t, parts);
        print(rows[k].name, &t);
        failed += !is_met(&t);
        all.card_months += t.card_months;
        tally_add(&all, &t);
    }
    printf("\n");
    head("by kind of part");
    for (int k = 0; k < FAILING_KINDS; k++) {
        parts[k].card_months = all.card_months; /* every kind was looked for all the time */
        print(failing_rows[k].name, &parts[k]);
        failed += !is_met(&parts[k]) || (!*only && !parts[k].broken);
    }
    print("all", &all);
    printf("limits: none missed, none late, at most %.1f false alarms a card-month, on every line\n", FALSE_MOST);
    printf("{\"bench\":\"failing\",\"card_months\":%.2f,\"broken\":%d,\"missed\":%d,\"late\":%d,\"false_alarms\":%d,"
           "\"false_alarms_per_card_month\":%.4f,\"met\":%s}\n",
           all.card_months, all.broken, all.missed, all.late, all.wrong, a_month(&all), failed ? "false" : "true");
    return failed ? 1 : 0;
}
