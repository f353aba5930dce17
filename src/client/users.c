#include "client/users.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { USERS_MAX = 16 };

void users_of(const struct ring_processes *p, char *ret, size_t room) {
    uid_t seen[USERS_MAX];
    size_t count = 0, n = 0;
    ret[0] = 0;
    for (uint32_t i = 0; i < p->count && count < USERS_MAX; i++) {
        char path[32];
        struct stat st;
        bool is_new = true;
        snprintf(path, sizeof path, "/proc/%u", p->of[i].pid);
        if (stat(path, &st) < 0) continue;
        for (size_t k = 0; k < count; k++) is_new &= seen[k] != st.st_uid;
        if (!is_new) continue;
        seen[count++] = st.st_uid;
        const struct passwd *pw = getpwuid(st.st_uid);
        int w = pw ? snprintf(ret + n, room - n, "%s%s", n ? "," : " ", pw->pw_name)
                   : snprintf(ret + n, room - n, "%s%u", n ? "," : " ", (unsigned)st.st_uid);
        if (w < 0 || (size_t)w >= room - n) return;
        n += (size_t)w;
    }
}
