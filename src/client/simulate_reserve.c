/* Reservations that are played: those of this machine's server, window by window as it tells them, and those that somebody asks
 * about. What was taken back is not remembered. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/group.h"
#include "base/nearest.h"
#include "client/amount.h"
#include "client/job_table.h"
#include "client/simulate.h"
#include "model/reserve.h"

#define DAY_S 86400
#define PAGE_S (4 * DAY_S)
#define AFTER_S                                                                                                        \
    (92 * DAY_S) /* so long after the last job came they are looked up: whoever waits for longer has other troubles */
#define WINDOWS_TOLD 5000 /* the server tells no more in one answer */
#define WINDOWS_MOST 100000

void simulate_reserves_done(struct simulate_reserves *r) {
    for (size_t i = 0; i < r->lists; i++) free(r->list[i]);
    free(r->list);
    free(r->window);
    *r = (struct simulate_reserves){0};
}

/* Room for so many numbers, which lives as long as the windows. */
static uint32_t *list_new(struct simulate_reserves *r, size_t room) {
    if (r->lists == r->lists_cap) {
        r->lists_cap = r->lists_cap ? 2 * r->lists_cap : 16;
        r->list = realloc(r->list, r->lists_cap * sizeof(uint32_t *));
        if (!r->list) abort();
    }
    uint32_t *list = calloc(room + 1, sizeof *list);
    if (!list) abort();
    return r->list[r->lists++] = list;
}

static int add_window(struct simulate_reserves *r, const struct simulate_window *w, struct error *e) {
    if (r->windows >= WINDOWS_MOST)
        return fail(e, -E2BIG, "the reservations have more than %d windows in that time", WINDOWS_MOST);
    if (r->windows == r->window_cap) {
        r->window_cap = r->window_cap ? 2 * r->window_cap : 64;
        r->window = realloc(r->window, r->window_cap * sizeof *r->window);
        if (!r->window) abort();
    }
    r->window[r->windows++] = *w;
    return 0;
}

static int64_t last_s(const struct trace *t) {
    return (t->zero_ns + t->job[t->jobs - 1].submit_ns) / 1000000000 + AFTER_S;
}

/* ---- those of the server ---- */

struct one { /* a reservation, as its windows will have it */
    int64_t id;
    struct simulate_window of;
};

static struct one one_of(struct simulate_view *v, const struct json_tree *j) {
    const struct names *users = &v->trace->users;
    const struct json_tree *uuids = json_tree_get(j, "gpu_uuids");
    const char *user = job_text(j, "user"), *group = job_text(j, "group");
    uint32_t *gpu = list_new(&v->reserves, json_tree_count(uuids)), *who = list_new(&v->reserves, users->count);
    struct one one = {
        .id = (int64_t)job_number(j, "id"), .of = {.gpu = gpu, .user = who}
    };
    one.of.made_s = (int64_t)job_number(j, "made");
    for (size_t i = 0; i < json_tree_count(uuids); i++) {
        const char *uuid = json_tree_text(json_tree_at(uuids, i), "");
        uint32_t g = v->setup.gpu ? simulate_machines_find(&v->machines, job_text(j, "node"), uuid) : PLAN_NONE;
        if (g != PLAN_NONE) gpu[one.of.gpus++] = g;
    }
    for (uint32_t u = 0; u < users->count; u++)
        if (*group ? group_has(group, users->of[u]) : strcmp(user, users->of[u]) == 0) who[one.of.users++] = u;
    return one;
}

/* What began before is in the answer to the question before. */
static int add_told(struct simulate_view *v, const struct json_tree *windows, const struct one *one, size_t ones,
                    int64_t from_s, bool is_first, struct error *e) {
    if (json_tree_count(windows) >= WINDOWS_TOLD)
        return fail(e, -E2BIG, "the reservations have more than %d windows in four days", WINDOWS_TOLD);
    for (size_t i = 0; i < json_tree_count(windows); i++) {
        const struct json_tree *w = json_tree_at(windows, i);
        int64_t begins = (int64_t)job_number(w, "from");
        if (begins < from_s && !is_first) continue;
        for (size_t k = 0; k < ones; k++) {
            struct simulate_window mine = one[k].of;
            if (one[k].id != (int64_t)job_number(w, "id") || !mine.gpus) continue;
            mine.from_s = begins;
            mine.to_s = (int64_t)job_number(w, "to");
            int r = add_window(&v->reserves, &mine, e);
            if (r < 0) return r;
        }
    }
    return 0;
}

int simulate_reserved(const char *dir, struct simulate_view *v, struct error *e) {
    int64_t zero_s = v->trace->zero_ns / 1000000000;
    struct one *one = NULL;
    size_t ones = 0;
    int r = 0;
    for (int64_t from_s = zero_s; r >= 0 && from_s < last_s(v->trace); from_s += PAGE_S) {
        struct json_tree *root;
        char path[96];
        snprintf(path, sizeof path, "/api/v1/reservations?from=%lld&to=%lld", (long long)from_s,
                 (long long)from_s + PAGE_S);
        r = simulate_get(dir, path, &root, e);
        if (r < 0) break;
        const struct json_tree *all = json_tree_get(root, "reservations");
        if (!one) {
            one = calloc(json_tree_count(all) + 1, sizeof *one);
            if (!one) abort();
            for (; ones < json_tree_count(all); ones++) {
                one[ones] = one_of(v, json_tree_at(all, ones));
                v->reserves.count += one[ones].of.gpus > 0;
                v->note[SIMULATE_NOTE_RESERVED] += one[ones].of.gpus == 0;
            }
        }
        r = add_told(v, json_tree_get(root, "windows"), one, ones, from_s, from_s == zero_s, e);
        json_tree_free(root);
        if (!ones) break;
    }
    free(one);
    return r;
}

/* ---- those that somebody asks about ---- */

struct wish {
    char user[64], gpus[16], from[32], length[32], every[32];
    uint32_t count;
    int64_t from_s, length_s, every_s; /* every: 0: once */
};

static int read_wish(const char *text, struct wish *ret, struct error *e) {
    char rest[2];
    int64_t from_ms, length_ms, every_ms = 0;
    *ret = (struct wish){0};
    int words =
        sscanf(text, "%63s %15s %31s %31s %31s %1s", ret->user, ret->gpus, ret->from, ret->length, ret->every, rest);
    if (words < 4 || words > 5)
        return fail(e, -EINVAL, "--reserve: \"%.60s\" is not USER GPUS FROM FOR [EVERY], as in \"ada 2 9h 4h 1d\"",
                    text);
    char *end;
    unsigned long gpus = strtoul(ret->gpus, &end, 10);
    if (*end || gpus < 1 || gpus > JOB_GPUS_MAX)
        return fail(e, -EINVAL, "--reserve: \"%s\" is no number of GPUs, 1 to %d", ret->gpus, JOB_GPUS_MAX);
    int r = amount_time("reserve", ret->from, 0, 366LL * DAY_S * 1000, &from_ms, e);
    if (r >= 0)
        r = amount_time("reserve", ret->length, RESERVE_LENGTH_MIN_S * 1000, RESERVE_LENGTH_MAX_S * 1000LL, &length_ms,
                        e);
    if (r >= 0 && words == 5) r = amount_time("reserve", ret->every, 60000, 366LL * DAY_S * 1000, &every_ms, e);
    if (r < 0) return r;
    ret->count = (uint32_t)gpus;
    ret->from_s = from_ms / 1000;
    ret->length_s = length_ms / 1000;
    ret->every_s = every_ms / 1000;
    if (ret->every_s && ret->every_s < ret->length_s)
        return fail(e, -EINVAL, "--reserve: it comes again before it is over");
    return 0;
}

static int user_of(const struct trace *t, const char *name, uint32_t *ret, struct error *e) {
    struct nearest n = {.typed = name};
    for (uint32_t u = 0; u < t->users.count; u++) {
        if (strcmp(t->users.of[u], name) == 0) {
            *ret = u;
            return 0;
        }
        nearest_offer(&n, t->users.of[u]);
    }
    return fail(e, -EINVAL, "--reserve: no job is of a user \"%.40s\"%s%s%s", name, n.best ? "; did you mean \"" : "",
                n.best ? n.best : "", n.best ? "\"?" : "");
}

static bool is_taken(const struct simulate_reserves *r, uint32_t gpu, const struct wish *w, int64_t until_s) {
    for (uint32_t i = 0; i < r->windows; i++) {
        const struct simulate_window *o = &r->window[i];
        for (uint32_t g = 0; g < o->gpus; g++)
            for (int64_t at = w->from_s; o->gpu[g] == gpu && at < until_s; at += w->every_s ? w->every_s : until_s)
                if (at < o->to_s && o->from_s < at + w->length_s) return true;
    }
    return false;
}

/* The first of the first machine that has so many which nobody has then, as the server would choose. */
static uint32_t pick(const struct simulate_view *v, const struct wish *w, int64_t until_s, uint32_t *gpu) {
    const struct simulate_setup *s = &v->setup;
    uint32_t all = s->gpu ? s->gpus : s->nodes * s->gpus_per_node, found = 0, most = 0;
    for (uint32_t g = 0; g < all && found < w->count; g++) {
        bool is_new = s->gpu ? s->gpu[g].node == g : g % s->gpus_per_node == 0;
        if (is_new) found = 0;
        if ((s->gpu && s->gpu[g].is_part) || is_taken(&v->reserves, g, w, until_s)) continue;
        gpu[found++] = g;
        if (found > most) most = found;
    }
    return most;
}

int simulate_reserve(struct simulate_view *v, const char *text, int64_t zero_s, struct error *e) {
    struct wish w;
    int64_t until_s = last_s(v->trace);
    uint32_t *gpu = list_new(&v->reserves, JOB_GPUS_MAX), *user = list_new(&v->reserves, 1);
    int r = read_wish(text, &w, e);
    if (r >= 0) r = user_of(v->trace, w.user, user, e);
    if (r < 0) return r;
    w.from_s += zero_s;
    uint32_t most = pick(v, &w, until_s, gpu);
    if (most < w.count)
        return fail(e, -EINVAL,
                    "--reserve: %u GPUs are asked for, and no machine has more than %u that are not reserved then",
                    w.count, most);
    v->reserves.count++;
    for (int64_t at = w.from_s; r >= 0 && at < until_s; at += w.every_s) {
        struct simulate_window one = {at, at + w.length_s, INT64_MIN, gpu, user, w.count, 1};
        r = add_window(&v->reserves, &one, e);
        if (!w.every_s) break;
    }
    return r;
}

static int by_time(const void *a, const void *b) {
    const struct simulate_window *x = a, *y = b;
    if (x->from_s != y->from_s) return x->from_s < y->from_s ? -1 : 1;
    return x->gpus && y->gpus ? (x->gpu[0] > y->gpu[0]) - (x->gpu[0] < y->gpu[0]) : 0;
}

void simulate_reserves_order(struct simulate_view *v) {
    struct simulate_reserves *r = &v->reserves;
    if (r->windows) qsort(r->window, r->windows, sizeof *r->window, by_time);
    v->setup.window = r->window;
    v->setup.windows = r->windows;
}
