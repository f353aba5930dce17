#include "model/reserve.h"

#include <errno.h>

#define WINDOWS_MAX 20000 /* that are compared; a year of hours has fewer */

void reserve_done(struct reserve *r) {
    zone_done(&r->zone);
    *r = (struct reserve){0};
}

bool reserve_next(const struct reserve *r, int64_t at_s, struct reserve_window *ret) {
    int64_t from = r->from_s;
    if (r->is_recurring) {
        int64_t after = at_s - r->length_s; /* one that began later still goes on */
        if (after < r->from_s - 1) after = r->from_s - 1;
        from = recur_next(&r->recur, &r->zone, after);
        if (from == RECUR_NEVER) return false;
    }
    if (from + r->length_s <= at_s || (r->until_s && from >= r->until_s)) return false;
    *ret = (struct reserve_window){from, from + r->length_s};
    return true;
}

int reserve_check(const struct reserve *r, const struct reserve *was, int64_t now_s, struct error *e) {
    struct reserve_window w, next;
    if (r->length_s < RESERVE_LENGTH_MIN_S) return fail(e, -EINVAL, "for: a minute is the least");
    if (r->length_s > RESERVE_LENGTH_MAX_S) return fail(e, -EINVAL, "for: 31 days are the most");
    bool stays = was && r->from_s == was->from_s;
    if (!stays && r->from_s < now_s - 60) return fail(e, -EINVAL, "from: lies in the past");
    if (r->from_s > now_s + RESERVE_AHEAD_MAX_S) return fail(e, -EINVAL, "from: is more than a year ahead");
    if (r->until_s && !r->is_recurring) return fail(e, -EINVAL, "until: is for one that comes again (every)");
    if (r->until_s && r->until_s <= r->from_s) return fail(e, -EINVAL, "until: is not after from");
    if (stays && !r->is_recurring && r->from_s + r->length_s <= now_s)
        return fail(e, -EINVAL, "for: it would be over already; take it back instead");
    if (!reserve_next(r, now_s, &w) || w.from_s > now_s + RESERVE_AHEAD_MAX_S)
        return fail(e, -EINVAL, "every: has no time after from%s", r->until_s ? " and before until" : " within a year");
    for (int i = 0; r->is_recurring && i < 64 && reserve_next(r, w.to_s, &next); i++) {
        int64_t again = recur_next(&r->recur, &r->zone, w.from_s);
        if (again < w.to_s) return fail(e, -EINVAL, "for: it comes again before it is over");
        w = next;
    }
    return 0;
}

bool reserve_clash(const struct reserve *a, const struct reserve *b, int64_t now_s, struct reserve_window *ret) {
    struct reserve_window x, y;
    bool has_x = reserve_next(a, now_s, &x), has_y = reserve_next(b, now_s, &y);
    for (int i = 0; has_x && has_y && i < WINDOWS_MAX; i++) {
        if (x.from_s < y.to_s && y.from_s < x.to_s) {
            *ret = y;
            return true;
        }
        int64_t first = x.to_s < y.to_s ? x.to_s : y.to_s;
        if (first > now_s + RESERVE_AHEAD_MAX_S) return false;
        if (x.to_s <= y.to_s)
            has_x = reserve_next(a, x.to_s, &x);
        else
            has_y = reserve_next(b, y.to_s, &y);
    }
    return false;
}

int64_t reserve_seconds(const struct reserve *r, int64_t from_s, int64_t to_s) {
    struct reserve_window w;
    int64_t sum = 0, at = from_s;
    for (int i = 0; i < WINDOWS_MAX && reserve_next(r, at, &w) && w.from_s < to_s; i++) {
        int64_t a = w.from_s > from_s ? w.from_s : from_s, b = w.to_s < to_s ? w.to_s : to_s;
        sum += b - a;
        at = w.to_s;
    }
    return sum;
}

bool reserve_stands(const struct reserve_window *w, int64_t last_use_s, int64_t unused_s, int64_t now_s) {
    int64_t since = last_use_s > w->from_s ? last_use_s : w->from_s;
    return !unused_s || now_s - since < unused_s;
}
