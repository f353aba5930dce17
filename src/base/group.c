#include "base/group.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>

bool group_has(const char *group, const char *user) {
    char room[16384], more[4096];
    struct group g, *found = NULL;
    struct passwd pw, *who = NULL;
    if (getgrnam_r(group, &g, room, sizeof room, &found) != 0 || !found) return false;
    for (char **m = g.gr_mem; *m; m++)
        if (strcmp(*m, user) == 0) return true;
    return getpwnam_r(user, &pw, more, sizeof more, &who) == 0 && who && who->pw_gid == g.gr_gid;
}
