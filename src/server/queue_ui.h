/* A job's own UI as it can be reached now, for whoever may control the job. */
#pragma once

#include "model/ui.h"
#include "server/queue.h"

struct queue_ui {
    char node[64], title[JOB_NAME_MAX], owner[64];
    struct wire_run_key key; /* the run that is to be reached */
    struct ui ui;
};

/* element: a number as people see it; -1: the first that runs. -EACCES: it is not his; -EBUSY: it does not run; -EINVAL: it declares no UI. */
int queue_ui(const struct queue *q, int64_t job, int64_t element, const struct queue_who *who, struct queue_ui *ret,
             struct error *e) MUST_CHECK;
