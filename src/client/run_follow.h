/* Waits for a job as if it ran here, whether it was just handed in or long ago: says why it waits, shows what it writes, passes
 * on signals, ends as it ends. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/command.h"
#include "client/job_id.h"

struct run_follow {
    const char *dir;
    struct job_id id;
    bool is_pty, is_array, is_quiet;
    int retries;
    uint32_t place;  /* of the element that id names, from 0 */
    uint64_t offset; /* of the log: what stands before is not shown */
};

/* The exit code: the job's own, 128 + its signal, 130 when it was cancelled with Ctrl-C before it began, 0 when it was left
 * running, JOB_EXIT_NONE (125) where its exit is not known or it never ran. */
int run_follow(const struct command *self, const struct run_follow *wish);
