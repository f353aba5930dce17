#include "server/edit_store.h"

int edit_store_known(struct sql *db, enum edit_kind kind, int64_t parent, const char *ask, struct error *e) {
    int64_t count = 0;
    if (!*ask) return 0;
    int r = sql_int(db, &count, e, "SELECT count(*) FROM edits WHERE ask=? AND kind=? AND parent=?", "sii", ask,
                    (int64_t)kind, parent);
    return r < 0 ? r : count > 0;
}

int edit_store_add(struct sql *db, enum edit_kind kind, int64_t parent, const char *ask, struct error *e) {
    if (!*ask) return 0;
    int r = sql_do(db, e, "INSERT INTO edits(kind,parent,ask) VALUES(?,?,?)", "iis", (int64_t)kind, parent, ask);
    if (r >= 0)
        r = sql_do(db, e,
                   "DELETE FROM edits WHERE kind=? AND parent=? AND id NOT IN (SELECT id FROM edits WHERE kind=? AND"
                   " parent=? ORDER BY id DESC LIMIT ?)",
                   "iiiii", (int64_t)kind, parent, (int64_t)kind, parent, (int64_t)EDIT_KEYS_KEPT);
    return r < 0 ? r : 0;
}

int edit_store_drop(struct sql *db, enum edit_kind kind, int64_t parent, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM edits WHERE kind=? AND parent=?", "ii", (int64_t)kind, parent);
    return r < 0 ? r : 0;
}
