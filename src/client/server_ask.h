/* Asks this machine's server over its Unix socket, where it knows the caller by his uid. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* method and path of the API; body: JSON, or NULL. An answer that is no success becomes an error with the server's own
 * sentence; that no server runs is -ENOTCONN and one sentence. dir: of the instance, "" for the usual ones. */
int server_ask(const char *dir, const char *method, const char *path, const struct buf *body, struct buf *ret,
               struct error *e) MUST_CHECK;

/* The same, with header lines of the answer (net/http_client.h). */
struct http_wanted;
int server_ask_fields(const char *dir, const char *method, const char *path, const struct buf *body, struct buf *ret,
                      struct http_wanted *wanted, size_t count, struct error *e) MUST_CHECK;

/* The same; made again while the server is being restarted, by a key by which it does nothing twice (Idempotency-Key). For
 * routes that know it. */
int server_ask_once(const char *dir, const char *method, const char *path, const struct buf *body, struct buf *ret,
                    struct error *e) MUST_CHECK;

/* A field of a flat answer. False: it is not there, or longer than room. */
bool server_field(const struct buf *answer, const char *name, char *ret, size_t room);

/* A word as part of a path: percent-encoded. */
void server_path(struct buf *ret, const char *before, const char *word, const char *after);
