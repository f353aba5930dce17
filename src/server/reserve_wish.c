#include "server/reserve_wish.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/api.h"
#include "server/queue_reserve.h"
#include "server/server.h"

#define WEEK_S (7 * 86400)

static int64_t now_s(void) { return clock_real_ns() / NS_PER_S; }

bool reserve_is_self(const struct caller *who, const char *name) {
    return strcmp(who->name, name) == 0 || (*who->unix_name && strcmp(who->unix_name, name) == 0);
}

double reserve_hours_left(const struct call *c, const char *user, const struct reservation *but) {
    const struct reserves *r = queue_reserves(c->server->queue);
    double left = c->server->settings.reserve_user_gpu_hours;
    int64_t now = now_s();
    for (size_t i = 0; i < r->count; i++) {
        const struct reservation *v = r->of[i];
        int gpus = 1;
        if (v == but || strcmp(v->user, user) != 0) continue;
        for (const char *at = v->gpus; *at; at++) gpus += *at == ',';
        left -= (double)reserve_seconds(&v->when, now, now + WEEK_S) / 3600 * gpus;
    }
    return left;
}

static bool is_in_the_way(const struct reserve_wish *w, const struct reservation *v, const char *uuid,
                          struct reserve_window *ret) {
    return reserves_has_gpu(v, uuid) && reserve_clash(&w->v.when, &v->when, now_s(), ret);
}

/* Whether somebody else has it at some time of the new one; what one is just becoming counts as well. */
static const struct reservation *other_of(struct reserve_wish *w, const char *uuid, struct reserve_window *ret) {
    const struct reserves *r = queue_reserves(w->call->server->queue);
    for (size_t i = 0; i < r->count; i++) {
        const struct reservation *v = r->of[i];
        if (v == w->was) continue;
        if (is_in_the_way(w, v, uuid, ret)) return v;
        if (v->next && is_in_the_way(w, v->next, uuid, ret)) return v->next;
    }
    return NULL;
}

static bool is_named(const char *ids, const char *uuid, int index) {
    char number[16];
    snprintf(number, sizeof number, "%d", index);
    for (const char *at = ids; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t n = strcspn(at, ",");
        if ((strlen(number) == n && strncmp(at, number, n) == 0) || (strlen(uuid) == n && strncmp(at, uuid, n) == 0))
            return true;
    }
    return false;
}

static void pick(void *ctx, const char *uuid, int index) {
    struct reserve_wish *w = ctx;
    struct reserve_window when;
    bool is_own = w->was && strcmp(w->was->node, w->v.node) == 0 && reserves_has_gpu(w->was, uuid);
    w->all += w->pick != RESERVE_PICK_OTHERS;
    if (w->pick != RESERVE_PICK_ALL && is_own != (w->pick == RESERVE_PICK_OWN)) return;
    if (w->ids && !is_named(w->ids, uuid, index)) return;
    if (!w->ids && w->found == w->wanted) return;
    w->ids_found++;
    const struct reservation *other = other_of(w, uuid, &when);
    if (other) {
        if (!w->other) {
            w->other = other;
            w->when = when;
            w->other_gpu = index;
        }
        return;
    }
    buf_printf(&w->gpus, "%s%s", w->found++ ? "," : "", uuid);
}

static int refuse_clash(const struct reserve_wish *w, struct error *e) {
    char who[80], from[40], to[40], few[80] = "";
    reserves_holder(w->other, who, sizeof who);
    reserves_time(w->when.from_s, from, sizeof from);
    reserves_time(w->when.to_s, to, sizeof to);
    if (!w->ids) snprintf(few, sizeof few, "%d of %d GPUs are not reserved then: ", w->found, w->all);
    return fail(e, -EEXIST, "%sGPU %d of %.40s is reserved for %.60s by reservation %lld, from %s to %s", few,
                w->other_gpu, w->v.node, who, (long long)w->other->id, from, to);
}

static int count_of(const char *list) {
    int count = 0;
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') count++;
    return count;
}

/* It has the GPUs that it had, those that are lost at the moment, too. */
static int keep_gpus(struct reserve_wish *w, struct error *e) {
    w->ids = w->v.gpus = w->was->gpus;
    queue_each_gpu(w->call->server->queue, w->v.node, pick, w);
    w->found = count_of(w->ids);
    return w->other ? refuse_clash(w, e) : 0;
}

static int choose_gpus(struct reserve_wish *w, struct error *e) {
    struct queue *q = w->call->server->queue;
    const char *node = call_field(w->call, "node");
    double gpus;
    int r = call_field_number(w->call, "gpus", 1, JOB_GPUS_MAX, w->was ? count_of(w->was->gpus) : 1, &gpus, e);
    if (r < 0) return r;
    if (gpus != floor(gpus)) return fail(e, -EINVAL, "gpus: must be a whole number");
    if (!node) node = w->was ? w->was->node : queue_only_node(q);
    if (!node) return fail(e, -EINVAL, "node: there are several machines, or none with GPUs; say which");
    if (!queue_has_node(q, node)) return fail(e, -EINVAL, "node: there is no machine %.60s with GPUs", node);
    w->v.node = node;
    w->ids = call_field(w->call, "gpu_ids");
    if (w->ids && call_field(w->call, "gpus")) return fail(e, -EINVAL, "gpus: does not go with gpu_ids");
    w->wanted = (int)gpus;
    bool is_moved = w->was && strcmp(node, w->was->node) != 0;
    if (w->was && !is_moved && !w->ids && !call_field(w->call, "gpus")) return keep_gpus(w, e);
    int named = count_of(w->ids);
    if (w->ids && !named) return fail(e, -EINVAL, "gpu_ids: names none");
    w->pick = w->was && !w->ids ? RESERVE_PICK_OWN : RESERVE_PICK_ALL; /* of those that it has first */
    queue_each_gpu(q, node, pick, w);
    if (w->pick == RESERVE_PICK_OWN) {
        w->pick = RESERVE_PICK_OTHERS;
        queue_each_gpu(q, node, pick, w);
    }
    if (w->ids && w->ids_found != (size_t)named)
        return fail(e, -EINVAL, "gpu_ids: %s has no such GPU, or one is named twice (it has %d)", node, w->all);
    if (!w->ids && w->wanted > w->all)
        return fail(e, -EINVAL, "gpus: %d are asked for, and %s has %d", w->wanted, node, w->all);
    if (w->ids ? w->other != NULL : w->found < w->wanted) return refuse_clash(w, e);
    w->v.gpus = w->gpus.s;
    return 0;
}

static int check_name(const char *key, const char *name, struct error *e) {
    if (!*name || strlen(name) >= RESERVES_NAME_MAX)
        return fail(e, -EINVAL, "%s: 1 to %d bytes", key, RESERVES_NAME_MAX - 1);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == ',' || *c == ':' || *c == 0x7f)
            return fail(e, -EINVAL, "%s: \"%.30s\" is no name", key, name);
    return 0;
}

/* For whom. */
static int choose_holder(struct reserve_wish *w, struct error *e) {
    const struct caller *who = &w->call->who;
    const char *user = call_field(w->call, "user"), *group = call_field(w->call, "group");
    if (user && group) return fail(e, -EINVAL, "group: does not go with user");
    if (w->was && !user && !group) {
        w->v.user = w->was->user;
        w->v.group = w->was->group;
        return 0;
    }
    w->v.group = group ? group : "";
    w->v.user = group ? "" : user ? user : *who->unix_name ? who->unix_name : who->name;
    return group ? check_name("group", group, e) : check_name("user", w->v.user, e);
}

/* Whether this caller may. Hours are counted when the GPUs are known. */
static int check_may(const struct reserve_wish *w, struct error *e) {
    const struct caller *who = &w->call->who;
    if (who->role == ROLE_ADMIN) return 0;
    if (w->call->server->settings.reserve_user_gpu_hours <= 0)
        return fail(e, -EACCES, "only administrators reserve here (reserve.user_gpu_hours is 0)");
    if (*w->v.group || !reserve_is_self(who, w->v.user))
        return fail(e, -EACCES, "only an administrator reserves for others");
    return 0;
}

/* Whether it is a part of what it was: whoever may take it back may do that. */
static bool is_less(const struct reserve_wish *w) {
    const struct reservation *a = w->was, *b = &w->v;
    if (!a || strcmp(a->user, b->user) != 0 || strcmp(a->group, b->group) != 0 || strcmp(a->node, b->node) != 0 ||
        strcmp(a->every, b->every) != 0 || strcmp(a->zone, b->zone) != 0 || b->when.from_s < a->when.from_s)
        return false;
    for (const char *at = b->gpus; *at; at += strcspn(at, ","), at += *at == ',') {
        char uuid[100];
        snprintf(uuid, sizeof uuid, "%.*s", (int)strcspn(at, ","), at);
        if (!reserves_has_gpu(a, uuid)) return false;
    }
    bool ends_sooner = !a->when.until_s || (b->when.until_s && b->when.until_s <= a->when.until_s);
    return a->when.is_recurring ? b->when.length_s <= a->when.length_s && ends_sooner
                                : b->when.from_s + b->when.length_s <= a->when.from_s + a->when.length_s;
}

static int check_hours(const struct reserve_wish *w, struct error *e) {
    int64_t now = now_s();
    double hours = (double)reserve_seconds(&w->v.when, now, now + WEEK_S) / 3600 * w->found, left;
    if (w->call->who.role == ROLE_ADMIN) return 0;
    left = reserve_hours_left(w->call, w->v.user, w->was);
    if (hours <= left + 1e-9) return 0;
    return fail(e, -EACCES,
                "it has %.4g GPU hours in the next seven days, and of the %.4g that a user may reserve %.4g are left",
                hours, w->call->server->settings.reserve_user_gpu_hours, fmax(left, 0));
}

static int read_times(struct reserve_wish *w, struct error *e) {
    const char *every = call_field(w->call, "every"), *zone = call_field(w->call, "zone");
    const struct reserve none = {0}, *was = w->was ? &w->was->when : &none;
    bool is_once = every && !*every;
    double from, length, until;
    int r = call_field_number(w->call, "from", 0, 7258118400.0, (double)was->from_s, &from, e);
    if (r >= 0) r = call_field_number(w->call, "for_s", 0, 1e9, (double)was->length_s, &length, e);
    if (r >= 0) r = call_field_number(w->call, "until", 0, 7258118400.0, is_once ? 0 : (double)was->until_s, &until, e);
    if (r < 0) return r;
    w->v.every = every ? every : w->was ? w->was->every : "";
    w->v.zone = zone ? zone : w->was && !is_once ? w->was->zone : "";
    w->v.when.from_s = (int64_t)from;
    w->v.when.length_s = (int64_t)length;
    w->v.when.until_s = (int64_t)until;
    if (strlen(w->v.every) > 120) return fail(e, -EINVAL, "every: longer than 120 bytes");
    r = reserves_parse(w->v.every, w->v.zone, &w->v.when, e);
    return r < 0 ? r : reserve_check(&w->v.when, w->was ? was : NULL, now_s(), e);
}

void reserve_wish_done(struct reserve_wish *w) {
    reserve_done(&w->v.when);
    buf_done(&w->gpus);
}

int reserve_wish_read(struct reserve_wish *w, struct error *e) {
    const char *note = call_field(w->call, "note");
    w->v.note = note ? note : w->was ? w->was->note : "";
    w->v.made_by = w->was ? w->was->made_by : w->call->who.name;
    w->v.made_s = w->was ? w->was->made_s : now_s();
    int r =
        strlen(w->v.note) > RESERVES_NOTE_MAX ? fail(e, -EINVAL, "note: longer than %d bytes", RESERVES_NOTE_MAX) : 0;
    if (r >= 0) r = choose_holder(w, e);
    if (r >= 0 && !w->was) r = check_may(w, e);
    if (r >= 0) r = read_times(w, e);
    if (r >= 0) r = choose_gpus(w, e);
    bool is_part = r >= 0 && is_less(w);
    if (r >= 0 && w->was && !is_part) r = check_may(w, e);
    if (r >= 0 && !is_part) r = check_hours(w, e);
    if (r < 0) reserve_wish_done(w);
    return r;
}
