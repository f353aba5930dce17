/* What two documents say differently, for people who are about to change one into the other. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/json_tree.h"

/* Appends an item {"key", "from", "to"} to the open list for each member that differs; what is not there is null, and members of
 * objects are told one by one, as "env.A". How many there were. */
size_t json_changes(struct buf *b, const char *before, const struct json_tree *from, const struct json_tree *to);
