#include "server/service_store.h"

#include <errno.h>

int service_store_put(struct sql *db, const struct service_row *s, struct error *e) {
    int r = sql_do(db, e, "INSERT OR REPLACE INTO services VALUES(?,?,?,?,?,?,?,?,?)", "isisssiib", s->id, s->name,
                   (int64_t)s->uid, s->user, s->account, s->node, (int64_t)s->origin, s->made_ns, s->life, s->life_len);
    return r < 0 ? r : 0;
}

int service_store_life(struct sql *db, int64_t id, const void *life, size_t len, struct error *e) {
    int r = sql_do(db, e, "UPDATE services SET life=? WHERE id=?", "bi", life, len, id);
    return r < 0 ? r : r == 0 ? fail(e, -ENOENT, "there is no service %lld", (long long)id) : 0;
}

int service_store_revision(struct sql *db, const struct service_revision_row *v, struct error *e) {
    int r = sql_do(db, e, "INSERT OR REPLACE INTO service_revisions VALUES(?,?,?,?,?,?,?)", "iiisbbs", v->service,
                   (int64_t)v->number, v->made_ns, v->by, v->record, v->record_len, v->seal, v->seal_len, v->ask);
    return r < 0 ? r : 0;
}

int service_store_trim(struct sql *db, int64_t id, uint32_t before, uint32_t but, uint32_t nor, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM service_revisions WHERE service=? AND number<? AND number<>? AND number<>?",
                   "iiii", id, (int64_t)before, (int64_t)but, (int64_t)nor);
    return r < 0 ? r : 0;
}

int service_store_drop(struct sql *db, int64_t id, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM service_revisions WHERE service=?", "i", id);
    if (r >= 0) r = sql_do(db, e, "DELETE FROM services WHERE id=?", "i", id);
    return r < 0 ? r : 0;
}

static int tell_service(const struct sql_row *row, void *ctx, struct error *e) {
    const struct service_reader *r = ctx;
    struct service_row s = {.id = sql_row_int(row, 0),
                            .name = sql_row_text(row, 1),
                            .uid = (uint32_t)sql_row_int(row, 2),
                            .user = sql_row_text(row, 3),
                            .account = sql_row_text(row, 4),
                            .node = sql_row_text(row, 5),
                            .origin = (uint8_t)sql_row_int(row, 6),
                            .made_ns = sql_row_int(row, 7)};
    s.life = sql_row_blob(row, 8, &s.life_len);
    return r->service(r->ctx, &s, e);
}

static int tell_revision(const struct sql_row *row, void *ctx, struct error *e) {
    const struct service_reader *r = ctx;
    struct service_revision_row v = {.service = sql_row_int(row, 0),
                                     .number = (uint32_t)sql_row_int(row, 1),
                                     .made_ns = sql_row_int(row, 2),
                                     .by = sql_row_text(row, 3),
                                     .ask = sql_row_text(row, 6)};
    v.record = sql_row_blob(row, 4, &v.record_len);
    v.seal = sql_row_blob(row, 5, &v.seal_len);
    return r->revision(r->ctx, &v, e);
}

int service_store_read(struct sql *db, const struct service_reader *reader, int64_t *ret_last, struct error *e) {
    void *ctx = (void *)(uintptr_t)reader;
    int r = sql_each(db, tell_service, ctx, e,
                     "SELECT id,name,uid,user,account,node,origin,made,life FROM services ORDER BY id", "");
    if (r >= 0)
        r = sql_each(db, tell_revision, ctx, e,
                     "SELECT service,number,made,by,record,seal,ask FROM service_revisions ORDER BY service,number",
                     "");
    if (r >= 0)
        r = sql_int(db, ret_last, e, "SELECT coalesce(max(seq),0) FROM sqlite_sequence WHERE name='services'", "");
    return r < 0 ? r : 0;
}
