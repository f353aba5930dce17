/* By which keys things were changed: somebody whose answer got lost asks again by the same one, and nothing is changed twice, not
 * even where somebody else changed it in between. On the store thread, within the transaction of the change. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "server/state_sql.h"

enum edit_kind { EDIT_OF_REPEAT, EDIT_OF_RESERVATION };
enum { EDIT_KEYS_KEPT = 50 }; /* of each thing, the newest */

/* 1: it was changed by this key before; 0: not, or there is no key (""). */
int edit_store_known(struct sql *db, enum edit_kind kind, int64_t parent, const char *ask, struct error *e) MUST_CHECK;
int edit_store_add(struct sql *db, enum edit_kind kind, int64_t parent, const char *ask, struct error *e) MUST_CHECK;
int edit_store_drop(struct sql *db, enum edit_kind kind, int64_t parent, struct error *e) MUST_CHECK;
