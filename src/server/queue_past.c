/* What is remembered of those that ended: how long the like of a job took, and what users had. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/queue_own.h"

#define HOUR_NS (3600 * NS_PER_S)

void queue_past_add(struct queue *q, const char *user, const char *name, int64_t took_ns) {
    likes_add(&q->likes, likes_key(user, name), took_ns);
    likes_add(&q->likes, likes_key(user, NULL), took_ns);
}

int64_t queue_past_ns(const struct queue *q, const char *user, const char *name, int64_t limit_ns) {
    return likes_expect(&q->likes, likes_key(user, name), likes_key(user, NULL), limit_ns, 0);
}

int64_t queue_past_end(const struct queue *q, const char *user, const char *name, int64_t start_ns, int64_t limit_ns,
                       int64_t now_ns) {
    return likes_end(&q->likes, likes_key(user, name), likes_key(user, NULL), start_ns, limit_ns, now_ns);
}

/* ---- users ---- */

uint32_t queue_user_number(struct queue *q, const char *name) {
    for (size_t i = 0; i < q->users; i++)
        if (strcmp(q->user[i].name, name) == 0) return (uint32_t)i;
    q->user = realloc(q->user, (q->users + 1) * sizeof *q->user);
    if (!q->user) abort();
    q->user[q->users] = (struct queue_user){.name = queue_copy(name)};
    return (uint32_t)q->users++;
}

double queue_usage_at(const struct queue *q, const struct queue_user *u, int64_t now_ns) {
    double half_ns = q->settings->jobs_fair_half_life_h * (double)HOUR_NS;
    int64_t past_ns = now_ns > u->usage_ns ? now_ns - u->usage_ns : 0;
    return u->usage_s * exp2(-(double)past_ns / half_ns);
}

static void week_add(struct queue_user *u, int64_t hour, double held_s) {
    struct queue_hour *h = &u->week[hour % QUEUE_WEEK_H];
    if (h->hour > hour) return;
    if (h->hour < hour) *h = (struct queue_hour){hour, 0};
    h->held_s += held_s;
}

/* then_ns: when it was held; now or before. */
void queue_usage_add(struct queue *q, const char *user, double held_s, int64_t then_ns, int64_t now_ns) {
    uint32_t number = queue_user_number(q, user); /* which may move them all */
    struct queue_user *u = &q->user[number];
    struct queue_user one = {.usage_s = held_s, .usage_ns = then_ns};
    u->usage_s = queue_usage_at(q, u, now_ns) + queue_usage_at(q, &one, now_ns);
    u->usage_ns = now_ns;
    week_add(u, then_ns / HOUR_NS, held_s);
}

double queue_week_s(const struct queue_user *u, int64_t hour) {
    double sum = 0;
    for (int i = 0; i < QUEUE_WEEK_H; i++)
        if (hour - u->week[i].hour < QUEUE_WEEK_H) sum += u->week[i].held_s;
    return sum;
}
