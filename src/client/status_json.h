/* A view as one line of JSON: for programs, and for the support archive. It walks the catalogue; a metric that is not
 * known now is left out. The inventory is long and does not change: it comes when asked for. */
#pragma once

#include "base/buf.h"
#include "client/view.h"

void status_json(const struct view *v, bool with_inventory, struct buf *b);
