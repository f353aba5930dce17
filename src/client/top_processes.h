/* The table of processes: which there are, in which order, and which of them a filter lets through. Pure; where the
 * rows come from is the matter of top_proc.h (this machine) and top_remote.h (another). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TOP_COMMAND_MAX = 384 };

struct top_process {
    uint32_t pid, kinds;                                 /* enum process_kind bits */
    int gpu;                                             /* index */
    int instance;                                        /* MIG: its GPU instance, else -1 */
    double memory_bytes, sm, cpu, host_bytes, running_s; /* shares as ratios; NaN: not known */
    bool is_here;                                        /* it was found in /proc: uid and start are true */
    uid_t uid;
    uint64_t start_ticks;          /* with the pid it names one process for ever */
    char user[33], container[72];  /* its name, else the first digits of its id */
    char command[TOP_COMMAND_MAX]; /* one line, arguments too */
};

struct top_processes {
    struct top_process *of;
    int count, capacity;
};

void top_processes_done(struct top_processes *p);
void top_processes_clear(struct top_processes *p);

/* A new one of which nothing is known; the pointer holds until the next one. */
struct top_process *top_processes_add(struct top_processes *p);

enum top_sort {
    SORT_GPU,
    SORT_PID,
    SORT_USER,
    SORT_MEMORY,
    SORT_SM,
    SORT_CPU,
    SORT_HOST_MEMORY,
    SORT_TIME,
    SORT_COMMAND,
    SORTS
};
const char *top_sort_word(enum top_sort s); /* for people: "GPU memory" */
const char *top_sort_key(enum top_sort s);  /* for a command line: "memory" */

/* Numbers begin with the largest, texts with a, ids with the least; `reverse` turns that round. Equal ones by GPU and pid. */
void top_processes_sort(struct top_processes *p, enum top_sort by, bool reverse);

/* Words with spaces between them, all of which must be met: gpu:0, user:alice, pid:12, cmd:train, or a bare word that is
 * found in user, command, container or pid. A word with ! in front must not be met. Letters' case does not matter. */
bool top_filter_lets(const char *filter, const struct top_process *p);

/* Leaves only those that the filter lets through. */
void top_processes_filter(struct top_processes *p, const char *filter);

/* "C", "G", "C+G", "M" */
const char *top_kind_word(uint32_t kinds);

/* "4:12", "3:07:12", "2d 04:10"; "-" for NaN. */
void top_time_text(double seconds, char *ret, size_t room);

/* The command without the directory of its program. */
const char *top_command_short(const struct top_process *p);
