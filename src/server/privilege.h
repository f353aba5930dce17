/* The server is never root. Started as root it makes its places, gives them to a user of its own, and becomes that user,
 * before it opens a socket or a database. Started as anybody else it stays who it is. Either way no program that it starts
 * can gain anything (no_new_privs). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/instance.h"

struct privilege {
    uid_t uid, owner; /* owner: the instance's */
    gid_t gid;
    bool drops;           /* this process is root and will not be */
    bool is_nameless;     /* an unused number stands in for a user that does not exist */
    char state_dir[220];  /* DIR/server, 0700 */
    char socket_dir[220]; /* DIR/run/server, 0755 */
};

/* Who the server is to be, and its places. user: server.user. When there is no such user, a number of 61184-65519 that
 * nobody has; the ownership of DIR/server keeps it. */
int privilege_prepare(const struct instance *i, const char *user, struct privilege *ret, struct error *e) MUST_CHECK;

/* Becomes that user for good: groups, gid, uid, no_new_privs. Looks whether it worked. */
int privilege_drop(const struct privilege *p, struct error *e) MUST_CHECK;
