#include "base/zone_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static const char *zones_dir(void) {
    const char *dir = getenv("TZDIR");
    return dir && *dir == '/' ? dir : "/usr/share/zoneinfo";
}

int zone_file_read(const char *name, size_t max_bytes, struct buf *ret, struct error *e) {
    char path[PATH_MAX];
    const char *dir = zones_dir();
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (access(path, R_OK) < 0) {
        bool has_any = access(dir, X_OK) == 0;
        return fail(e, -ENOENT,
                    has_any ? "there is no zone %.60s on the server" : "%.60s: the server has no time zones (tzdata)",
                    name);
    }
    return file_read(path, max_bytes, ret, e);
}

void zone_file_local(char *ret, size_t room) {
    char link[PATH_MAX];
    const char *name = getenv("TZ");
    ssize_t n;
    if (name && *name == ':') name++;
    if ((!name || !*name || *name == '/') && (n = readlink("/etc/localtime", link, sizeof link - 1)) > 0) {
        link[n] = 0;
        char *behind = strstr(link, "zoneinfo/");
        name = behind ? behind + strlen("zoneinfo/") : NULL;
    }
    snprintf(ret, room, "%s", name && *name && *name != '/' ? name : "UTC");
}
