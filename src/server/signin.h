/* The first sign-in: a server that has no accounts makes the administrator `admin` and a link that signs him in once,
 * within a day. The link lies in DIR/server/signin-link (0600) until it is used, and is shown on the terminal where the
 * server has one; it is never in a log. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct server;

/* Every address at which this sign-in link can be opened, one a line, the likeliest first. */
void signin_urls(const struct server *s, const char *secret, struct buf *ret);

/* After the listeners are there and before the loop runs. */
int signin_first(struct server *s, int64_t now_s, struct error *e) MUST_CHECK;

/* Links were used: the file of the first one goes, if that was it. */
void signin_used(struct server *s);
