/* What makes a job its submitter's: the node notes who he is and what surrounds him, and encrypts that with a key that never
 * leaves the machine, bound to his uid, his name and the job's record. The server stores and grants it; it can neither read
 * it, nor use it for another record, nor put another uid on it. libsodium (XChaCha20-Poly1305) is known here only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/wire_job.h"

#define SEAL_GROUPS 1024
#define SEAL_ACCOUNT "account "

/* Decoded, it points into the plaintext. */
struct seal_context {
    uint32_t uid, gid, umask;
    unsigned groups;
    const uint8_t *group; /* u32 each, little endian */
    const char *user, *cwd;
    const char *origin; /* "socket", or SEAL_ACCOUNT and a name */
    struct job_words environment;
};

/* The account that handed it in; "": somebody on the machine. Several may be one Unix user. */
const char *seal_account(const struct seal_context *c);

/* The key of DIR/node.key, made there at the first start. */
int seal_open_key(const char *dir, struct error *e) MUST_CHECK;

/* Appends the seal to b. */
void seal_make(const struct seal_context *c, const void *record, size_t len, struct buf *b);

/* Anything that was changed since fails: the record, the uid, the name, the seal. plain keeps what *ret points into. */
int seal_break(const struct wire_sealed *s, struct buf *plain, struct seal_context *ret, struct error *e) MUST_CHECK;

/* A word for a name that no other machine and no other instance on this one has for it. */
#define SEAL_MARK 33
void seal_mark(const char *name, char ret[SEAL_MARK]);
