/* What `gpumgr ps` shows: one JSON document of containers and tasks, the server's or made here from the task table. The
 * table on the screen is drawn from the same document, so that both say the same. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/instance.h"
#include "client/output.h"
#include "client/view.h"

/* {"containers":[...],"tasks":[...]} from DIR/run/tasks. all: ended ones, too. */
int ps_local(const struct instance *i, bool all, struct buf *ret, struct error *e) MUST_CHECK;

/* The same from the server. -ENOTCONN: there is none. */
int ps_server(const char *dir, bool all, struct buf *ret, struct error *e) MUST_CHECK;

/* v: the GPUs of this machine, for their numbers; may be empty. */
int ps_table(const struct buf *document, const struct view *v, bool all, const struct screen *screen, struct buf *out,
             struct error *e) MUST_CHECK;
