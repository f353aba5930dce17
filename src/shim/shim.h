/* What the files of the shim share: one run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/log.h"
#include "run/order.h"
#include "run/record.h"

/* How the process to be reports: nothing but this comes over the pipe, and its end says that it has become the job. */
struct become_report {
    int32_t is_ready, errnum;
    char text[200]; /* what failed */
};

struct become {
    const struct order *order;
    char **argv, **env;
    bool is_in_cgroup;
    int output;   /* standard output and error: a pipe's end, or -1 with a terminal */
    int terminal; /* its own terminal, or -1 */
    int report;   /* says is_ready, or why not */
    int go;       /* one byte: be the job. Its end: the shim is gone, and nothing has run */
};

/* In the child of the fork; does not return. */
_Noreturn void become_job(const struct become *b);
