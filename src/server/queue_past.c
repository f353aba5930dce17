/* What is remembered of those that ended: how long the like of a job took, and what users had. */
#include <stdlib.h>
#include <string.h>

#include "server/queue_own.h"

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

/* then_ns: when it was held; now or before. */
void queue_usage_add(struct queue *q, const char *user, double held_s, int64_t then_ns, int64_t now_ns) {
    uint32_t number = queue_user_number(q, user); /* which may move them all */
    usage_add(&q->user[number].usage, q->settings->jobs_fair_half_life_h, held_s, then_ns, now_ns);
}
