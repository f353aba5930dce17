#include "server/state_sql.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "server/secrets.h"

enum { BUSY_MS = 5000, KEPT = 80 };

/* Statements are prepared once: their texts are literals, so the address names them. */
struct sql {
    sqlite3 *db;
    char path[256];
    struct {
        const char *text;
        sqlite3_stmt *statement;
    } kept[KEPT];
    int kept_count;
};

struct sql_row {
    sqlite3_stmt *statement;
};

static int errno_of(int code) {
    switch (code & 0xff) {
    case SQLITE_CONSTRAINT: return -EEXIST;
    case SQLITE_FULL: return -ENOSPC;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return -EACCES;
    case SQLITE_CANTOPEN: return -ENOENT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return -EBUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return -EBADMSG;
    case SQLITE_NOMEM: return -ENOMEM;
    default: return -EIO;
    }
}

static int failed(struct sql *db, struct error *e) {
    return fail(e, errno_of(sqlite3_extended_errcode(db->db)), "%s: %s", db->path, sqlite3_errmsg(db->db));
}

int sql_script(struct sql *db, const char *text, struct error *e) {
    return sqlite3_exec(db->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(db, e);
}

/* Made here and not by SQLite, so that it is nobody else's from its first moment on; the WAL takes over its mode. */
static int make_file(const char *path, struct error *e) {
    struct stat st;
    AUTO(fd_done) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) return fail(e, -EINVAL, "%s: is not a file", path);
    if (st.st_uid != geteuid())
        return fail(e, -EPERM, "%s: belongs to uid %u, and this is uid %u", path, (unsigned)st.st_uid,
                    (unsigned)geteuid());
    if (st.st_mode & 077 && fchmod(fd, 0600) < 0) return fail_errno(e, errno, "%s", path);
    return 0;
}

int sql_open(const char *path, struct sql **ret, struct error *e) {
    if (strlen(path) >= sizeof((struct sql *)0)->path) return fail(e, -ENAMETOOLONG, "%s: too long a path", path);
    int r = make_file(path, e);
    if (r < 0) return r;
    struct sql *db = calloc(1, sizeof *db);
    if (!db) abort();
    memcpy(db->path, path, strlen(path) + 1);
    if (sqlite3_open_v2(path, &db->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        r = failed(db, e);
        sql_close(db);
        return r;
    }
    sqlite3_busy_timeout(db->db, BUSY_MS);
    sqlite3_limit(db->db, SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_db_config(db->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    *ret = db;
    return 0;
}

void sql_close(struct sql *db) {
    if (!db) return;
    for (int i = 0; i < db->kept_count; i++) sqlite3_finalize(db->kept[i].statement);
    sqlite3_close(db->db);
    free(db);
}

static int statement_of(struct sql *db, const char *text, sqlite3_stmt **ret, struct error *e) {
    for (int i = 0; i < db->kept_count; i++)
        if (db->kept[i].text == text) {
            *ret = db->kept[i].statement;
            return 0;
        }
    if (db->kept_count == KEPT) { /* the oldest goes: there are fewer texts than places, unless someone builds them */
        sqlite3_finalize(db->kept[0].statement);
        memmove(db->kept, db->kept + 1, (KEPT - 1) * sizeof *db->kept);
        db->kept_count--;
    }
    if (sqlite3_prepare_v3(db->db, text, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) != SQLITE_OK) return failed(db, e);
    db->kept[db->kept_count].text = text;
    db->kept[db->kept_count++].statement = *ret;
    return 0;
}

static int bind(struct sql *db, sqlite3_stmt *q, const char *types, va_list ap, struct error *e) {
    int r = SQLITE_OK;
    for (int at = 1; *types && r == SQLITE_OK; types++, at++) {
        if (*types == 'i') {
            r = sqlite3_bind_int64(q, at, va_arg(ap, int64_t));
        } else if (*types == 's') {
            const char *s = va_arg(ap, const char *);
            r = s ? sqlite3_bind_text(q, at, s, -1, SQLITE_TRANSIENT) : sqlite3_bind_null(q, at);
        } else if (*types == 'd') {
            double v = va_arg(ap, double); /* SQLite keeps no NaN: it is a null there */
            r = sqlite3_bind_double(q, at, v);
        } else if (*types == 'b') {
            const void *blob = va_arg(ap, const void *);
            r = sqlite3_bind_blob64(q, at, blob ? blob : "", va_arg(ap, size_t), SQLITE_STATIC);
        } else if (*types == 'h') {
            r = sqlite3_bind_blob(q, at, va_arg(ap, const uint8_t *), SECRETS_HASH, SQLITE_TRANSIENT);
        } else {
            abort();
        }
    }
    return r == SQLITE_OK ? 0 : failed(db, e);
}

static int walk(struct sql *db, sql_row_fn each, void *ctx, struct error *e, const char *text, const char *types,
                va_list ap) {
    sqlite3_stmt *q;
    int r = statement_of(db, text, &q, e), rows = 0, step = SQLITE_DONE;
    if (r == 0) r = bind(db, q, types, ap, e);
    if (r < 0) return r;
    while (r >= 0 && (step = sqlite3_step(q)) == SQLITE_ROW) {
        rows++;
        if (each) r = each(&(struct sql_row){q}, ctx, e);
    }
    if (r >= 0 && step != SQLITE_DONE) r = failed(db, e);
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
    return r < 0 ? r : rows;
}

int sql_do(struct sql *db, struct error *e, const char *text, const char *types, ...) {
    va_list ap;
    va_start(ap, types);
    int r = walk(db, NULL, NULL, e, text, types, ap);
    va_end(ap);
    return r < 0 ? r : sqlite3_changes(db->db);
}

int64_t sql_last_id(const struct sql *db) { return sqlite3_last_insert_rowid(db->db); }

int sql_each(struct sql *db, sql_row_fn each, void *ctx, struct error *e, const char *text, const char *types, ...) {
    va_list ap;
    va_start(ap, types);
    int r = walk(db, each, ctx, e, text, types, ap);
    va_end(ap);
    return r;
}

static int take_int(const struct sql_row *row, void *ctx, struct error *e) {
    *(int64_t *)ctx = sql_row_int(row, 0);
    return 0;
}

int sql_int(struct sql *db, int64_t *ret, struct error *e, const char *text, const char *types, ...) {
    va_list ap;
    va_start(ap, types);
    int r = walk(db, take_int, ret, e, text, types, ap);
    va_end(ap);
    return r < 0 ? r : r == 0 ? fail(e, -ENOENT, "%s: no such row", db->path) : 0;
}

int64_t sql_row_int(const struct sql_row *row, int column) { return sqlite3_column_int64(row->statement, column); }

const char *sql_row_text(const struct sql_row *row, int column) {
    const char *s = (const char *)sqlite3_column_text(row->statement, column);
    return s ? s : "";
}

double sql_row_real(const struct sql_row *row, int column) {
    return sql_row_is_null(row, column) ? NAN : sqlite3_column_double(row->statement, column);
}

const void *sql_row_blob(const struct sql_row *row, int column, size_t *ret_len) {
    const void *blob = sqlite3_column_blob(row->statement, column);
    *ret_len = (size_t)sqlite3_column_bytes(row->statement, column);
    return blob ? blob : "";
}

bool sql_row_hash(const struct sql_row *row, int column, uint8_t *ret) {
    const void *blob = sqlite3_column_blob(row->statement, column);
    if (!blob || sqlite3_column_bytes(row->statement, column) != SECRETS_HASH) return false;
    memcpy(ret, blob, SECRETS_HASH);
    return true;
}

bool sql_row_is_null(const struct sql_row *row, int column) {
    return sqlite3_column_type(row->statement, column) == SQLITE_NULL;
}
