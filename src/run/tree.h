/* All processes of this machine at one moment, and which of them belong to a run: those below a process that nothing can
 * leave (a subreaper gets the children of whoever ends), those of a session, those that carry the run's mark in their
 * environment. Signals go through a pidfd and the start time that was seen: never to a number that is used again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_process {
    pid_t pid, parent, session;
    uint64_t ticks; /* start time, field 22 of stat */
    char state;
    bool is_ours;
};

struct tree {
    struct tree_process *of;
    size_t count, room;
};

bool tree_scan(struct tree *t);
void tree_done(struct tree *t);

/* Each takes processes in; tree_take_below then takes the children of those, and theirs. */
void tree_take_pid(struct tree *t, pid_t pid, uint64_t ticks);
void tree_take_session(struct tree *t, pid_t session, uint64_t since_ticks);
void tree_take_marked(struct tree *t, const char *mark); /* "KEY=VALUE" in the environment it began with */
void tree_take_children(struct tree *t, pid_t parent);
void tree_take_below(struct tree *t);

/* To all that are taken and alive, but never to ourselves. How many there were. */
unsigned tree_signal(const struct tree *t, int signo);

/* The start time of a process; 0: there is none. */
uint64_t tree_ticks(pid_t pid);
