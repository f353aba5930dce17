#include "server/reserves.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/group.h"
#include "base/log.h"
#include "base/zone_file.h"
#include "server/edit_store.h"
#include "server/state_sql.h"

#define KEEP_S (31 * 86400)

static char *copy(const char *text) {
    char *s = strdup(text ? text : "");
    if (!s) abort();
    return s;
}

static void reservation_free(struct reservation *v) {
    if (!v) return;
    const char *const all[] = {v->user, v->group, v->node,    v->gpus, v->every,
                               v->zone, v->note,  v->made_by, v->ask,  v->edits};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) free((void *)(uintptr_t)all[i]);
    reserve_done(&v->when);
    reservation_free(v->next);
    free(v->instead);
    free(v);
}

void reserves_done(struct reserves *r) {
    for (size_t i = 0; i < r->count; i++) reservation_free(r->of[i]);
    free(r->of);
    *r = (struct reserves){0};
}

/* ---- times ---- */

static int zone_read(const char *name, struct zone *ret, struct error *e) {
    AUTO(buf_done) struct buf bytes = {0};
    if (!*name || strcmp(name, "UTC") == 0) return 0;
    if (!zone_name_is_good(name)) return fail(e, -EINVAL, "zone: \"%.40s\" is no name of a time zone", name);
    int r = zone_file_read(name, ZONE_FILE_MAX, &bytes, e);
    if (r < 0) return fail(e, -EINVAL, "zone: this machine has no time zone %.60s", name);
    r = zone_parse(bytes.s, bytes.len, ret, e);
    return r < 0 ? fail_in(e, r, "zone: %s", name) : 0;
}

int reserves_parse(const char *every, const char *zone, struct reserve *ret, struct error *e) {
    bool is_interval = every[0] == 'R';
    if (!*every) return *zone ? fail(e, -EINVAL, "zone: is for one that comes again (every)") : 0;
    int r = recur_parse(is_interval ? NULL : every, is_interval ? every : NULL, &ret->recur, e);
    if (r < 0) return fail_in(e, -EINVAL, "every");
    ret->is_recurring = true;
    return zone_read(zone, &ret->zone, e);
}

void reserves_time(int64_t at_s, char *ret, size_t room) {
    struct tm tm;
    time_t t = (time_t)at_s;
    if (!gmtime_r(&t, &tm) || !strftime(ret, room, "%Y-%m-%d %H:%M UTC", &tm)) ret[0] = 0;
}

/* ---- for whom ---- */

void reserves_holder(const struct reservation *v, char *ret, size_t room) {
    if (*v->group)
        snprintf(ret, room, "group %s", v->group);
    else
        snprintf(ret, room, "%s", v->user);
}

/* Asking may mean asking a directory server, and the loop waits for it. */
static bool is_member(const char *group, const char *user, int64_t now_s) {
    static struct {
        char group[RESERVES_NAME_MAX], user[RESERVES_NAME_MAX];
        int64_t until_s;
        bool is;
    } known[256];
    uint64_t h = 1469598103934665603ull;
    for (const char *c = group; *c; c++) h = (h ^ (uint8_t)*c) * 1099511628211ull;
    for (const char *c = user; *c; c++) h = (h ^ (uint8_t)*c) * 1099511628211ull;
    size_t at = h % ARRAY_LEN(known);
    if (strlen(group) >= RESERVES_NAME_MAX || strlen(user) >= RESERVES_NAME_MAX) return false;
    bool is_fresh = now_s < known[at].until_s && known[at].until_s <= now_s + 60;
    if (!is_fresh || strcmp(known[at].group, group) != 0 || strcmp(known[at].user, user) != 0) {
        snprintf(known[at].group, sizeof known[at].group, "%s", group);
        snprintf(known[at].user, sizeof known[at].user, "%s", user);
        known[at].is = group_has(group, user);
        known[at].until_s = now_s + 60;
    }
    return known[at].is;
}

bool reserves_is_for(const struct reservation *v, const char *user, int64_t now_s) {
    return *v->group ? is_member(v->group, user, now_s) : strcmp(v->user, user) == 0;
}

static bool is_listed(const char *list, const char *uuid) {
    size_t n = strlen(uuid);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, uuid, n) == 0 && (at[n] == ',' || !at[n])) return true;
    return false;
}

bool reserves_has_gpu(const struct reservation *v, const char *uuid) { return is_listed(v->gpus, uuid); }

bool reserves_has_instead(const struct reservation *v, const char *uuid) {
    return v->instead && is_listed(v->instead, uuid);
}

/* ---- memory ---- */

struct reservation *reserves_find(const struct reserves *r, int64_t id) {
    for (size_t i = 0; i < r->count; i++)
        if (r->of[i]->id == id) return r->of[i];
    return NULL;
}

struct reservation *reserves_asked(const struct reserves *r, const char *who, const char *ask) {
    for (size_t i = 0; *ask && i < r->count; i++)
        if (strcmp(r->of[i]->ask, ask) == 0 && strcmp(r->of[i]->made_by, who) == 0) return r->of[i];
    return NULL;
}

static struct reservation *copy_of(const struct reservation *from) {
    struct reservation *v = calloc(1, sizeof *v);
    if (!v) abort();
    *v = *from;
    v->user = copy(from->user);
    v->group = copy(from->group);
    v->node = copy(from->node);
    v->gpus = copy(from->gpus);
    v->every = copy(from->every);
    v->zone = copy(from->zone);
    v->note = copy(from->note);
    v->made_by = copy(from->made_by);
    v->ask = copy(from->ask);
    v->edits = copy(from->edits);
    return v;
}

struct reservation *reserves_add(struct reserves *r, const struct reservation *from) {
    struct reservation *v = copy_of(from), **more = realloc(r->of, (r->count + 1) * sizeof(struct reservation *));
    if (!more) abort();
    if (!v->id) v->id = r->next_id;
    if (v->id >= r->next_id) r->next_id = v->id + 1;
    r->of = more;
    r->of[r->count++] = v;
    return v;
}

void reserves_drop(struct reserves *r, int64_t id) {
    for (size_t i = 0; i < r->count; i++) {
        if (r->of[i]->id != id) continue;
        reservation_free(r->of[i]);
        memmove(&r->of[i], &r->of[i + 1], (--r->count - i) * sizeof(struct reservation *));
        return;
    }
}

/* ---- becoming another ---- */

bool reserves_knows(const struct reservation *v, const char *ask) {
    size_t n = strlen(ask);
    for (const char *at = v->edits; n && *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, ask, n) == 0 && at[n] == '\n') return true;
    return false;
}

static char *with_key(const char *edits, const char *ask) {
    AUTO(buf_done) struct buf b = {0};
    if (*ask) buf_printf(&b, "%s\n", ask);
    for (int i = 1; *edits && i < EDIT_KEYS_KEPT; i++) {
        size_t n = strcspn(edits, "\n");
        buf_printf(&b, "%.*s\n", (int)n, edits);
        edits += n + (edits[n] == '\n');
    }
    return copy(b.len ? b.s : "");
}

void reserves_change(struct reservation *v, const struct reservation *to, const char *ask) {
    struct reservation *next = copy_of(to);
    free((void *)(uintptr_t)next->edits);
    next->edits = with_key(v->edits, ask);
    next->id = v->id;
    next->made_s = v->made_s;
    next->last_use_s = v->last_use_s;
    next->given_back_s = v->given_back_s;
    next->is_stored = true;
    v->next = next;
}

void reserves_changed(struct reserves *r, int64_t id, bool is_good) {
    for (size_t i = 0; i < r->count; i++) {
        struct reservation *old = r->of[i], *next = old->next;
        if (old->id != id || !next) continue;
        old->next = NULL;
        if (is_good && strcmp(old->gpus, next->gpus) == 0) { /* what stands in for a lost one still does */
            next->instead = old->instead;
            old->instead = NULL;
        }
        if (is_good) r->of[i] = next;
        reservation_free(is_good ? old : next);
    }
}

/* ---- the file ---- */

int reserves_store(struct sql *db, const struct reservation *v, struct error *e) {
    int r =
        sql_do(db, e,
               "INSERT INTO reservations(id,user,grp,node,gpus,every,zone,note,made_by,ask,made,begins,length,until)"
               " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
               "isssssssssiiii", v->id, v->user, v->group, v->node, v->gpus, v->every, v->zone, v->note, v->made_by,
               v->ask, v->made_s, v->when.from_s, v->when.length_s, v->when.until_s);
    return r < 0 ? r : 0;
}

int reserves_store_change(struct sql *db, const struct reservation *v, const char *ask, struct error *e) {
    int r = sql_do(db, e,
                   "UPDATE reservations SET user=?,grp=?,node=?,gpus=?,every=?,zone=?,note=?,begins=?,length=?,until=?"
                   " WHERE id=?",
                   "sssssssiiii", v->user, v->group, v->node, v->gpus, v->every, v->zone, v->note, v->when.from_s,
                   v->when.length_s, v->when.until_s, v->id);
    if (r == 0) return fail(e, -ENOENT, "there is no reservation %lld", (long long)v->id);
    return r < 0 ? r : edit_store_add(db, EDIT_OF_RESERVATION, v->id, ask, e);
}

int reserves_store_drop(struct sql *db, int64_t id, struct error *e) {
    int r = edit_store_drop(db, EDIT_OF_RESERVATION, id, e);
    if (r >= 0) r = sql_do(db, e, "DELETE FROM reservations WHERE id=?", "i", id);
    return r < 0 ? r : 0;
}

struct load {
    struct reserves *r;
    int64_t now_s;
};

/* The columns of a text are good until the next row. */
static int load_row(const struct sql_row *row, void *ctx, struct error *e) {
    struct load *l = ctx;
    char *text[9];
    struct reservation v = {.id = sql_row_int(row, 0), .made_s = sql_row_int(row, 10), .is_stored = true};
    struct error why;
    for (size_t i = 0; i < ARRAY_LEN(text); i++) text[i] = copy(sql_row_text(row, (int)i + 1));
    v.user = text[0];
    v.group = text[1];
    v.node = text[2];
    v.gpus = text[3];
    v.every = text[4];
    v.zone = text[5];
    v.note = text[6];
    v.made_by = text[7];
    v.ask = text[8];
    v.when = (struct reserve){
        .from_s = sql_row_int(row, 11), .length_s = sql_row_int(row, 12), .until_s = sql_row_int(row, 13)};
    if (reserves_parse(v.every, v.zone, &v.when, &why) < 0) /* the machine may have lost its time zones */
        log_line(LOG_WARN, "reservation", -1, "reservation %lld is left out: %s", (long long)v.id, why.text);
    else
        reserves_add(l->r, &v);
    for (size_t i = 0; i < ARRAY_LEN(text); i++) free(text[i]);
    return 0;
}

static int load_key(const struct sql_row *row, void *ctx, struct error *e) {
    const struct load *l = ctx;
    struct reservation *v = reserves_find(l->r, sql_row_int(row, 0));
    if (!v) return 0;
    char *all = with_key(v->edits, sql_row_text(row, 1));
    free((void *)(uintptr_t)v->edits);
    v->edits = all;
    return 0;
}

static int load_work(struct sql *db, void *ctx, struct error *e) {
    struct load *l = ctx;
    int r = sql_do(db, e, "DELETE FROM reservations WHERE every='' AND begins+length<?", "i", l->now_s - KEEP_S);
    if (r >= 0)
        r = sql_do(db, e, "DELETE FROM edits WHERE kind=? AND parent NOT IN (SELECT id FROM reservations)", "i",
                   (int64_t)EDIT_OF_RESERVATION);
    if (r >= 0)
        r = sql_int(db, &l->r->next_id, e,
                    "SELECT COALESCE(MAX(seq),0)+1 FROM sqlite_sequence WHERE name='reservations'", "");
    if (r >= 0)
        r = sql_each(
            db, load_row, l, e,
            "SELECT id,user,grp,node,gpus,every,zone,note,made_by,ask,made,begins,length,until FROM reservations"
            " ORDER BY id",
            "");
    if (r >= 0)
        r = sql_each(db, load_key, l, e, "SELECT parent,ask FROM edits WHERE kind=? ORDER BY id", "i",
                     (int64_t)EDIT_OF_RESERVATION);
    return r < 0 ? r : 0;
}

int reserves_load(struct reserves *r, struct state *s, int64_t now_s, struct error *e) {
    struct load l = {r, now_s};
    r->began_s = now_s;
    return state_run(s, load_work, &l, e);
}
