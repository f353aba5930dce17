#include "server/history_db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "server/history_sql.h"

enum { BUSY_MS = 10000, BLOB_MAX = 1 << 28 };
#define APPLICATION_ID "1735421288" /* "gpmh" */

enum statement {
#define X(id, text) Q_##id,
    STATEMENTS
#undef X
        STATEMENT_COUNT
};
static const char *const texts[] = {
#define X(id, text) [Q_##id] = text,
    STATEMENTS
#undef X
};

struct history_db {
    sqlite3 *sqlite;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    sqlite3_blob *blob;
    struct buf piece;
    int lock_fd;
    bool has_task_index;
    char path[400];
};

static int errno_of(int code) {
    switch (code & 0xff) {
    case SQLITE_FULL: return -ENOSPC;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return -EACCES;
    case SQLITE_CANTOPEN: return -ENOENT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return -EBUSY;
    case SQLITE_CONSTRAINT: return -EEXIST;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return -EBADMSG;
    case SQLITE_NOMEM: return -ENOMEM;
    default: return -EIO;
    }
}

static int failed(struct history_db *db, struct error *e) {
    int system = sqlite3_system_errno(db->sqlite); /* says more than "disk I/O error", when there is one */
    bool is_file = (sqlite3_errcode(db->sqlite) & 0xff) == SQLITE_IOERR;
    if (is_file && system) return fail_errno(e, system, "%s", db->path);
    return fail(e, errno_of(sqlite3_extended_errcode(db->sqlite)), "%s: %s", db->path, sqlite3_errmsg(db->sqlite));
}

static int script(struct history_db *db, const char *text, struct error *e) {
    return sqlite3_exec(db->sqlite, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(db, e);
}

/* A statement, prepared at its first use and ready for values. */
static int statement(struct history_db *db, enum statement id, sqlite3_stmt **ret, struct error *e) {
    sqlite3_stmt **kept = &db->statements[id];
    if (!*kept && sqlite3_prepare_v3(db->sqlite, texts[id], -1, SQLITE_PREPARE_PERSISTENT, kept, NULL) != SQLITE_OK)
        return failed(db, e);
    *ret = *kept;
    return 0;
}

/* The next row: 1, or 0 at the end, when the statement is ready for the next time. */
static int next(struct history_db *db, sqlite3_stmt *q, struct error *e) {
    int code = sqlite3_step(q);
    if (code == SQLITE_ROW) return 1;
    int r = code == SQLITE_DONE ? 0 : failed(db, e);
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
    return r;
}

static void finish(sqlite3_stmt *q) {
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
}

/* Ints, doubles (by pointer, as 'd'), texts and blobs in order: enough for every statement here. */
struct value {
    char type; /* i, d, t, b; n: null */
    int64_t i;
    double d;
    const void *p;
    size_t len;
};
#define I(x) ((struct value){.type = 'i', .i = (x)})
#define D(x) ((struct value){.type = 'd', .d = (x)})
#define T(x) ((struct value){.type = (x) ? 't' : 'n', .p = (x)})
#define B(x, n) ((struct value){.type = 'b', .p = (x), .len = (n)})
#define VALUES(...)                                                                                                    \
    (const struct value[]){__VA_ARGS__}, sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value)

static int bind(struct history_db *db, sqlite3_stmt *q, const struct value *v, size_t n, struct error *e) {
    for (size_t i = 0; i < n; i++) {
        int at = (int)i + 1, code = SQLITE_OK;
        switch (v[i].type) {
        case 'i': code = sqlite3_bind_int64(q, at, v[i].i); break;
        case 'd': code = sqlite3_bind_double(q, at, v[i].d); break;
        case 't': code = sqlite3_bind_text(q, at, v[i].p, -1, SQLITE_STATIC); break;
        case 'b': code = sqlite3_bind_blob64(q, at, v[i].len ? v[i].p : "", v[i].len, SQLITE_STATIC); break;
        default: break;
        }
        if (code != SQLITE_OK) return failed(db, e);
    }
    return 0;
}

static int ask(struct history_db *db, enum statement id, const struct value *v, size_t n, sqlite3_stmt **ret,
               struct error *e) {
    int r = statement(db, id, ret, e);
    return r < 0 ? r : bind(db, *ret, v, n, e);
}

static int run(struct history_db *db, enum statement id, const struct value *v, size_t n, struct error *e) {
    sqlite3_stmt *q = NULL;
    int r = ask(db, id, v, n, &q, e);
    if (r >= 0) r = next(db, q, e);
    if (r > 0) finish(q);
    return r < 0 ? r : 0;
}

static int64_t column_of_pragma(struct history_db *db, const char *text) {
    sqlite3_stmt *q = NULL;
    int64_t v = -1;
    if (sqlite3_prepare_v2(db->sqlite, text, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        v = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return v;
}

/* The version of the file: 0 when it is empty. Refuses what is not ours. */
static int schema_version(struct history_db *db, struct error *e) {
    int64_t tables = column_of_pragma(db, "SELECT count(*) FROM sqlite_schema");
    if (tables < 0) return failed(db, e);
    if (tables == 0) return 0;
    int64_t version = column_of_pragma(db, texts[Q_LOOK]);
    if (column_of_pragma(db, "PRAGMA application_id") != atoll(APPLICATION_ID) || version < 1)
        return fail(e, -EBADMSG, "%s: is not a history of gpumgr", db->path);
    if (version > HISTORY_SCHEMA)
        return fail(e, -EPROTO, "%s: was written by a newer gpumgr (version %lld of the file, this one knows %d)",
                    db->path, (long long)version, HISTORY_SCHEMA);
    return (int)version;
}

/* Each step with its version in a transaction of its own. */
static int schema_bring(struct history_db *db, struct error *e) {
    int version = schema_version(db, e);
    if (version < 0) return version;
    int r = version ? 0 : script(db, "PRAGMA page_size = 2048; PRAGMA auto_vacuum = INCREMENTAL", e);
    if (r >= 0)
        r = script(db,
                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA "
                   "journal_size_limit = 4194304",
                   e);
    for (; version < HISTORY_SCHEMA && r >= 0; version++) {
        char set[160];
        sqlite3_snprintf(sizeof set, set,
                         "PRAGMA application_id = " APPLICATION_ID
                         "; INSERT INTO meta VALUES ('version', %d) ON CONFLICT (key) DO UPDATE SET value = %d",
                         version + 1, version + 1);
        r = db_begin(db, e);
        if (r >= 0) r = script(db, steps[version], e);
        if (r >= 0) r = script(db, set, e);
        if (r >= 0) r = db_commit(db, e);
        if (r < 0) db_rollback(db);
    }
    return r;
}

/* Made here and not by SQLite, so that it is nobody else's from its first moment on; the WAL takes over its mode. The lock
 * lies beside: SQLite's own would go when any descriptor of the file is closed. */
static int make_file(struct history_db *db, struct error *e) {
    char lock[sizeof db->path + 8];
    struct stat st;
    AUTO(fd_done) int fd = open(db->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return fail_errno(e, errno, "%s", db->path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) return fail(e, -EINVAL, "%s: is not a file", db->path);
    sqlite3_snprintf(sizeof lock, lock, "%s-lock", db->path);
    db->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (db->lock_fd < 0) return fail_errno(e, errno, "%s", lock);
    if (flock(db->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? fail(e, -EBUSY, "%s: another server has it open", db->path)
                                    : fail_errno(e, errno, "%s", lock);
    return 0;
}

static int open_file(struct history_db *db, bool is_writer, struct error *e) {
    int flags = (is_writer ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX;
    int r = is_writer ? make_file(db, e) : 0;
    if (r < 0) return r;
    if (sqlite3_open_v2(db->path, &db->sqlite, flags, NULL) != SQLITE_OK)
        return db->sqlite ? failed(db, e) : fail(e, -ENOMEM, "%s: out of memory", db->path);
    sqlite3_busy_timeout(db->sqlite, BUSY_MS);
    sqlite3_limit(db->sqlite, SQLITE_LIMIT_LENGTH, BLOB_MAX);
    sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    r = script(db, "PRAGMA cache_size = -1024", e);
    return r < 0 || !is_writer ? r : schema_bring(db, e);
}

int db_open(const char *path, bool is_writer, struct history_db **ret, struct error *e) {
    if (strlen(path) >= sizeof((struct history_db *)0)->path)
        return fail(e, -ENAMETOOLONG, "%.60s...: too long a path", path);
    struct history_db *db = calloc(1, sizeof *db);
    if (!db) abort();
    db->lock_fd = -1;
    memcpy(db->path, path, strlen(path) + 1);
    int r = open_file(db, is_writer, e);
    if (r < 0) {
        db_close(db);
        return r;
    }
    *ret = db;
    return 0;
}

void db_close(struct history_db *db) {
    if (!db) return;
    db_blob_close(db);
    for (int i = 0; i < STATEMENT_COUNT; i++) sqlite3_finalize(db->statements[i]);
    sqlite3_close(db->sqlite);
    buf_done(&db->piece);
    fd_done(&db->lock_fd);
    free(db);
}

int db_begin(struct history_db *db, struct error *e) { return run(db, Q_BEGIN, NULL, 0, e); }
int db_commit(struct history_db *db, struct error *e) { return run(db, Q_COMMIT, NULL, 0, e); }

int db_snapshot(struct history_db *db, struct error *e) {
    int r = run(db, Q_SNAPSHOT, NULL, 0, e);
    return r < 0 ? r : run(db, Q_LOOK, NULL, 0, e); /* BEGIN alone takes no snapshot, the first look does */
}

void db_rollback(struct history_db *db) {
    db_blob_close(db);
    db->has_task_index = false; /* it may have been made in what is undone */
    if (!sqlite3_get_autocommit(db->sqlite)) sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
}

int db_sync(struct history_db *db, struct error *e) {
    sqlite3_file *wal = NULL;
    if (sqlite3_file_control(db->sqlite, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK) return failed(db, e);
    if (!wal || !wal->pMethods) return 0; /* nothing was written yet */
    int code = wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    return code == SQLITE_OK ? 0 : fail(e, -EIO, "%s: its WAL could not be synced", db->path);
}

int db_checkpoint(struct history_db *db, struct error *e) {
    int code = sqlite3_wal_checkpoint_v2(db->sqlite, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return code == SQLITE_OK || code == SQLITE_BUSY ? 0 : failed(db, e);
}

int db_vacuum(struct history_db *db, int n, struct error *e) {
    char text[60];
    sqlite3_snprintf(sizeof text, text, "PRAGMA incremental_vacuum(%d)", n);
    return script(db, text, e);
}

static int one_number(struct history_db *db, enum statement id, int64_t *ret, struct error *e) {
    sqlite3_stmt *q = NULL;
    int r = ask(db, id, NULL, 0, &q, e);
    if (r >= 0) r = next(db, q, e);
    if (r <= 0) return r;
    *ret = sqlite3_column_int64(q, 0);
    finish(q);
    return 0;
}

int db_pages(struct history_db *db, int64_t *ret_free, int64_t *ret_all, struct error *e) {
    int r = one_number(db, Q_FREE_PAGES, ret_free, e);
    return r < 0 ? r : one_number(db, Q_ALL_PAGES, ret_all, e);
}

int db_names(struct history_db *db, db_name_fn each, void *ctx, struct error *e) {
    sqlite3_stmt *q = NULL;
    int r = ask(db, Q_NAMES, NULL, 0, &q, e);
    while (r >= 0 && (r = next(db, q, e)) > 0) {
        const char *text = (const char *)sqlite3_column_text(q, 2);
        r = each(ctx, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), text ? text : "",
                 sqlite3_column_double(q, 3), e);
        if (r < 0) finish(q);
    }
    return r;
}

int db_name_put(struct history_db *db, int64_t id, int64_t subject, const char *text, double scale, struct error *e) {
    return run(db, Q_NAME_PUT, VALUES(I(id), I(subject), T(text), D(scale)), e);
}

int db_flushes(struct history_db *db, db_flush_fn each, void *ctx, struct error *e) {
    sqlite3_stmt *q = NULL;
    int r = ask(db, Q_FLUSHES, NULL, 0, &q, e);
    while (r >= 0 && (r = next(db, q, e)) > 0) {
        const void *marker = sqlite3_column_blob(q, 1), *data = sqlite3_column_blob(q, 2);
        r = each(ctx, sqlite3_column_int64(q, 0), marker, (size_t)sqlite3_column_bytes(q, 1), data,
                 (size_t)sqlite3_column_bytes(q, 2), e);
        if (r < 0) finish(q);
    }
    return r;
}

int db_flush_put(struct history_db *db, int64_t id, const void *marker, size_t marker_len, const struct buf *data,
                 struct error *e) {
    return run(db, Q_FLUSH_PUT, VALUES(I(id), B(marker, marker_len), B(data->s, data->len)), e);
}

int db_flush_settle(struct history_db *db, int64_t until_id, const void *marker, size_t marker_len, struct error *e) {
    int r = run(db, Q_MARKER_PUT, VALUES(B(marker, marker_len)), e);
    return r < 0 ? r : run(db, Q_FLUSH_DELETE, VALUES(I(until_id)), e);
}

/* The blob of a one-row answer; nothing when there is no row. */
static int one_blob(struct history_db *db, sqlite3_stmt *q, struct buf *ret, struct error *e) {
    int r = next(db, q, e);
    if (r <= 0) return r;
    const void *bytes = sqlite3_column_blob(q, 0);
    buf_add(ret, bytes, (size_t)sqlite3_column_bytes(q, 0));
    finish(q);
    return 1;
}

int db_marker(struct history_db *db, struct buf *ret, struct error *e) {
    sqlite3_stmt *q = NULL;
    int r = ask(db, Q_MARKER, NULL, 0, &q, e);
    return r < 0 ? r : one_blob(db, q, ret, e);
}

int db_block_put(struct history_db *db, const struct db_block *b, const struct buf *data, struct error *e) {
    return run(db, Q_BLOCK_PUT, VALUES(I(b->id), I(b->from_ms), I(b->until_ms), B(data->s, data->len)), e);
}

int db_block_delete(struct history_db *db, int64_t id, struct error *e) {
    return run(db, Q_BLOCK_DELETE, VALUES(I(id)), e);
}

int db_blocks(struct history_db *db, int64_t first, int64_t last, struct db_block *ret, size_t room, struct error *e) {
    sqlite3_stmt *q = NULL;
    int r = ask(db, Q_BLOCKS, VALUES(I(first), I(last), I((int64_t)room)), &q, e), n = 0;
    while (r >= 0 && (r = next(db, q, e)) > 0)
        ret[n++] =
            (struct db_block){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 2)};
    return r < 0 ? r : n;
}

int db_block_last(struct history_db *db, int64_t first, int64_t last, struct db_block *ret, struct error *e) {
    sqlite3_stmt *q = NULL;
    int r = ask(db, Q_BLOCK_LAST, VALUES(I(first), I(last)), &q, e);
    if (r >= 0) r = next(db, q, e);
    if (r <= 0) return r;
    *ret = (struct db_block){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 2)};
    finish(q);
    return 1;
}

int db_block_data(struct history_db *db, int64_t id, struct buf *ret, struct error *e) {
    sqlite3_stmt *q = NULL;
    int r = ask(db, Q_BLOCK_DATA, VALUES(I(id)), &q, e);
    if (r >= 0) r = one_blob(db, q, ret, e);
    return r == 0 ? fail(e, -ENOENT, "%s: block %llx is gone", db->path, (unsigned long long)id) : r;
}

int db_blob_open(struct history_db *db, int64_t id, size_t *ret_len, struct error *e) {
    int code = db->blob ? sqlite3_blob_reopen(db->blob, id)
                        : sqlite3_blob_open(db->sqlite, "main", "block", "data", id, 0, &db->blob);
    if (code != SQLITE_OK) {
        int r = failed(db, e);
        db_blob_close(db);
        return r;
    }
    *ret_len = (size_t)sqlite3_blob_bytes(db->blob);
    return 0;
}

int db_blob_read(void *ctx, size_t offset, size_t len, const uint8_t **ret, struct error *e) {
    struct history_db *db = ctx;
    buf_clear(&db->piece);
    buf_reserve(&db->piece, len);
    if (sqlite3_blob_read(db->blob, db->piece.s, (int)len, (int)offset) != SQLITE_OK) return failed(db, e);
    *ret = (const uint8_t *)db->piece.s;
    return 0;
}

void db_blob_close(struct history_db *db) {
    sqlite3_blob_close(db->blob);
    db->blob = NULL;
}

int db_event_put(struct history_db *db, const struct history_event *event, int64_t subject, struct error *e) {
    sqlite3_stmt *q = NULL;
    int64_t first = event->id & ~(int64_t)65535, id = event->id;
    int r = ask(db, Q_EVENT_NEXT, VALUES(I(first)), &q, e);
    if (r >= 0) r = next(db, q, e);
    if (r < 0) return r;
    if (r > 0) {
        if (sqlite3_column_type(q, 0) != SQLITE_NULL && sqlite3_column_int64(q, 0) >= id)
            id = sqlite3_column_int64(q, 0) + 1;
        finish(q);
    }
    if (id > (first | 65535)) return 0; /* 65536 events in one millisecond: the rest says nothing new */
    return run(
        db, Q_EVENT_PUT,
        VALUES(I(id), I(subject), I(event->severity), I(event->code), I(event->pid), T(event->kind), T(event->text)),
        e);
}

int db_event_delete(struct history_db *db, int64_t before_id, int most, struct error *e) {
    int r = run(db, Q_EVENT_DELETE, VALUES(I(before_id), I(most)), e);
    return r < 0 ? r : sqlite3_changes(db->sqlite);
}

static void copy_text(sqlite3_stmt *q, int column, char *ret, size_t room) {
    const char *text = (const char *)sqlite3_column_text(q, column);
    sqlite3_snprintf((int)room, ret, "%s", text ? text : "");
}

int db_events(struct history_db *db, const struct history_events_ask *ask_, int64_t first_id, int64_t last_id,
              int64_t subject, db_event_fn each, void *ctx, struct error *e) {
    sqlite3_stmt *q = NULL;
    struct value whose = subject ? I(subject) : (struct value){.type = 'n'};
    int n = 0,
        r = ask(db, Q_EVENTS,
                VALUES(I(first_id), I(last_id), I(ask_->severity), whose, T(ask_->kind), I((int64_t)ask_->limit)), &q,
                e);
    while (r >= 0 && (r = next(db, q, e)) > 0) {
        struct history_event event = {.id = sqlite3_column_int64(q, 0),
                                      .severity = sqlite3_column_int(q, 2),
                                      .code = sqlite3_column_int(q, 3),
                                      .pid = sqlite3_column_int(q, 4)};
        event.at_ms = event.id >> 16;
        copy_text(q, 5, event.kind, sizeof event.kind);
        copy_text(q, 6, event.text, sizeof event.text);
        r = each(ctx, &event, sqlite3_column_int64(q, 1), e);
        if (r < 0) finish(q);
        n++;
    }
    return r < 0 ? r : n;
}

/* ---- tasks and containers ---- */

int db_task_put(struct history_db *db, int64_t row, const struct history_task *t, struct error *e) {
    int r = db->has_task_index ? 0 : script(db, task_index, e);
    if (r < 0) return r;
    db->has_task_index = true;
    r = -EEXIST;
    /* Another task with these very twenty bits in this very millisecond: the next row. */
    for (int i = 0; i < 64 && r == -EEXIST; i++, row++)
        r = run(db, Q_TASK_PUT,
                VALUES(I(row), T(t->key), T(t->node), T(t->boot_id), I(t->state), I(t->verdict), T(t->container),
                       T(t->name), T(t->user), T(t->gpus), T(t->body)),
                e);
    return r;
}

int db_tasks_lost(struct history_db *db, const char *node, const char *boot_id, struct error *e) {
    return run(db, Q_TASKS_LOST, VALUES(T(node), T(boot_id)), e);
}

int db_task_delete(struct history_db *db, int64_t before_row, int64_t most_rows, int most, struct error *e) {
    int64_t count = 0;
    int r = run(db, Q_TASK_DELETE, VALUES(I(before_row), I(most)), e);
    if (r < 0 || sqlite3_changes(db->sqlite)) return r < 0 ? r : sqlite3_changes(db->sqlite);
    r = one_number(db, Q_TASK_COUNT, &count, e);
    if (r < 0 || count <= most_rows) return r;
    r = run(db, Q_TASK_DELETE, VALUES(I(INT64_MAX), I(count - most_rows < most ? count - most_rows : most)), e);
    return r < 0 ? r : sqlite3_changes(db->sqlite);
}

int db_container_put(struct history_db *db, const struct history_container *c, struct error *e) {
    return run(db, Q_CONTAINER_PUT, VALUES(T(c->node), T(c->id), T(c->name), I(c->seen_ms), T(c->body)), e);
}

int db_container_delete(struct history_db *db, int64_t before_ms, struct error *e) {
    int r = run(db, Q_CONTAINER_DELETE, VALUES(I(before_ms)), e);
    return r < 0 ? r : sqlite3_changes(db->sqlite);
}

static int documents(struct history_db *db, sqlite3_stmt *q, db_document_fn each, void *ctx, struct error *e) {
    int r, n = 0;
    while ((r = next(db, q, e)) > 0) {
        const char *key = (const char *)sqlite3_column_text(q, 1), *body = (const char *)sqlite3_column_text(q, 2);
        r = each(ctx, sqlite3_column_int64(q, 0), key ? key : "", body ? body : "{}", e);
        if (r < 0) {
            finish(q);
            return r;
        }
        n++;
    }
    return r < 0 ? r : n;
}

int db_tasks(struct history_db *db, const struct history_tasks_ask *a, int64_t first, int64_t last, size_t limit,
             db_document_fn each, void *ctx, struct error *e) {
    sqlite3_stmt *q = NULL;
    /* An id of a container is found by an index; a name is used again and again, and looked for row by row. */
    bool is_id = a->container && strlen(a->container) == 64;
    int r = ask(db, is_id ? Q_TASKS_OF : Q_TASKS,
                VALUES(I(first), I(last), I(a->states ? a->states : 0xff), I(a->verdicts ? a->verdicts : 0xff),
                       T(a->container), T(a->gpu), T(a->user), T(a->node), I((int64_t)limit)),
                &q, e);
    return r < 0 ? r : documents(db, q, each, ctx, e);
}

int db_containers(struct history_db *db, const char *id, size_t limit, db_document_fn each, void *ctx,
                  struct error *e) {
    sqlite3_stmt *q = NULL;
    int r = ask(db, Q_CONTAINERS, VALUES(T(id), I((int64_t)limit)), &q, e);
    return r < 0 ? r : documents(db, q, each, ctx, e);
}
