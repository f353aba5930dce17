#include "client/programs.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

int program_find(const char *name, char *ret, size_t room, struct error *e) {
    char self[PATH_MAX];
    int r = dir_of_self(self, sizeof self, e);
    if (r < 0) return r;
    const char *slash = strrchr(name, '/'), *bare = slash ? slash + 1 : name;
    const struct {
        const char *in, *name;
    } places[] = {
        {"",                   name},
        {"../libexec/gpumgr/", name},
        {"../libexec/gpumgr/", bare}
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int n = snprintf(ret, room, "%s/%s%s", self, places[i].in, places[i].name);
        if (n > 0 && (size_t)n < room && access(ret, R_OK) == 0) return 0;
    }
    return fail(e, -ENOENT, "%s: neither beside this program (%s) nor in ../libexec/gpumgr", name, self);
}

int program_self(char *ret, size_t room, struct error *e) {
    ssize_t n = readlink("/proc/self/exe", ret, room - 1);
    if (n <= 0) return fail_errno(e, errno, "/proc/self/exe");
    ret[n] = 0;
    return 0;
}

int program_exec(const char *path, char *const argv[], struct error *e) {
    signal(SIGPIPE, SIG_DFL); /* we ignore it; an ignored signal would stay so in the new program */
    if (strchr(path, '/'))
        execv(path, argv);
    else
        execvp(path, argv);
    return fail_errno(e, errno, "%s", path);
}
