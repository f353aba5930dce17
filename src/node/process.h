/* What the tracker must know of a process at once, from files of /proc that are ready without waiting for its memory map:
 * stat, status, cgroup. Names of users and command lines come later (node/names.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/belonging.h"

struct process {
    uint64_t ticks; /* start time, field 22 */
    char state;     /* 'R', 'S', 'Z' ... */
    char comm[32];
    uint32_t uid;   /* UINT32_MAX: not known */
    int32_t ns_pid; /* in its innermost pid namespace; 0: not known */
    struct belonging whose;
};

/* False: there is none, or it has ended and waits for its parent. Open its pidfd first: what is read after that and is alive
 * then is of that very process. */
bool process_read(const char *proc, int32_t pid, struct process *ret);

/* Whether anybody has that number. */
bool process_has_number(const char *proc, int32_t pid);

/* When it began, by the boot clock, at the latest a tick too early; 0: not known. */
int64_t process_born_ns(const struct process *p);

/* Just enough to tell it from another one of the same number. */
bool process_is_there(const char *proc, int32_t pid, uint64_t ticks);

/* Its parent and its start time; false: there is none. */
bool process_parent(int32_t pid, int32_t *parent, uint64_t *ticks);

/* The terminal it sits at, as the numbers of a device; false: it has none, or is not that process. */
bool process_terminal(int32_t pid, uint64_t ticks, uint32_t *major, uint32_t *minor);

/* The parsers, for tests. */
bool process_parse_stat(const char *text, struct process *ret);
void process_parse_status(const char *text, struct process *ret);
