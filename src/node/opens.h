/* When a process opened a GPU's device file. The kernel tells the opener's pid where we may ask (fanotify, which needs
 * CAP_SYS_ADMIN; by file handle, so that nothing is opened on our side: opening a GPU wakes it up), else just that somebody did
 * (inotify): then the next new task of that GPU is taken for him. A container's own device nodes are other files: nobody tells. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OPENS_KEPT 1024
#define OPENS_FILES_MAX 72

struct opens_one {
    int64_t at_ns;
    int32_t pid;   /* 0: not told */
    int32_t minor; /* -1: a file that all GPUs share */
};

struct opens {
    int fd;                    /* to poll; -1: not to be had */
    bool has_pids, is_refused; /* refused: there are files, and this kernel cannot tell who opens them */
    char dir[256];
    int32_t wd[OPENS_FILES_MAX], minor[OPENS_FILES_MAX];
    unsigned files;
    uint32_t head;
    struct opens_one of[OPENS_KEPT]; /* the newest overwrite the oldest */
};

void opens_begin(struct opens *o, const char *dir);
void opens_end(struct opens *o);

/* Marks the files that are there now: at the beginning, and from time to time, for drivers come and go. */
void opens_mark(struct opens *o);
void opens_read(struct opens *o, int64_t now_ns);

/* When pid, found in the list of the GPU with that minor number at start_ns, opened it; 0: not seen. */
int64_t opens_find(struct opens *o, int32_t pid, int32_t minor, int64_t start_ns);
