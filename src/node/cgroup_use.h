/* What a container has used, from its cgroups: all that ever ran in it, whoever waited for whom. Both versions of cgroups, and both at
 * once. What a kernel does not count there is left to whoever adds up processes (run/tree.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_use {
    double cpu_s;                       /* NaN: not known */
    uint64_t read_bytes, written_bytes; /* UINT64_MAX: not known */
};

/* Of the container `id` whose process this is. A cgroup that does not name the container is somebody else's, too, and not read. */
void cgroup_use(pid_t pid, const char *id, struct cgroup_use *ret);

/* The parsers, for tests. The path of a line of /proc/PID/cgroup that has this controller ("": version 2) and names the container;
 * false: there is none. */
bool cgroup_path(const char *text, const char *controller, const char *id, char *ret, size_t room);
double cgroup_cpu_stat(const char *text);                          /* cpu.stat of version 2 */
void cgroup_io_stat(const char *text, struct cgroup_use *ret);     /* io.stat of version 2 */
void cgroup_blkio_bytes(const char *text, struct cgroup_use *ret); /* blkio.throttle.io_service_bytes */
