/* One running gpumgr: its directory, and the place on tmpfs where its ring and sockets lie (DIR/run, a link when DIR
 * itself is on a disk: a mapped file on a disk can stall its writer). Where DIR is not given, root has
 * /var/lib/gpumgr and a user ~/.local/state/gpumgr; clients look for the user's own instance first, then root's. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct instance {
    char dir[200], run[200];
    uid_t owner;
    bool run_is_tmpfs;
};

/* Where an instance of this process's user lies when no directory is given. */
int instance_default_dir(char *ret, size_t room, struct error *e) MUST_CHECK;

/* For daemons: makes what is missing; refuses a directory of another owner. */
int instance_open(const char *dir, struct instance *ret, struct error *e) MUST_CHECK;

/* For clients: finds one that exists; -ENOENT when there is none. Changes nothing. */
int instance_find(const char *dir, struct instance *ret, struct error *e) MUST_CHECK;

/* Takes the directory for this process; -EBUSY names the pid that has it. The lock goes with the descriptor. */
int instance_lock(const struct instance *i, int *ret_fd, struct error *e) MUST_CHECK;

/* Holds on to a directory whose lock file may have been removed: takes it anew if so. */
int instance_keep(const struct instance *i, int *fd, struct error *e) MUST_CHECK;

/* The pid of the supervisor that holds the directory, or 0. To other users than its owner it is a hint: that pid is
 * alive. Whether the ring breathes (ring_beat_ns) says more. */
pid_t instance_holder(const struct instance *i);

/* A file in the run directory: instance_path(i, "ring.%d", 0). */
void instance_path(const struct instance *i, char *ret, size_t room, const char *fmt, ...) PRINTF(4, 5);
