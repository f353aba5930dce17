/* Repeating jobs as the API shows them: what everybody may see. */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/job_json.h"
#include "server/repeat_own.h"

enum { NEXT_SHOWN = 5 };

static void put_when(struct buf *b, const struct zone *z, int64_t at_s) {
    char text[ZONE_TEXT];
    zone_text(z, at_s, text);
    json_pair_int(b, "at", at_s);
    json_pair_str(b, "local", text);
}

static void put_next(struct buf *b, const struct recur *r, const struct zone *z, int64_t after_s) {
    json_key(b, "next");
    json_open(b, '[');
    for (int i = 0; i < NEXT_SHOWN && (after_s = recur_next(r, z, after_s)) != RECUR_NEVER; i++) {
        json_open(b, '{');
        put_when(b, z, after_s);
        json_close(b, '}');
    }
    json_close(b, ']');
}

static void put_spec(struct buf *b, const struct repeat_spec *s, const char *zone) {
    json_key(b, "cron");
    if (*s->cron)
        json_str(b, s->cron);
    else
        json_nil(b);
    json_key(b, "interval");
    if (*s->interval)
        json_str(b, s->interval);
    else
        json_nil(b);
    json_pair_str(b, "zone", zone);
    json_pair_int(b, "late_s", s->late_ns / NS_PER_S);
    json_pair_str(b, "overlap", repeat_overlap_name(s->overlap));
}

/* What became of a time: how its job ended or stands, or why there is none. */
static const char *outcome(const struct repeats *all, const struct repeat_slot_row *s) {
    struct queue_child c;
    if (!s->job) return repeat_fate_name(s->fate);
    if (s->state >= 0) return job_state_name((enum job_state)s->state);
    return queue_spawn_look(all->queue, s->job, &c) ? job_state_name(c.state) : "exit unknown";
}

static void put_slots(struct buf *b, const struct repeats *all, const struct repeat *r,
                      const struct repeat_slot_row *slots, size_t count) {
    json_key(b, "slots");
    json_open(b, '[');
    for (size_t i = 0; i < count; i++) {
        const struct repeat_slot_row *s = &slots[i];
        if (s->repeat != r->id) continue;
        json_open(b, '{');
        put_when(b, &r->zone, s->at_s);
        json_pair_str(b, "outcome", outcome(all, s));
        json_pair_bool(b, "by_hand", s->fate == REPEAT_BY_HAND);
        json_pair_int(b, "count", s->count);
        json_key(b, "job");
        if (s->job)
            json_int(b, s->job);
        else
            json_nil(b);
        json_close(b, '}');
    }
    json_close(b, ']');
}

static const char *state_of(const struct repeat *r) {
    if (*r->problem) return "in trouble";
    if (r->next_s == RECUR_NEVER) return "over";
    return r->is_paused ? "paused" : "on";
}

static void put_repeat(struct buf *b, const struct repeats *all, const struct repeat *r,
                       const struct repeat_slot_row *slots, size_t count) {
    int64_t now_s = clock_real_ns() / NS_PER_S;
    json_open(b, '{');
    json_pair_int(b, "id", r->id);
    json_pair_str(b, "state", state_of(r));
    json_key(b, "problem");
    if (*r->problem)
        json_str(b, r->problem);
    else
        json_nil(b);
    json_pair_str(b, "user", r->user);
    json_pair_int(b, "uid", r->uid);
    json_key(b, "account");
    if (*r->account)
        json_str(b, r->account);
    else
        json_nil(b);
    json_pair_str(b, "node", r->node);
    json_pair_int(b, "made", r->made_ns / NS_PER_S);
    put_spec(b, &r->spec, r->zone_name);
    put_next(b, &r->recur, &r->zone, r->mark_s > now_s || !r->is_paused ? r->mark_s : now_s);
    json_key(b, "open_jobs");
    json_open(b, '[');
    for (size_t i = 0; i < r->open_count; i++) json_int(b, r->open[i]);
    json_close(b, ']');
    put_slots(b, all, r, slots, count);
    job_json_members(b, &r->job);
    json_close(b, '}');
}

void repeats_json(const struct repeats *all, struct buf *b, int64_t id, const struct repeat_slot_row *slots,
                  size_t count) {
    for (size_t i = 0; i < all->count; i++)
        if (!id || all->of[i]->id == id) put_repeat(b, all, all->of[i], slots, count);
}

void repeat_times_json(struct buf *b, const struct repeat *r) {
    json_open(b, '{');
    put_spec(b, &r->spec, r->zone_name);
    put_next(b, &r->recur, &r->zone, r->mark_s);
    json_close(b, '}');
}

int repeat_preview(const struct repeat_spec *s, int64_t now_s, struct buf *b, struct error *e) {
    AUTO(zone_done) struct zone zone = {0};
    char name[ZONE_NAME_MAX];
    struct recur recur;
    int r = repeat_spec_check(s, &recur, e);
    if (r >= 0) r = repeat_zone(s->zone, name, &zone, e);
    if (r < 0) return r;
    json_open(b, '{');
    put_spec(b, s, name);
    put_next(b, &recur, &zone, now_s);
    json_close(b, '}');
    return 0;
}
