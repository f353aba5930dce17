/* The words of history_db.c: the steps of the schema, and every statement. */
#pragma once

/* Steps from one version to the next, the first from an empty file. A step that was ever released is never changed. */
static const char version_1[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;"
    "CREATE TABLE name (id INTEGER PRIMARY KEY, subject INTEGER NOT NULL, text TEXT NOT NULL, scale REAL NOT NULL);"
    "CREATE TABLE flush (id INTEGER PRIMARY KEY, marker BLOB, data BLOB NOT NULL);"
    "CREATE TABLE block (id INTEGER PRIMARY KEY, from_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL, data BLOB NOT "
    "NULL);"
    "CREATE TABLE event (id INTEGER PRIMARY KEY, subject INTEGER NOT NULL, severity INTEGER NOT NULL, code INTEGER NOT "
    "NULL,"
    " pid INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);";
/* Tasks: the id is the time of the start in ms and twenty bits; key is its name for good. Bodies are the API's JSON. */
static const char version_2[] =
    "CREATE TABLE task (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, node TEXT NOT NULL, boot TEXT NOT NULL, "
    "state "
    "INTEGER NOT NULL, verdict INTEGER NOT NULL, container TEXT NOT NULL, name TEXT NOT NULL, user TEXT NOT NULL, gpus "
    "TEXT NOT NULL, body TEXT NOT NULL);"
    "CREATE TABLE container (key TEXT PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL, seen_ms INTEGER NOT NULL, "
    "body TEXT NOT NULL) WITHOUT ROWID;";
/* Made with the first task: they only make queries quick, and a machine without tasks need not have their pages. */
static const char task_index[] =
    "CREATE INDEX IF NOT EXISTS task_container ON task (container, id) WHERE container <> '';"
    "CREATE INDEX IF NOT EXISTS task_open ON task (node) WHERE state < 2;";
static const char *const steps[HISTORY_SCHEMA] = {version_1, version_2};

static const char tasks_text[] =
    "SELECT id, key, body FROM task WHERE id BETWEEN ?1 AND ?2 AND (?3 >> state & 1) AND (?4 >> verdict & 1)"
    " AND (?5 IS NULL OR name = ?5) AND (?6 IS NULL OR instr(gpus, ?6)) AND (?7 IS NULL OR user = ?7)"
    " AND (?8 IS NULL OR node = ?8) ORDER BY id DESC LIMIT ?9";
static const char tasks_of_text[] =
    "SELECT id, key, body FROM task WHERE container = ?5 AND container <> '' AND id BETWEEN ?1 AND ?2"
    " AND (?3 >> state & 1) AND (?4 >> verdict & 1) AND (?6 IS NULL OR instr(gpus, ?6)) AND (?7 IS NULL OR user = ?7)"
    " AND (?8 IS NULL OR node = ?8) ORDER BY id DESC LIMIT ?9";
static const char task_put_text[] =
    "INSERT INTO task VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (key) DO UPDATE SET state = ?5,"
    " verdict = ?6, container = ?7, name = ?8, user = ?9, gpus = ?10, body = ?11";
static const char tasks_lost_text[] =
    "UPDATE task SET state = 2, body = json_set(body, '$.state', 'ended', '$.end_is_exact', json('false'))"
    " WHERE node = ?1 AND boot <> ?2 AND state < 2";
static const char containers_text[] =
    "SELECT seen_ms, key, body FROM container WHERE ?1 IS NULL OR id = ?1 OR name = ?1"
    " OR (length(?1) >= 12 AND substr(id, 1, length(?1)) = ?1) ORDER BY seen_ms DESC LIMIT ?2";

static const char events_text[] =
    "SELECT id, subject, severity, code, pid, kind, text FROM event WHERE id BETWEEN ?1 AND ?2 AND severity >= ?3"
    " AND (?4 IS NULL OR subject = ?4) AND (?5 IS NULL OR kind = ?5) ORDER BY id DESC LIMIT ?6";

#define STATEMENTS                                                                                                     \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                        \
    X(SNAPSHOT, "BEGIN")                                                                                               \
    X(LOOK, "SELECT value FROM meta WHERE key = 'version'")                                                            \
    X(COMMIT, "COMMIT")                                                                                                \
    X(NAMES, "SELECT id, subject, text, scale FROM name ORDER BY id")                                                  \
    X(NAME_PUT, "INSERT INTO name VALUES (?1, ?2, ?3, ?4)")                                                            \
    X(FLUSHES, "SELECT id, marker, data FROM flush ORDER BY id")                                                       \
    X(FLUSH_PUT, "INSERT INTO flush VALUES (?1, ?2, ?3)")                                                              \
    X(FLUSH_DELETE, "DELETE FROM flush WHERE id <= ?1")                                                                \
    X(MARKER_PUT, "INSERT INTO meta VALUES ('marker', ?1) ON CONFLICT (key) DO UPDATE SET value = ?1")                 \
    X(MARKER, "SELECT value FROM meta WHERE key = 'marker'")                                                           \
    X(BLOCK_PUT, "INSERT INTO block VALUES (?1, ?2, ?3, ?4)")                                                          \
    X(BLOCK_DELETE, "DELETE FROM block WHERE id = ?1")                                                                 \
    X(BLOCKS, "SELECT id, from_ms, until_ms FROM block WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3")               \
    X(BLOCK_LAST, "SELECT id, from_ms, until_ms FROM block WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1")       \
    X(BLOCK_DATA, "SELECT data FROM block WHERE id = ?1")                                                              \
    X(EVENT_NEXT, "SELECT max(id) FROM event WHERE id BETWEEN ?1 AND ?1 | 65535")                                      \
    X(EVENT_PUT, "INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                              \
    X(EVENT_DELETE, "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE id < ?1 ORDER BY id LIMIT ?2)")         \
    X(EVENTS, events_text)                                                                                             \
    X(TASK_PUT, task_put_text)                                                                                         \
    X(TASKS, tasks_text)                                                                                               \
    X(TASKS_OF, tasks_of_text)                                                                                         \
    X(TASKS_LOST, tasks_lost_text)                                                                                     \
    X(TASK_COUNT, "SELECT count(*) FROM task")                                                                         \
    X(TASK_DELETE, "DELETE FROM task WHERE id IN (SELECT id FROM task WHERE id < ?1 ORDER BY id LIMIT ?2)")            \
    X(CONTAINER_PUT, "INSERT OR REPLACE INTO container VALUES (?1 || '/' || ?2, ?2, ?3, ?4, ?5)")                      \
    X(CONTAINERS, containers_text)                                                                                     \
    X(CONTAINER_DELETE, "DELETE FROM container WHERE seen_ms < ?1")                                                    \
    X(FREE_PAGES, "PRAGMA freelist_count")                                                                             \
    X(ALL_PAGES, "PRAGMA page_count")
