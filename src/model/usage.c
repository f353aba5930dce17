#include "model/usage.h"

#include <math.h>

#define HOUR_NS 3600000000000LL

double usage_at(const struct usage *u, double half_life_h, int64_t now_ns) {
    int64_t past_ns = now_ns > u->usage_ns ? now_ns - u->usage_ns : 0;
    return u->usage_s * exp2(-(double)past_ns / (half_life_h * (double)HOUR_NS));
}

static void week_add(struct usage *u, int64_t hour, double held_s) {
    struct usage_hour *h = &u->week[hour % USAGE_WEEK_H];
    if (h->hour > hour) return;
    if (h->hour < hour) *h = (struct usage_hour){hour, 0};
    h->held_s += held_s;
}

void usage_add(struct usage *u, double half_life_h, double held_s, int64_t then_ns, int64_t now_ns) {
    struct usage one = {.usage_s = held_s, .usage_ns = then_ns};
    u->usage_s = usage_at(u, half_life_h, now_ns) + usage_at(&one, half_life_h, now_ns);
    u->usage_ns = now_ns;
    week_add(u, then_ns / HOUR_NS, held_s);
}

double usage_week_s(const struct usage *u, int64_t hour) {
    double sum = 0;
    for (int i = 0; i < USAGE_WEEK_H; i++)
        if (hour - u->week[i].hour < USAGE_WEEK_H) sum += u->week[i].held_s;
    return sum;
}
