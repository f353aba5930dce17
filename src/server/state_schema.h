/* The shape of the state file, as steps from one version to the next. A step that was ever released is never changed. */
#pragma once

#include "base/error.h"
#include "server/state_sql.h"

/* Refuses files that are newer or not ours before anything is changed; then brings the file up to date, each step in a
 * transaction of its own. */
int schema_bring(struct sql *db, const char *path, struct error *e) MUST_CHECK;
/* The same up to an older version, as an older gpumgr would have left it: for tests. */
int schema_bring_to(struct sql *db, const char *path, int to, struct error *e) MUST_CHECK;

/* The version that this program writes. */
int schema_newest(void);
