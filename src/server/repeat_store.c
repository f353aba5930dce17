#include "server/repeat_store.h"

#include <errno.h>

#include "server/edit_store.h"
#include "server/queue_store.h"

int repeat_store_add(struct sql *db, const struct repeat_row *row, int64_t *ret_id, struct error *e) {
    int r =
        sql_do(db, e,
               "INSERT INTO repeats(made,uid,user,account,node,origin,zone,is_paused,mark,record,seal,ask)"
               " VALUES(?,?,?,?,?,?,?,0,?,?,?,?)",
               "iisssisibbs", row->made_ns, (int64_t)row->uid, row->user, row->account, row->node, (int64_t)row->origin,
               row->zone, row->mark_s, row->record, row->record_len, row->seal, row->seal_len, row->ask);
    if (r >= 0) *ret_id = sql_last_id(db);
    return r < 0 ? r : 0;
}

int repeat_store_asked(struct sql *db, const char *ask, int64_t *ret_id, struct error *e) {
    int r = sql_int(db, ret_id, e, "SELECT id FROM repeats WHERE ask=?", "s", ask);
    return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static int one_row(int changed, int64_t id, struct error *e) {
    return changed ? changed : fail(e, -ENOENT, "there is no repeat %lld", (long long)id);
}

int repeat_store_remove(struct sql *db, int64_t id, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM repeat_slots WHERE repeat=?", "i", id);
    if (r >= 0) r = edit_store_drop(db, EDIT_OF_REPEAT, id, e);
    return r < 0 ? r : one_row(sql_do(db, e, "DELETE FROM repeats WHERE id=?", "i", id), id, e);
}

int repeat_store_change(struct sql *db, const struct repeat_row *row, int64_t changed_s, struct error *e) {
    return one_row(sql_do(db, e,
                          "UPDATE repeats SET account=?,origin=?,zone=?,record=?,seal=?,times=?,changed=?,"
                          "mark=max(mark,?) WHERE id=?",
                          "sisbbbiii", row->account, (int64_t)row->origin, row->zone, row->record, row->record_len,
                          row->seal, row->seal_len, row->times, row->times_len, changed_s, row->mark_s, row->id),
                   row->id, e);
}

int repeat_store_pause(struct sql *db, int64_t id, bool is_paused, struct error *e) {
    return one_row(sql_do(db, e, "UPDATE repeats SET is_paused=? WHERE id=?", "ii", (int64_t)is_paused, id), id, e);
}

/* ---- times ---- */

static int slot_add(struct sql *db, int64_t id, const struct repeat_slot *s, int64_t job, struct error *e) {
    /* One that ran is never made again; of the others only the first note counts. */
    const char *text =
        s->fate == REPEAT_RUN
            ? "INSERT INTO repeat_slots(repeat,slot,fate,count,job,state) VALUES(?,?,?,?,?,-1)"
            : "INSERT OR IGNORE INTO repeat_slots(repeat,slot,fate,count,job,state) VALUES(?,?,?,?,?,-1)";
    return sql_do(db, e, text, "iiiii", id, s->at_s, (int64_t)s->fate, s->count, job);
}

static int trim(struct sql *db, int64_t id, struct error *e) {
    int r = sql_do(db, e,
                   "DELETE FROM repeat_slots WHERE repeat=? AND id<(SELECT min(id) FROM (SELECT id FROM repeat_slots"
                   " WHERE repeat=? ORDER BY id DESC LIMIT ?))",
                   "iii", id, id, (int64_t)REPEAT_SLOTS_KEPT);
    return r < 0 ? r : 0;
}

static int mark_move(struct sql *db, int64_t id, int64_t mark_s, struct error *e) {
    int r = sql_do(db, e, "UPDATE repeats SET mark=? WHERE id=? AND mark<?", "iii", mark_s, id, mark_s);
    return r < 0 ? r : r == 0 ? fail(e, -ESTALE, "repeat %lld: this time was decided before", (long long)id) : 0;
}

int repeat_store_slots(struct sql *db, int64_t id, const struct repeat_slot *slots, size_t count, int64_t mark_s,
                       int64_t job, struct error *e) {
    int r = mark_move(db, id, mark_s, e);
    for (size_t i = 0; r >= 0 && i < count; i++)
        r = slot_add(db, id, &slots[i], slots[i].fate == REPEAT_RUN ? job : 0, e);
    return r < 0 ? r : trim(db, id, e);
}

int repeat_store_by_hand(struct sql *db, int64_t id, int64_t now_s, int64_t job, struct error *e) {
    const struct repeat_slot slot = {.at_s = now_s, .fate = REPEAT_BY_HAND, .count = 1};
    int64_t there;
    int r = sql_int(db, &there, e, "SELECT count(*) FROM repeats WHERE id=?", "i", id);
    if (r >= 0) r = one_row((int)there, id, e);
    if (r >= 0) r = slot_add(db, id, &slot, job, e);
    return r < 0 ? r : trim(db, id, e);
}

int repeat_store_back(struct sql *db, int64_t id, int64_t now_s, int64_t *ret_mark_s, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM repeat_slots WHERE repeat=? AND slot>? AND fate NOT IN(?,?)", "iiii", id, now_s,
                   (int64_t)REPEAT_RUN, (int64_t)REPEAT_BY_HAND);
    if (r >= 0)
        r = sql_int(db, ret_mark_s, e,
                    "SELECT max(coalesce(max(slot),?),min(?,(SELECT changed FROM repeats WHERE id=?)))"
                    " FROM repeat_slots WHERE repeat=? AND slot<=? AND fate<>?",
                    "iiiiii", now_s, now_s, id, id, now_s, (int64_t)REPEAT_BY_HAND);
    if (r >= 0) r = sql_do(db, e, "UPDATE repeats SET mark=? WHERE id=?", "ii", *ret_mark_s, id);
    return r < 0 ? r : one_row(r, id, e);
}

int repeat_store_end(struct sql *db, int64_t job, int state, struct error *e) {
    int r = sql_do(db, e, "UPDATE repeat_slots SET state=? WHERE job=?", "ii", (int64_t)state, job);
    return r < 0 ? r : 0;
}

/* ---- reading ---- */

static int tell_repeat(const struct sql_row *row, void *ctx, struct error *e) {
    const struct repeat_reader *reader = ctx;
    struct repeat_row r = {.id = sql_row_int(row, 0),
                           .made_ns = sql_row_int(row, 1),
                           .uid = (uint32_t)sql_row_int(row, 2),
                           .user = sql_row_text(row, 3),
                           .account = sql_row_text(row, 4),
                           .node = sql_row_text(row, 5),
                           .origin = (uint8_t)sql_row_int(row, 6),
                           .zone = sql_row_text(row, 7),
                           .is_paused = sql_row_int(row, 8) != 0,
                           .mark_s = sql_row_int(row, 9)};
    r.record = sql_row_blob(row, 10, &r.record_len);
    r.seal = sql_row_blob(row, 11, &r.seal_len);
    if (!sql_row_is_null(row, 12)) r.times = sql_row_blob(row, 12, &r.times_len);
    return reader->repeat(reader->ctx, &r, e);
}

static int tell_open(const struct sql_row *row, void *ctx, struct error *e) {
    const struct repeat_reader *reader = ctx;
    reader->open(reader->ctx, sql_row_int(row, 0), sql_row_int(row, 1));
    return 0;
}

int repeat_store_read(struct sql *db, const struct repeat_reader *reader, struct error *e) {
    int r = sql_do(db, e,
                   "UPDATE repeat_slots SET state=(SELECT state FROM jobs WHERE id=job) WHERE state<0 AND job IN"
                   "(SELECT id FROM jobs WHERE parent_kind=? AND is_over=1)",
                   "i", (int64_t)QUEUE_OF_REPEAT);
    if (r >= 0)
        r = sql_each(db, tell_repeat, (void *)(uintptr_t)reader, e,
                     "SELECT id,made,uid,user,account,node,origin,zone,is_paused,mark,record,seal,times FROM repeats"
                     " ORDER BY id",
                     "");
    if (r >= 0)
        r = sql_each(db, tell_open, (void *)(uintptr_t)reader, e,
                     "SELECT parent,id FROM jobs WHERE parent_kind=? AND is_over=0 ORDER BY id", "i",
                     (int64_t)QUEUE_OF_REPEAT);
    return r < 0 ? r : 0;
}

struct listing {
    void (*each)(void *ctx, const struct repeat_slot_row *row);
    void *ctx;
};

static int tell_slot(const struct sql_row *row, void *ctx, struct error *e) {
    const struct listing *l = ctx;
    const struct repeat_slot_row out = {.repeat = sql_row_int(row, 0),
                                        .at_s = sql_row_int(row, 1),
                                        .fate = (enum repeat_fate)sql_row_int(row, 2),
                                        .count = sql_row_int(row, 3),
                                        .job = sql_row_int(row, 4),
                                        .state = (int)sql_row_int(row, 5)};
    l->each(l->ctx, &out);
    return 0;
}

int repeat_store_list(struct sql *db, int64_t repeat, int most,
                      void (*each)(void *ctx, const struct repeat_slot_row *row), void *ctx, struct error *e) {
    struct listing l = {each, ctx};
    int r =
        sql_each(db, tell_slot, &l, e,
                 "SELECT repeat,slot,fate,count,job,state FROM (SELECT *,row_number() OVER (PARTITION BY repeat"
                 " ORDER BY id DESC) AS n FROM repeat_slots WHERE ?=0 OR repeat=?) WHERE n<=? ORDER BY repeat,id DESC",
                 "iii", repeat, repeat, (int64_t)most);
    return r < 0 ? r : 0;
}
