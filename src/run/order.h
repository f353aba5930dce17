/* What the node tells a shim to run: everything is decided, the shim asks nobody. It comes in a memory file, since it holds the
 * submitter's environment, which belongs in no file and on no command line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define ORDER_MAX (2u << 20)
#define ORDER_GROUPS 1024
#define ORDER_LOG_LEAST (1u << 20)

/* Texts one behind the other, each with its end. */
struct order_words {
    const char *s;
    size_t len;
    unsigned count;
};

struct order {
    uint32_t uid, gid, umask; /* the job's; log and terminal are his, too */
    bool becomes;             /* the process becomes him: else it stays what we are */
    bool is_pty;
    unsigned groups;
    const uint8_t *group; /* u32 each, little endian */
    int64_t limit_ns;     /* of the run; 0: none */
    int64_t grace_ns;     /* between TERM and KILL */
    uint64_t log_max;     /* bytes */
    const char *cwd;
    const char *cgroup; /* its directory, made already; "": none */
    struct order_words argv, env;
};

void order_encode(const struct order *o, struct buf *b);
/* Points into bytes, which end with a NUL. */
int order_decode(const void *bytes, size_t n, struct order *ret, struct error *e) MUST_CHECK;
uint32_t order_group(const struct order *o, unsigned i);

/* The words as execve wants them, in one piece of memory that the caller frees; NULL: no memory. */
char **order_vector(const struct order_words *w);
