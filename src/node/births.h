/* Containers that are about to run, whoever makes them: the directory of a container's cgroup is made before its first process,
 * and the kernel tells of it (inotify). So Docker, Podman, containerd and Kubernetes need not say anything, and one that is
 * stopped or slow hides nothing. Only that a container comes is learned here, not which. */
#pragma once

#include <stdbool.h>

#define BIRTHS_DIRS_MAX 256

struct births {
    int fd; /* -1: the kernel does not tell */
    unsigned count;
    struct births_dir {
        int wd;
        unsigned depth;
        char path[224];
    } * dirs;
};

/* root: "/sys/fs/cgroup", or a test's. */
void births_open(struct births *b, const char *root);
void births_close(struct births *b);

/* b->fd is readable. True: a container is about to run. */
bool births_read(struct births *b);

/* A name with 64 hexadecimal digits: a container's cgroup. */
bool births_is_container(const char *name);
