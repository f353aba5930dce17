#include "server/roster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "server/state_nodes.h"

#define SEEN_NS (300 * NS_PER_S) /* how old the time may be at which a killed server's nodes were last seen */

/* A node as it is in the file, or on its way there. */
struct entry {
    char name[64];
    char *gpus;
    bool is_gone, is_dirty; /* is_dirty: what was written did not arrive */
};

struct roster {
    struct state *state;
    struct live *live;
    roster_moved_fn moved;
    void *ctx;
    struct entry *of;
    size_t count;
    int64_t seen_ns; /* when all were last written */
};

static char *copy(const char *text) {
    char *s = strdup(text);
    if (!s) abort();
    return s;
}

static struct entry *entry_find(struct roster *r, const char *name) {
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->of[i].name, name) == 0) return &r->of[i];
    return NULL;
}

static struct entry *entry_make(struct roster *r, const char *name) {
    struct entry *more = realloc(r->of, (r->count + 1) * sizeof *more);
    if (!more) abort();
    r->of = more;
    struct entry *e = &r->of[r->count++];
    *e = (struct entry){.gpus = copy(""), .is_dirty = true};
    snprintf(e->name, sizeof e->name, "%s", name);
    return e;
}

static void entry_drop(struct roster *r, const char *name) {
    struct entry *e = entry_find(r, name);
    if (!e) return;
    free(e->gpus);
    memmove(e, e + 1, (size_t)(r->of + --r->count - e) * sizeof *e);
}

/* ---- writing ---- */

struct change {
    struct roster *roster;
    char name[64];
    char *gpus; /* NULL: the row goes */
    int64_t seen_s;
    bool is_gone;
    state_done_fn done;
    void *ctx;
};

static int change_work(struct sql *db, void *ctx, struct error *e) {
    const struct change *c = ctx;
    const struct state_node n = {c->name, c->seen_s, c->is_gone, c->gpus};
    return c->gpus ? state_node_put(db, &n, e) : state_node_drop(db, c->name, e);
}

static void change_done(void *ctx, int result, const struct error *e) {
    struct change *c = ctx;
    struct entry *entry = entry_find(c->roster, c->name);
    if (result < 0 && entry && c->gpus) entry->is_dirty = true;
    if (result >= 0 && !c->gpus) entry_drop(c->roster, c->name);
    if (c->done) c->done(c->ctx, result, e);
    free(c->gpus);
    free(c);
}

static int change_submit(struct roster *r, const struct change *change, struct error *e) {
    struct change *c = malloc(sizeof *c);
    if (!c) abort();
    *c = *change;
    c->roster = r;
    int result = state_submit(r->state, change_work, change_done, c, e);
    if (result >= 0) return 0;
    free(c->gpus);
    free(c);
    return result;
}

static void entry_write(struct roster *r, struct entry *entry, const struct live_node *n) {
    struct error e;
    struct change c = {
        .gpus = copy(entry->gpus), .seen_s = n->seen_real_ns / NS_PER_S, .is_gone = entry->is_gone = n->is_gone};
    snprintf(c.name, sizeof c.name, "%s", entry->name);
    entry->is_dirty = change_submit(r, &c, &e) < 0;
}

/* ---- the cards of a machine ---- */

static void gpus_of(const struct live_node *n, struct buf *ret) {
    buf_puts(ret, "");
    for (uint16_t i = 0; i < n->devices; i++)
        if (n->device[i].is_known && !live_is_instance(&n->device[i]))
            buf_printf(ret, "%s%s", ret->len ? " " : "", n->device[i].is.uuid);
}

/* The machine that is connected now and has all of its cards; NULL: there is none. */
static const struct live_node *moved_to(const struct roster *r, const struct entry *entry, const struct live_node *n) {
    char uuid[96];
    const char *at = entry->gpus;
    struct live_node *now = NULL;
    while (!n->link && *at) {
        size_t len = strcspn(at, " ");
        snprintf(uuid, sizeof uuid, "%.*s", (int)len, at);
        if (!live_find_gpu(r->live, uuid, &now) || now == n || !now->link) return NULL;
        at += len + (at[len] == ' ');
    }
    return now;
}

static void forget_moved(struct roster *r) {
    for (size_t i = r->live->count; i-- > 0;) {
        struct live_node *n = r->live->node[i];
        const struct entry *entry = entry_find(r, n->name);
        const struct live_node *to = entry ? moved_to(r, entry, n) : NULL;
        if (!to) continue;
        struct change c = {0};
        struct error e;
        snprintf(c.name, sizeof c.name, "%s", n->name);
        if (change_submit(r, &c, &e) < 0) return; /* next time */
        r->moved(r->ctx, n, to->name);
        live_forget(r->live, n);
    }
}

/* ---- as time goes by ---- */

void roster_tick(struct roster *r, int64_t now_ns) {
    bool is_due = now_ns - r->seen_ns >= SEEN_NS;
    if (is_due) r->seen_ns = now_ns;
    for (size_t i = 0; i < r->live->count; i++) {
        const struct live_node *n = r->live->node[i];
        struct entry *entry = entry_find(r, n->name);
        if (!entry) entry = entry_make(r, n->name);
        bool is_whole = n->link && n->inventories == n->devices;
        AUTO(buf_done) struct buf gpus = {0};
        if (is_whole) gpus_of(n, &gpus);
        bool has_others = is_whole && strcmp(gpus.s, entry->gpus) != 0;
        if (has_others) {
            free(entry->gpus);
            entry->gpus = copy(gpus.s);
        }
        if (has_others || entry->is_dirty || entry->is_gone != n->is_gone || (is_due && !n->is_gone))
            entry_write(r, entry, n);
    }
    forget_moved(r);
}

void roster_stop(struct roster *r) {
    for (size_t i = 0; r && i < r->live->count; i++) {
        struct entry *entry = entry_find(r, r->live->node[i]->name);
        if (entry && !entry->is_gone) entry_write(r, entry, r->live->node[i]);
    }
}

int roster_forget(struct roster *r, const char *name, state_done_fn done, void *ctx, struct error *e) {
    struct change c = {.done = done, .ctx = ctx};
    snprintf(c.name, sizeof c.name, "%s", name);
    return change_submit(r, &c, e);
}

/* ---- beginning and end ---- */

static void take(void *ctx, const struct state_node *n) {
    struct roster *r = ctx;
    if (!live_expect(r->live, n->name, n->seen * NS_PER_S, n->is_gone, clock_boot_ns())) return;
    struct entry *entry = entry_make(r, n->name);
    free(entry->gpus);
    entry->gpus = copy(n->gpus);
    entry->is_gone = n->is_gone;
    entry->is_dirty = false;
}

static int load(struct sql *db, void *ctx, struct error *e) { return state_nodes_read(db, take, ctx, e); }

int roster_new(struct state *s, struct live *live, roster_moved_fn moved, void *ctx, struct roster **ret,
               struct error *e) {
    struct roster *r = calloc(1, sizeof *r);
    if (!r) abort();
    r->state = s;
    r->live = live;
    r->moved = moved;
    r->ctx = ctx;
    r->seen_ns = clock_boot_ns();
    int result = state_run(s, load, r, e);
    if (result < 0) {
        roster_free(r);
        return result;
    }
    *ret = r;
    return 0;
}

void roster_free(struct roster *r) {
    if (!r) return;
    for (size_t i = 0; i < r->count; i++) free(r->of[i].gpus);
    free(r->of);
    free(r);
}
