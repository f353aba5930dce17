#include "server/state_schema.h"

#include <errno.h>
#include <stdio.h>

#include "base/auto.h"

#define APPLICATION_ID 0x67706d73 /* "gpms": tells our state file from other SQLite files */

/* Times are unix seconds. Ids of sessions and tokens are never used twice: who revokes one means that one. */
static const char *const steps[] = {
    "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, role INTEGER NOT NULL, uid INTEGER UNIQUE,"
    "  password TEXT, is_disabled INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL);"
    "CREATE TABLE links(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE,"
    "  user INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE, created INTEGER NOT NULL,"
    "  expires INTEGER NOT NULL, is_first INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE sessions(id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE,"
    "  user INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE, created INTEGER NOT NULL,"
    "  seen INTEGER NOT NULL, address TEXT NOT NULL, agent TEXT NOT NULL);"
    "CREATE TABLE tokens(id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE,"
    "  user INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE, name TEXT NOT NULL, role INTEGER NOT NULL,"
    "  created INTEGER NOT NULL, expires INTEGER NOT NULL, seen INTEGER NOT NULL, UNIQUE(user, name));"
    "CREATE TABLE groups(name TEXT PRIMARY KEY, label TEXT NOT NULL, members TEXT NOT NULL, changed INTEGER NOT NULL);"
    "CREATE TABLE audit(id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, user TEXT NOT NULL,"
    "  means TEXT NOT NULL, address TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL, status INTEGER NOT NULL);"
    "CREATE INDEX links_user ON links(user);"
    "CREATE INDEX sessions_user ON sessions(user);",

    /* Telling someone. Times of notices are nanoseconds, as model/notice has them. */
    "CREATE TABLE notices(subject TEXT NOT NULL, topic TEXT NOT NULL, code INTEGER NOT NULL, title TEXT NOT NULL,"
    "  text TEXT NOT NULL, severity INTEGER NOT NULL, count INTEGER NOT NULL, silent INTEGER NOT NULL,"
    "  is_open INTEGER NOT NULL, is_owed INTEGER NOT NULL, is_told INTEGER NOT NULL, opened INTEGER NOT NULL,"
    "  told INTEGER NOT NULL, seen INTEGER NOT NULL, PRIMARY KEY(subject, topic, code)) WITHOUT ROWID;"
    "CREATE TABLE outbox(id INTEGER PRIMARY KEY AUTOINCREMENT, way TEXT NOT NULL, made INTEGER NOT NULL,"
    "  tries INTEGER NOT NULL, body TEXT NOT NULL);"
    "CREATE TABLE tell_marks(stream TEXT PRIMARY KEY, mark INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX tell_marks_seen ON tell_marks(seen);",

    /* The machines that belong here. gpus: UUIDs with blanks between them, as they were last told. */
    "CREATE TABLE nodes(name TEXT PRIMARY KEY, seen INTEGER NOT NULL, is_gone INTEGER NOT NULL, gpus TEXT NOT NULL)"
    "  WITHOUT ROWID;",

    /* The queue. Times are nanoseconds. An element of an array has a row in runs from its first grant on, one for each attempt;
     * attempt 0: it was cancelled before. again: another attempt follows. usage: of runs that ended, by the hour they held
     * their GPUs in. */
    "CREATE TABLE jobs(id INTEGER PRIMARY KEY AUTOINCREMENT, submitted INTEGER NOT NULL, uid INTEGER NOT NULL,"
    "  user TEXT NOT NULL, account TEXT NOT NULL, node TEXT NOT NULL, origin INTEGER NOT NULL,"
    "  priority INTEGER NOT NULL, elements INTEGER NOT NULL, at_once INTEGER NOT NULL, is_held INTEGER NOT NULL,"
    "  state INTEGER NOT NULL, is_over INTEGER NOT NULL, ended INTEGER NOT NULL, text TEXT NOT NULL,"
    "  record BLOB NOT NULL, seal BLOB NOT NULL);"
    "CREATE INDEX jobs_open ON jobs(id) WHERE is_over=0;"
    "CREATE INDEX jobs_ended ON jobs(ended) WHERE is_over=1;"
    "CREATE TABLE runs(job INTEGER NOT NULL, element INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    "  state INTEGER NOT NULL, again INTEGER NOT NULL, stop INTEGER NOT NULL, gpus TEXT NOT NULL,"
    "  granted INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, reason INTEGER NOT NULL,"
    "  has_exit INTEGER NOT NULL, code INTEGER NOT NULL, signal INTEGER NOT NULL, gpu_seconds REAL, energy_joules REAL,"
    "  cpu_seconds REAL, gpu_ratio REAL, cpu_ratio REAL, memory_peak INTEGER NOT NULL, memory_total INTEGER NOT NULL,"
    "  host_peak INTEGER NOT NULL, log_bytes INTEGER NOT NULL, text TEXT NOT NULL,"
    "  PRIMARY KEY(job, element, attempt)) WITHOUT ROWID;"
    "CREATE TABLE cordons(uuid TEXT PRIMARY KEY, reason TEXT NOT NULL, who TEXT NOT NULL, since INTEGER NOT NULL)"
    "  WITHOUT ROWID;"
    "CREATE TABLE usage(hour INTEGER NOT NULL, user TEXT NOT NULL, held_s REAL NOT NULL, used_s REAL NOT NULL,"
    "  energy_j REAL NOT NULL, wait_s REAL NOT NULL, runs INTEGER NOT NULL, failed INTEGER NOT NULL,"
    "  PRIMARY KEY(hour, user)) WITHOUT ROWID;",

    /* What made a job: a slot of a repeat, a service (enum queue_parent). */
    "ALTER TABLE jobs ADD COLUMN parent_kind INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN parent INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX jobs_parent ON jobs(parent_kind, parent, id) WHERE parent_kind<>0;",

    /* What the caller asked for it by (queue_submit.key), on the first of the jobs that came together; asked: how many. */
    "ALTER TABLE jobs ADD COLUMN ask TEXT;"
    "ALTER TABLE jobs ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;"
    "CREATE UNIQUE INDEX jobs_ask ON jobs(ask) WHERE ask IS NOT NULL;",

    /* Messages to those whom jobs name, until they are taken. */
    "CREATE TABLE letters(id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL, word INTEGER NOT NULL,"
    "  made INTEGER NOT NULL, tries INTEGER NOT NULL, way TEXT NOT NULL, receiver TEXT NOT NULL, user TEXT NOT NULL,"
    "  node TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL);",

    /* GPUs that an operator put into service, and when: what was wrong with them before is over. */
    "CREATE TABLE sound(uuid TEXT PRIMARY KEY, since INTEGER NOT NULL, who TEXT NOT NULL) WITHOUT ROWID;",

    /* Reservations. A number is never given twice: people say it to each other. */
    "CREATE TABLE reservations(id INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, grp TEXT NOT NULL,"
    "  node TEXT NOT NULL, gpus TEXT NOT NULL, every TEXT NOT NULL, zone TEXT NOT NULL, note TEXT NOT NULL,"
    "  made_by TEXT NOT NULL, made INTEGER NOT NULL, begins INTEGER NOT NULL, length INTEGER NOT NULL,"
    "  until INTEGER NOT NULL);",

    /* Jobs that come again. Times of slots and marks are unix seconds: all up to the mark are decided. A slot that ran is there
     * once, whatever clocks do; fate: enum repeat_fate; state: of its job when that is over. behind: a job that must be over
     * before this one starts. */
    "ALTER TABLE jobs ADD COLUMN behind INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE repeats(id INTEGER PRIMARY KEY AUTOINCREMENT, made INTEGER NOT NULL, uid INTEGER NOT NULL,"
    "  user TEXT NOT NULL, account TEXT NOT NULL, node TEXT NOT NULL, origin INTEGER NOT NULL, zone TEXT NOT NULL,"
    "  is_paused INTEGER NOT NULL, mark INTEGER NOT NULL, record BLOB NOT NULL, seal BLOB NOT NULL, ask TEXT UNIQUE);"
    "CREATE TABLE repeat_slots(id INTEGER PRIMARY KEY AUTOINCREMENT, repeat INTEGER NOT NULL, slot INTEGER NOT NULL,"
    "  fate INTEGER NOT NULL, count INTEGER NOT NULL, job INTEGER NOT NULL, state INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX repeat_slots_once ON repeat_slots(repeat, slot) WHERE fate<>4;"
    "CREATE INDEX repeat_slots_of ON repeat_slots(repeat, id);"
    "CREATE INDEX repeat_slots_job ON repeat_slots(job) WHERE job<>0;",

    /* Services. life: model/service's own bytes. by: who handed a revision in. */
    "CREATE TABLE services(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, uid INTEGER NOT NULL,"
    "  user TEXT NOT NULL, account TEXT NOT NULL, node TEXT NOT NULL, origin INTEGER NOT NULL, made INTEGER NOT NULL,"
    "  life BLOB NOT NULL);"
    "CREATE TABLE service_revisions(service INTEGER NOT NULL, number INTEGER NOT NULL, made INTEGER NOT NULL,"
    "  by TEXT NOT NULL, record BLOB NOT NULL, seal BLOB NOT NULL, PRIMARY KEY(service, number)) WITHOUT ROWID;",

    /* Runs that are over by the GPU that they held, those that were there already too; and what runs used over their time, as
     * model/curve writes it. */
    "CREATE TABLE gpu_runs(job INTEGER NOT NULL, element INTEGER NOT NULL, attempt INTEGER NOT NULL, gpu TEXT NOT NULL,"
    "  granted INTEGER NOT NULL, ended INTEGER NOT NULL, PRIMARY KEY(job, element, attempt, gpu)) WITHOUT ROWID;"
    "CREATE INDEX gpu_runs_granted ON gpu_runs(gpu, granted);"
    "CREATE INDEX gpu_runs_ended ON gpu_runs(gpu, ended, granted);"
    "INSERT INTO gpu_runs WITH RECURSIVE part(job, element, attempt, gpu, rest, granted, ended) AS"
    "  (SELECT job, element, attempt, '', gpus || ',', granted, ended FROM runs WHERE ended>0 AND gpus<>''"
    "   UNION ALL SELECT job, element, attempt, substr(rest, 1, instr(rest, ',') - 1), substr(rest, instr(rest, ',') + "
    "1),"
    "   granted, ended FROM part WHERE rest<>'')"
    "  SELECT job, element, attempt, gpu, granted, ended FROM part WHERE gpu<>'';"
    "CREATE TABLE curves(job INTEGER NOT NULL, element INTEGER NOT NULL, attempt INTEGER NOT NULL, body BLOB NOT NULL,"
    "  PRIMARY KEY(job, element, attempt)) WITHOUT ROWID;",

    /* What a revision of a service, or a reservation, was asked for by, as with jobs. */
    "ALTER TABLE service_revisions ADD COLUMN ask TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE reservations ADD COLUMN ask TEXT NOT NULL DEFAULT '';",

    /* A repeat that was changed: its times, where they are no longer those of its sealed record, and when that was. And by which
     * keys repeats and reservations were changed, so that nothing is done twice; kind: enum edit_kind. */
    "ALTER TABLE repeats ADD COLUMN times BLOB;"
    "ALTER TABLE repeats ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE edits(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, parent INTEGER NOT NULL, ask TEXT NOT NULL,"
    "  UNIQUE(ask, kind, parent));"
    "CREATE INDEX edits_parent ON edits(kind, parent, id);",
};

int schema_newest(void) { return (int)ARRAY_LEN(steps); }

static int refuse_foreign(struct sql *db, const char *path, int64_t version, struct error *e) {
    int64_t id = 0, tables = 0;
    int r = sql_int(db, &id, e, "PRAGMA application_id", "");
    if (r == 0) r = sql_int(db, &tables, e, "SELECT count(*) FROM sqlite_schema", "");
    if (r < 0) return r;
    if (id == APPLICATION_ID || (id == 0 && tables == 0 && version == 0)) return 0;
    return fail(e, -EINVAL, "%s: is a database, but not gpumgr's state", path);
}

static int step(struct sql *db, int64_t from, struct error *e) {
    char mark[100];
    snprintf(mark, sizeof mark, "PRAGMA user_version=%d; PRAGMA application_id=%d; COMMIT", (int)from + 1,
             APPLICATION_ID);
    int r = sql_script(db, "BEGIN IMMEDIATE", e);
    if (r == 0) r = sql_script(db, steps[from], e);
    if (r == 0) r = sql_script(db, mark, e);
    if (r < 0 && sql_script(db, "ROLLBACK", NULL) < 0) return r;
    return r;
}

int schema_bring(struct sql *db, const char *path, struct error *e) {
    return schema_bring_to(db, path, schema_newest(), e);
}

int schema_bring_to(struct sql *db, const char *path, int to, struct error *e) {
    int64_t version;
    int r = sql_int(db, &version, e, "PRAGMA user_version", "");
    if (r == 0) r = refuse_foreign(db, path, version, e);
    if (r < 0) return r;
    if (version > schema_newest())
        return fail(e, -EINVAL, "%s: was written by a newer gpumgr (its version is %lld, this one knows %d)", path,
                    (long long)version, schema_newest());
    r = sql_script(
        db,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA cell_size_check=ON;"
        "PRAGMA secure_delete=ON; PRAGMA journal_size_limit=4194304; PRAGMA cache_size=-512",
        e);
    for (; r == 0 && version < to; version++) r = step(db, version, e);
    return r;
}
