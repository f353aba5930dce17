/* What is certain about a run: the file `state` in its directory, entries of one disk sector each, appended and synced, each
 * with a checksum. One that is torn or foreign counts as not written. The file has its full size from the start, so that
 * an entry needs no new block: a full disk cannot take the exit of a job.
 *
 * Whoever may append holds a POSIX lock on the file: the shim as long as it lives, the node only where no shim does. The
 * kernel says who has it, so a shim is found again without trusting a pid.
 *
 *   nothing, INTENT   it never ran: the process to be ends when its shim does. It may be started. (INTENT is for people; nothing
 *                     hangs on it, and it is not waited for)
 *   STARTED           it ran, or was about to: never again
 *   STOPPING          it was told to end, and why
 *   EXIT              how it ended; the first one counts. has_exit 0: it never ran, or nobody knows
 *   DONE              nothing of it is left, and what all of it used
 *   FIGURES           what it did with its GPUs
 *   STORED            the server keeps the end */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define RECORD_BYTES 512
#define RECORD_SLOTS 16
#define RECORD_TEXT 248

enum record_kind {
    RECORD_NONE,
    RECORD_INTENT,
    RECORD_STARTED,
    RECORD_STOPPING,
    RECORD_EXIT,
    RECORD_DONE,
    RECORD_FIGURES,
    RECORD_STORED,
    RECORD_KINDS
};

/* As it lies in the file, which stays on the machine that wrote it. */
struct record {
    uint32_t magic;
    uint8_t kind, reason, has_exit, zero;
    int32_t pid, shim_pid;
    uint64_t ticks, shim_ticks; /* start times, field 22 of /proc/PID/stat */
    int32_t code, signal;
    int64_t real_ns, boot_ns;   /* when it was written */
    int64_t user_us, system_us; /* CPU time: EXIT of the main process and what it waited for, DONE of all */
    uint64_t host_peak_bytes, log_bytes;
    double gpu_seconds, energy_joules, gpu_ratio, cpu_ratio; /* FIGURES */
    uint64_t memory_peak_bytes, memory_total_bytes;
    char boot_id[40];
    char text[RECORD_TEXT];
    uint8_t rest[80];
    uint64_t sum;
};
_Static_assert(sizeof(struct record) == RECORD_BYTES, "an entry is one sector");

/* All of it at once. */
struct record_state {
    bool has[RECORD_KINDS];
    struct record of[RECORD_KINDS]; /* the first of its kind, but of INTENT and FIGURES the last */
    unsigned used;                  /* slots that hold something, torn ones too */
};

/* Pure: of n bytes of a file. */
void record_scan(const void *bytes, size_t n, struct record_state *ret);
void record_seal(struct record *r);
bool record_is_sound(const struct record *r);

/* The file, RECORD_SLOTS entries of zeros, open and not synced. -EEXIST: it is there. */
int record_make(const char *path, int *ret_fd, struct error *e) MUST_CHECK;
/* For reading and writing; returns the descriptor. */
int record_open(const char *path, struct error *e) MUST_CHECK;
int record_read(int fd, struct record_state *ret, struct error *e) MUST_CHECK;

/* -EAGAIN: somebody else has it. It goes with this process, or when any descriptor of the file is closed here. */
int record_lock(int fd);
/* The process that has the lock, or 0. */
pid_t record_holder(int fd);

/* Fills in times and checksum, writes and syncs. Only with the lock. */
int record_append(int fd, struct record *r, bool sync, struct error *e) MUST_CHECK;
