/* The port for clients of watchmen (`watchmen.listen`): the same addresses, fields and states, so that scripts which wait for
 * GPUs there can wait here. Its clients are entries of our queue like any job's, free is what we measured to be free, and
 * entries outlive a restart. Belongs to the loop's thread. */
#pragma once

#include "base/error.h"
#include "net/http_server.h"

struct server;
struct watchmen;

/* Before state_start: reads what an earlier server left. *ret is NULL where the port is off. */
int watchmen_new(struct server *s, struct watchmen **ret, struct error *e) MUST_CHECK;
int watchmen_listen(struct watchmen *w, struct error *e) MUST_CHECK; /* accepts NULL */
void watchmen_drain(struct watchmen *w);                             /* accept NULL */
void watchmen_free(struct watchmen *w);
