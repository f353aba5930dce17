#include "server/unix_names.h"

#include <pwd.h>
#include <stdio.h>

#define REMEMBER_S 60

bool unix_name(struct unix_names *n, uid_t uid, int64_t now_s, char ret[RULES_NAME]) {
    struct passwd pw, *found = NULL;
    char room[4096];
    size_t at = uid % UNIX_NAMES;
    bool is_known =
        n->known[at].uid == uid && now_s < n->known[at].until_s && n->known[at].until_s <= now_s + REMEMBER_S;
    if (!is_known) {
        n->known[at].is_named = getpwuid_r(uid, &pw, room, sizeof room, &found) == 0 && found;
        if (n->known[at].is_named)
            rules_unix_name(pw.pw_name, n->known[at].name);
        else
            snprintf(n->known[at].name, RULES_NAME, "uid-%u", (unsigned)uid);
        n->known[at].uid = uid;
        n->known[at].until_s = now_s + REMEMBER_S;
    }
    snprintf(ret, RULES_NAME, "%s", n->known[at].name);
    return n->known[at].is_named;
}
