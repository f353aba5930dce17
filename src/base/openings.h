/* Who opens certain files. The kernel tells the opener's pid where we may ask (fanotify, which needs CAP_SYS_ADMIN and a file
 * system with file handles; by handle, so that nothing is opened on our side), else just that somebody did (inotify): that is
 * decided file by file. One thread's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OPENINGS_HANDLE 32

struct openings_file {
    int64_t tag; /* the caller's */
    int wd;      /* inotify; -1: fanotify has it */
    int type;    /* fanotify: the file's handle, and the file system it is of */
    int32_t fsid[2];
    unsigned bytes;
    unsigned char handle[OPENINGS_HANDLE];
};

struct openings {
    int fd;                  /* to poll; -1: not to be had */
    int by_handle, by_watch; /* fanotify and inotify behind it; -1: not to be had */
    unsigned count, room;
    struct openings_file *of; /* the caller's */
};

void openings_begin(struct openings *o, struct openings_file *room, unsigned most);
void openings_end(struct openings *o);

/* All files are about to be added again: those that are not are gone. */
void openings_renew(struct openings *o);

/* 0: it is followed (the same file again is the same mark, with the new tag); else a negative errno. Without room the one
 * that was added longest ago has no tag any more. */
int openings_add(struct openings *o, const char *path, int64_t tag);

/* pid 0: not told. tag of a file that nobody knows any more: OPENINGS_ANY; so many at once that some were lost: that, too. */
#define OPENINGS_ANY INT64_MIN
typedef void (*openings_fn)(void *ctx, int64_t tag, int32_t pid);

/* o->fd is readable. False: a file is gone, and with it its mark (inotify alone tells). */
bool openings_read(struct openings *o, openings_fn each, void *ctx);
