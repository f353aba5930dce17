#include "run/become.h"

#include <errno.h>
#include <grp.h>
#include <unistd.h>

const char *run_become(const struct order *o) {
    static gid_t groups[ORDER_GROUPS];
    if (!o->becomes) return NULL;
    for (unsigned i = 0; i < o->groups; i++) groups[i] = order_group(o, i);
    if (setgroups(o->groups, groups) < 0) return "take the user's groups";
    if (setresgid(o->gid, o->gid, o->gid) < 0) return "take the user's group";
    if (setresuid(o->uid, o->uid, o->uid) < 0) return "become the user";
    if (!o->uid || (setuid(0) < 0 && geteuid() == o->uid)) return NULL;
    errno = EPERM;
    return "become the user for good";
}
