#include "core/records.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

bool records_are_left(const char *dir) {
    char path[PATH_MAX];
    bool any = false;
    snprintf(path, sizeof path, "%s/guard", dir);
    DIR *d = opendir(path);
    if (!d) return false;
    for (const struct dirent *f = readdir(d); f && !any; f = readdir(d)) /* .new.: a writer that died was at it */
        any = f->d_name[0] != '.' && !strstr(f->d_name, ".new.");
    closedir(d);
    return any;
}
