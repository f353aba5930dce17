#include "server/state_nodes.h"

struct walk {
    void (*each)(void *ctx, const struct state_node *n);
    void *ctx;
};

static int tell(const struct sql_row *row, void *ctx, struct error *e) {
    const struct walk *w = ctx;
    const struct state_node n = {sql_row_text(row, 0), sql_row_int(row, 1), sql_row_int(row, 2) != 0,
                                 sql_row_text(row, 3)};
    w->each(w->ctx, &n);
    return 0;
}

int state_nodes_read(struct sql *db, void (*each)(void *ctx, const struct state_node *n), void *ctx, struct error *e) {
    struct walk w = {each, ctx};
    int r = sql_each(db, tell, &w, e, "SELECT name,seen,is_gone,gpus FROM nodes ORDER BY name", "");
    return r < 0 ? r : 0;
}

int state_node_put(struct sql *db, const struct state_node *n, struct error *e) {
    int r = sql_do(db, e, "INSERT OR REPLACE INTO nodes(name,seen,is_gone,gpus) VALUES(?,?,?,?)", "siis", n->name,
                   n->seen, (int64_t)n->is_gone, n->gpus);
    return r < 0 ? r : 0;
}

int state_node_drop(struct sql *db, const char *name, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM nodes WHERE name=?", "s", name);
    return r < 0 ? r : 0;
}
