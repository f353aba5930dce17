#include "server/letters_store.h"

#include <errno.h>
#include <stdio.h>

int letters_store_add(struct sql *db, const struct letter_row *l, int64_t *ret_id, struct error *e) {
    int r =
        sql_do(db, e,
               "INSERT INTO letters(job, word, made, tries, way, receiver, user, node, kind, body)"
               " VALUES(?,?,?,0,?,?,?,?,?,?)",
               "iiissssss", l->job, (int64_t)l->word, l->made, l->way, l->receiver, l->user, l->node, l->kind, l->body);
    if (r < 0) return r;
    *ret_id = sql_last_id(db);
    return 0;
}

int letters_store_drop(struct sql *db, int64_t id, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM letters WHERE id=?", "i", id);
    return r < 0 ? r : 0;
}

int letters_store_tried(struct sql *db, int64_t id, int64_t tries, struct error *e) {
    int r = sql_do(db, e, "UPDATE letters SET tries=? WHERE id=?", "ii", tries, id);
    return r < 0 ? r : 0;
}

struct reading {
    void (*each)(void *ctx, const struct letter_row *l);
    void *ctx;
};

static int read_letter(const struct sql_row *row, void *ctx, struct error *e) {
    const struct reading *r = ctx;
    r->each(r->ctx, &(struct letter_row){.id = sql_row_int(row, 0),
                                         .job = sql_row_int(row, 1),
                                         .word = (uint16_t)sql_row_int(row, 2),
                                         .made = sql_row_int(row, 3),
                                         .tries = sql_row_int(row, 4),
                                         .way = sql_row_text(row, 5),
                                         .receiver = sql_row_text(row, 6),
                                         .user = sql_row_text(row, 7),
                                         .node = sql_row_text(row, 8),
                                         .kind = sql_row_text(row, 9),
                                         .body = sql_row_text(row, 10)});
    return 0;
}

int letters_store_read(struct sql *db, void (*each)(void *ctx, const struct letter_row *l), void *ctx,
                       struct error *e) {
    struct reading reading = {each, ctx};
    int r = sql_each(
        db, read_letter, &reading, e,
        "SELECT id, job, word, made, tries, way, receiver, user, node, kind, body FROM letters ORDER BY id", "");
    return r < 0 ? r : 0;
}

static int read_seal(const struct sql_row *row, void *ctx, struct error *e) {
    struct letter_seal *s = ctx;
    size_t n;
    s->uid = (uint32_t)sql_row_int(row, 0);
    snprintf(s->user, sizeof s->user, "%s", sql_row_text(row, 1));
    const void *bytes = sql_row_blob(row, 2, &n);
    buf_add(&s->record, bytes, n);
    bytes = sql_row_blob(row, 3, &n);
    buf_add(&s->seal, bytes, n);
    return 0;
}

int letters_store_seal(struct sql *db, int64_t job, struct letter_seal *ret, struct error *e) {
    int r = sql_each(db, read_seal, ret, e, "SELECT uid, user, record, seal FROM jobs WHERE id=?", "i", job);
    return r < 0 ? r : r == 0 ? fail(e, -ENOENT, "there is no job %lld any more", (long long)job) : 0;
}
