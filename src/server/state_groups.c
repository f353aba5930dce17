#include "server/state_groups.h"

#include <errno.h>

struct walk {
    void (*each)(void *ctx, const struct state_group *g);
    void *ctx;
};

static int tell(const struct sql_row *row, void *ctx, struct error *e) {
    const struct walk *w = ctx;
    const struct state_group g = {sql_row_text(row, 0), sql_row_text(row, 1), sql_row_text(row, 2),
                                  sql_row_int(row, 3)};
    w->each(w->ctx, &g);
    return 0;
}

int state_groups_read(struct sql *db, void (*each)(void *ctx, const struct state_group *g), void *ctx,
                      struct error *e) {
    struct walk w = {each, ctx};
    int r = sql_each(db, tell, &w, e, "SELECT name,label,members,changed FROM groups ORDER BY name", "");
    return r < 0 ? r : 0;
}

int state_group_put(struct sql *db, const struct state_group *g, struct error *e) {
    int64_t others;
    int r = sql_int(db, &others, e, "SELECT count(*) FROM groups WHERE name<>?", "s", g->name);
    if (r < 0) return r;
    if (others >= STATE_GROUPS_MAX) return fail(e, -ENOSPC, "there are %d groups already", STATE_GROUPS_MAX);
    r = sql_do(db, e,
               "INSERT INTO groups(name,label,members,changed) VALUES(?,?,?,?) ON CONFLICT(name) DO UPDATE SET"
               " label=excluded.label,members=excluded.members,changed=excluded.changed",
               "sssi", g->name, g->label, g->members, g->changed);
    return r < 0 ? r : 0;
}

int state_group_drop(struct sql *db, const char *name, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM groups WHERE name=?", "s", name);
    return r < 0 ? r : r == 0 ? fail(e, -ENOENT, "there is no group %s", name) : 0;
}
