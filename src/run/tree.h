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
    uint64_t ticks;                   /* start time, field 22 of stat */
    uint64_t cpu_ticks, waited_ticks; /* that it used itself; that those used which it waited for */
    uint64_t host_pages;              /* resident */
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

/* What those that are taken use, and have used with all that ended below them. */
struct tree_use {
    unsigned processes;
    double cpu_s;
    uint64_t host_bytes;                /* pages that several share are counted for each */
    uint64_t read_bytes, written_bytes; /* from and to disks; UINT64_MAX: the kernel does not tell us */
};
/* Root is the job's shim: its own time is no part of the job; what it writes is, for that is the job's log. */
void tree_used(const struct tree *t, pid_t root, struct tree_use *ret);

/* The start time of a process; 0: there is none. */
uint64_t tree_ticks(pid_t pid);
