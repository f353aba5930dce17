/* SQLite for the state file, known in state_sql.c only: one statement a call, values by a format, rows one by one. Used
 * on the store thread, and before it starts.
 *
 * Formats: i int64_t; d double (NaN: null); s const char * (NULL: null); h const uint8_t * of SECRETS_HASH bytes; b const
 * void * and size_t, which must stay until the call returns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sql; /* an open file */

/* Opens or makes a file (mode 0600): WAL, synced before a commit is reported. */
int sql_open(const char *path, struct sql **ret, struct error *e) MUST_CHECK;
void sql_close(struct sql *db);

/* Several statements without values: schema steps. */
int sql_script(struct sql *db, const char *text, struct error *e) MUST_CHECK;

/* One statement; the number of rows that it changed. -EEXIST: a row like it is there already. */
int sql_do(struct sql *db, struct error *e, const char *text, const char *types, ...) MUST_CHECK;
int64_t sql_last_id(const struct sql *db);

/* Rows: each is called for every one, and may stop the walk with a negative result, which is returned. Else how many. */
struct sql_row;
typedef int (*sql_row_fn)(const struct sql_row *row, void *ctx, struct error *e);
int sql_each(struct sql *db, sql_row_fn each, void *ctx, struct error *e, const char *text, const char *types, ...)
    MUST_CHECK;

/* One number; -ENOENT when there is no row. */
int sql_int(struct sql *db, int64_t *ret, struct error *e, const char *text, const char *types, ...) MUST_CHECK;

/* Columns of a row, from 0. A text is valid until the walk goes on; null is "" or 0. */
int64_t sql_row_int(const struct sql_row *row, int column);
const char *sql_row_text(const struct sql_row *row, int column);
bool sql_row_hash(const struct sql_row *row, int column, uint8_t *ret);           /* false: not SECRETS_HASH bytes */
double sql_row_real(const struct sql_row *row, int column);                       /* null: NaN */
const void *sql_row_blob(const struct sql_row *row, int column, size_t *ret_len); /* as long as a text */
bool sql_row_is_null(const struct sql_row *row, int column);
