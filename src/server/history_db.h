/* The history file: all of its SQL, and SQLite itself, in history_db.c. One handle a thread; errors say the path.
 *
 *   meta   the version of the schema, the marker once its flush row is gone
 *   name   subjects ("gpu:UUID", id below HISTORY_SERIES_BASE) and the series of each, by name: ids of a catalogue are never
 *          stored
 *   flush  what came since the last blocks were made, a row every few seconds
 *   block  blocks (model/series_block.h). The id is the key: class, subject, window and number within, from the highest bits
 *          down (history_class.h), so that a range of time is a range of ids and needs no index
 *   event  the id is the time in ms and a number below 65536
 *   task, container  documents of the API, by name (history_tasks.h) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/series_block.h"
#include "server/history_tasks.h"

struct history_db;

#define HISTORY_SCHEMA 2 /* the version that this program writes */

/* The writer makes the file and brings its schema up to date. */
int db_open(const char *path, bool is_writer, struct history_db **ret, struct error *e) MUST_CHECK;
void db_close(struct history_db *db);

int db_begin(struct history_db *db, struct error *e) MUST_CHECK;    /* for the writer */
int db_snapshot(struct history_db *db, struct error *e) MUST_CHECK; /* for a reader: from now on it sees one moment */
int db_commit(struct history_db *db, struct error *e) MUST_CHECK;
void db_rollback(struct history_db *db); /* also ends a snapshot; harmless without a transaction */

/* Syncs the WAL: what was committed survives a power cut. */
int db_sync(struct history_db *db, struct error *e) MUST_CHECK;
/* Syncs the WAL and carries it over, as far as no reader needs it. */
int db_checkpoint(struct history_db *db, struct error *e) MUST_CHECK;
/* Gives back up to n pages; how many of how many are free. */
int db_vacuum(struct history_db *db, int n, struct error *e) MUST_CHECK;
int db_pages(struct history_db *db, int64_t *ret_free, int64_t *ret_all, struct error *e) MUST_CHECK;

typedef int (*db_name_fn)(void *ctx, int64_t id, int64_t subject, const char *text, double scale, struct error *e);
int db_names(struct history_db *db, db_name_fn each, void *ctx, struct error *e) MUST_CHECK;
int db_name_put(struct history_db *db, int64_t id, int64_t subject, const char *text, double scale, struct error *e)
    MUST_CHECK;

typedef int (*db_flush_fn)(void *ctx, int64_t id, const void *marker, size_t marker_len, const uint8_t *data,
                           size_t len, struct error *e);
int db_flushes(struct history_db *db, db_flush_fn each, void *ctx, struct error *e) MUST_CHECK;
int db_flush_put(struct history_db *db, int64_t id, const void *marker, size_t marker_len, const struct buf *data,
                 struct error *e) MUST_CHECK;
/* Deletes rows up to this id; their marker is kept in meta. */
int db_flush_settle(struct history_db *db, int64_t until_id, const void *marker, size_t marker_len, struct error *e)
    MUST_CHECK;
int db_marker(struct history_db *db, struct buf *ret, struct error *e) MUST_CHECK; /* of meta */

struct db_block {
    int64_t id, from_ms, until_ms;
};
int db_block_put(struct history_db *db, const struct db_block *b, const struct buf *data, struct error *e) MUST_CHECK;
int db_block_delete(struct history_db *db, int64_t id, struct error *e) MUST_CHECK;
/* Those with first <= id <= last, in order, at most room; how many. */
int db_blocks(struct history_db *db, int64_t first, int64_t last, struct db_block *ret, size_t room, struct error *e)
    MUST_CHECK;
int db_block_last(struct history_db *db, int64_t first, int64_t last, struct db_block *ret, struct error *e)
    MUST_CHECK; /* 1, or 0 when there is none */
int db_block_data(struct history_db *db, int64_t id, struct buf *ret, struct error *e) MUST_CHECK;

/* A block's blob in pieces; a second open moves on, db_blob_close lets go of the snapshot. */
int db_blob_open(struct history_db *db, int64_t id, size_t *ret_len, struct error *e) MUST_CHECK;
int db_blob_read(void *db, size_t offset, size_t len, const uint8_t **ret, struct error *e) MUST_CHECK;
void db_blob_close(struct history_db *db);

/* Events: subject is an id of a name, 0 for none. put takes the next free id after e->id. */
int db_event_put(struct history_db *db, const struct history_event *event, int64_t subject, struct error *e) MUST_CHECK;
int db_event_delete(struct history_db *db, int64_t before_id, int most, struct error *e) MUST_CHECK; /* how many */
typedef int (*db_event_fn)(void *ctx, const struct history_event *event, int64_t subject, struct error *e);
int db_events(struct history_db *db, const struct history_events_ask *ask, int64_t first_id, int64_t last_id,
              int64_t subject, db_event_fn each, void *ctx, struct error *e) MUST_CHECK;

/* Tasks and containers. A task that is there is replaced. delete: how many went; it keeps most_rows at most. */
int db_task_put(struct history_db *db, int64_t row, const struct history_task *t, struct error *e) MUST_CHECK;
int db_tasks_lost(struct history_db *db, const char *node, const char *boot_id, struct error *e) MUST_CHECK;
int db_task_delete(struct history_db *db, int64_t before_row, int64_t most_rows, int most, struct error *e) MUST_CHECK;
int db_container_put(struct history_db *db, const struct history_container *c, struct error *e) MUST_CHECK;
int db_container_delete(struct history_db *db, int64_t before_ms, struct error *e) MUST_CHECK;
typedef int (*db_document_fn)(void *ctx, int64_t row, const char *key, const char *body, struct error *e);
int db_tasks(struct history_db *db, const struct history_tasks_ask *ask, int64_t first, int64_t last, size_t limit,
             db_document_fn each, void *ctx, struct error *e) MUST_CHECK;
int db_containers(struct history_db *db, const char *id, size_t limit, db_document_fn each, void *ctx, struct error *e)
    MUST_CHECK;
