#include "client/surroundings.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"

#define FIRST_PID_NAMESPACE "pid:[4026531836]" /* the kernel's constant number of the first one */
#define CAP_SYS_ADMIN 21

static bool has_capability(int number) {
    AUTO(buf_done) struct buf status = {0};
    struct error e;
    if (file_read("/proc/self/status", 65536, &status, &e) < 0) return false;
    const char *at = strstr(status.s, "\nCapEff:");
    return at && strtoull(at + 8, NULL, 16) >> number & 1;
}

static bool is_first_namespace(void) {
    char link[64];
    ssize_t n = readlink("/proc/self/ns/pid", link, sizeof link - 1);
    if (n < 0) return true;
    link[n] = 0;
    return strcmp(link, FIRST_PID_NAMESPACE) == 0;
}

struct surroundings surroundings_look(void) {
    struct surroundings s = {.sees_all = is_first_namespace(), .may_set = has_capability(CAP_SYS_ADMIN)};
    const char *word = getenv("container"); /* podman, nspawn */
    s.is_container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 || (word && *word);
    return s;
}

size_t surroundings_lacks(const struct surroundings *s, const char *ret[SURROUNDINGS_LACKS_MAX]) {
    size_t n = 0;
    if (s->is_container && !s->may_set)
        ret[n++] = "without --privileged the driver refuses limits: the guard can only observe";
    if (s->is_container && !s->sees_all)
        ret[n++] = "without --pid=host processes on the GPUs have no names, users and commands";
    ret[n] = NULL;
    return n;
}
