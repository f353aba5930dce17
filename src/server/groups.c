#include "server/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/state_groups.h"

static char *copy(const char *text) {
    char *s = strdup(text);
    if (!s) abort();
    return s;
}

static void group_done(struct group *g) {
    free(g->name);
    free(g->label);
    free(g->members);
}

void groups_done(struct groups *g) {
    for (size_t i = 0; i < g->count; i++) group_done(&g->of[i]);
    free(g->of);
    *g = (struct groups){0};
}

/* Where a name is, or belongs. */
static size_t place_of(const struct groups *g, const char *name) {
    size_t i = 0;
    while (i < g->count && strcmp(g->of[i].name, name) < 0) i++;
    return i;
}

const struct group *groups_find(const struct groups *g, const char *name) {
    size_t i = place_of(g, name);
    return i < g->count && strcmp(g->of[i].name, name) == 0 ? &g->of[i] : NULL;
}

void groups_put(struct groups *g, const char *name, const char *label, const char *members, int64_t changed) {
    struct group fresh = {copy(name), copy(label), copy(members), changed};
    size_t i = place_of(g, name);
    if (groups_find(g, name)) {
        group_done(&g->of[i]);
    } else {
        struct group *more = realloc(g->of, (g->count + 1) * sizeof *more);
        if (!more) abort();
        g->of = more;
        memmove(&g->of[i + 1], &g->of[i], (g->count++ - i) * sizeof *more);
    }
    g->of[i] = fresh;
}

void groups_drop(struct groups *g, const char *name) {
    if (!groups_find(g, name)) return;
    size_t i = place_of(g, name);
    group_done(&g->of[i]);
    memmove(&g->of[i], &g->of[i + 1], (--g->count - i) * sizeof g->of[0]);
}

/* ---- from the state file ---- */

static void take(void *ctx, const struct state_group *g) { groups_put(ctx, g->name, g->label, g->members, g->changed); }

static int load(struct sql *db, void *ctx, struct error *e) { return state_groups_read(db, take, ctx, e); }

int groups_load(struct groups *g, struct state *s, struct error *e) { return state_run(s, load, g, e); }

/* ---- what may be in one ---- */

int groups_check_name(const char *name, struct error *e) {
    size_t n = strlen(name);
    bool is_good = n > 0 && n <= GROUP_NAME_MAX && !strpbrk(name, ",:\"\\");
    for (const char *s = name; is_good && *s; s++) is_good = (unsigned char)*s > 0x20 || *s == ' ';
    if (is_good) return 0;
    return fail(e, -EINVAL, "a group's name has 1 to %d bytes and no comma, colon, quote or backslash", GROUP_NAME_MAX);
}

int groups_check_members(const char *members, struct error *e) {
    if (strlen(members) > GROUP_MEMBERS_MAX)
        return fail(e, -EFBIG, "a group may have %d bytes of members", GROUP_MEMBERS_MAX);
    while (*members) {
        size_t n = strcspn(members, ",");
        bool is_gpu = strncmp(members, "gpu:", 4) == 0 && n > 4, is_node = strncmp(members, "node:", 5) == 0 && n > 5;
        if ((!is_gpu && !is_node) || n > 200)
            return fail(e, -EINVAL, "%.*s: a member is gpu:UUID or node:NAME", (int)(n < 60 ? n : 60), members);
        members += n + (members[n] == ',');
    }
    return 0;
}

void groups_json(struct buf *b, const struct group *g) {
    json_open(b, '{');
    json_pair_str(b, "name", g->name);
    if (*g->label) json_pair_str(b, "label", g->label);
    json_key(b, "members");
    json_open(b, '[');
    for (const char *m = g->members; *m;) {
        char one[256];
        size_t n = strcspn(m, ","), room = n < sizeof one - 1 ? n : sizeof one - 1;
        memcpy(one, m, room);
        one[room] = 0;
        json_str(b, one);
        m += n + (m[n] == ',');
    }
    json_close(b, ']');
    json_pair_int(b, "changed", g->changed);
    json_close(b, '}');
}
