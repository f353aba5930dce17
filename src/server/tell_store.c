#include "server/tell_store.h"

#include <stdio.h>

#include "base/auto.h"

#define STREAMS_MAX 10000 /* a stream ends with its node's boot: the oldest are forgotten */

static int notice_write(struct sql *db, const struct notice *n, struct error *e) {
    return sql_do(db, e,
                  "INSERT OR REPLACE INTO notices(subject, topic, code, title, text, severity, count, silent, is_open,"
                  "  is_owed, is_told, opened, told, seen) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                  "ssissiiiiiiiii", n->subject, n->topic, (int64_t)n->code, n->title, n->text, (int64_t)n->severity,
                  (int64_t)n->count, (int64_t)n->silent, (int64_t)n->is_open, (int64_t)n->is_owed, (int64_t)n->is_told,
                  n->opened_ns, n->told_ns, n->seen_ns);
}

static int mark_write(struct sql *db, const struct tell_write *w, struct error *e) {
    int r = sql_do(db, e, "INSERT OR REPLACE INTO tell_marks(stream, mark, seen) VALUES(?,?,?)", "sii", w->stream,
                   w->mark, w->made);
    if (r < 0) return r;
    return sql_do(
        db, e,
        "DELETE FROM tell_marks WHERE stream IN (SELECT stream FROM tell_marks ORDER BY seen DESC LIMIT -1 OFFSET ?)",
        "i", (int64_t)STREAMS_MAX);
}

int tell_store_write(struct sql *db, struct tell_write *w, struct error *e) {
    int r = 0;
    if (*w->notice.subject) r = notice_write(db, &w->notice, e);
    if (r >= 0 && *w->stream) r = mark_write(db, w, e);
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(w->post); i++) {
        if (!w->post[i].way) continue;
        r = sql_do(db, e, "INSERT INTO outbox(way, made, tries, body) VALUES(?,?,0,?)", "sis", w->post[i].way, w->made,
                   w->post[i].body);
        w->post[i].id = sql_last_id(db);
    }
    return r < 0 ? r : 0;
}

int tell_store_drop(struct sql *db, int64_t id, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM outbox WHERE id=?", "i", id);
    return r < 0 ? r : 0;
}

int tell_store_tried(struct sql *db, int64_t id, int64_t tries, struct error *e) {
    int r = sql_do(db, e, "UPDATE outbox SET tries=? WHERE id=?", "ii", tries, id);
    return r < 0 ? r : 0;
}

static int read_notice(const struct sql_row *row, void *ctx, struct error *e) {
    const struct tell_reader *r = ctx;
    struct notice n = {.code = (int32_t)sql_row_int(row, 2),
                       .severity = (int32_t)sql_row_int(row, 5),
                       .count = (uint32_t)sql_row_int(row, 6),
                       .silent = (uint32_t)sql_row_int(row, 7),
                       .is_open = sql_row_int(row, 8) != 0,
                       .is_owed = sql_row_int(row, 9) != 0,
                       .is_told = sql_row_int(row, 10) != 0,
                       .opened_ns = sql_row_int(row, 11),
                       .told_ns = sql_row_int(row, 12),
                       .seen_ns = sql_row_int(row, 13)};
    snprintf(n.subject, sizeof n.subject, "%s", sql_row_text(row, 0));
    snprintf(n.topic, sizeof n.topic, "%s", sql_row_text(row, 1));
    snprintf(n.title, sizeof n.title, "%s", sql_row_text(row, 3));
    snprintf(n.text, sizeof n.text, "%s", sql_row_text(row, 4));
    r->notice(r->ctx, &n);
    return 0;
}

static int read_post(const struct sql_row *row, void *ctx, struct error *e) {
    const struct tell_reader *r = ctx;
    r->post(r->ctx, sql_row_int(row, 0), sql_row_text(row, 1), sql_row_int(row, 2), sql_row_int(row, 3),
            sql_row_text(row, 4));
    return 0;
}

static int read_mark(const struct sql_row *row, void *ctx, struct error *e) {
    const struct tell_reader *r = ctx;
    r->mark(r->ctx, sql_row_text(row, 0), sql_row_int(row, 1));
    return 0;
}

int tell_store_read(struct sql *db, const struct tell_reader *reader, struct error *e) {
    struct tell_reader copy = *reader;
    int r = sql_each(db, read_notice, &copy, e,
                     "SELECT subject, topic, code, title, text, severity, count, silent, is_open, is_owed, is_told,"
                     "  opened, told, seen FROM notices ORDER BY is_open DESC, seen DESC LIMIT ?",
                     "i", (int64_t)NOTICE_BOOK_MAX);
    if (r >= 0) r = sql_each(db, read_post, &copy, e, "SELECT id, way, made, tries, body FROM outbox ORDER BY id", "");
    if (r >= 0) r = sql_each(db, read_mark, &copy, e, "SELECT stream, mark FROM tell_marks ORDER BY seen", "");
    return r < 0 ? r : 0;
}
