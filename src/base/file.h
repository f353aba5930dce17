/* Small files, whole: read with a limit, written so that a crash leaves the old or the new one. And descriptors that
 * close themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

void fd_done(int *fd); /* for AUTO(fd_done) int fd = -1 */

int file_read(const char *path, size_t max_bytes, struct buf *ret, struct error *e) MUST_CHECK;
/* The same of one that is open; path: what it is called in sentences. */
int file_read_fd(int fd, const char *path, size_t max_bytes, struct buf *ret, struct error *e) MUST_CHECK;

/* Writes beside (PATH.new.PID.NUMBER), syncs when asked, renames over. */
int file_write(const char *path, mode_t mode, const void *bytes, size_t n, bool sync, struct error *e) MUST_CHECK;

/* mkdir -p, the last one with the given mode. */
int dir_make(const char *path, mode_t mode, struct error *e) MUST_CHECK;

/* Removes what writers left that were killed before they renamed: NAME.new.PID and NAME.new.PID.NUMBER of no living process. name:
 * NULL for whatever was written there. */
void dir_sweep(const char *path, const char *name);

/* The directory that holds this very executable. */
int dir_of_self(char *ret, size_t room, struct error *e) MUST_CHECK;

/* A descriptor (-1: none) and an errno over a Unix socket that keeps messages apart. fd_send is all system calls: good in a child of a
 * process with threads. fd_receive returns the descriptor, or -1 with why. */
int fd_send(int to, int fd, int errnum) MUST_CHECK;
int fd_receive(int from, int *ret_errnum) MUST_CHECK;
