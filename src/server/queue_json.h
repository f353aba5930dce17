/* One writer of a job's JSON, for those in memory and those that only the file has. */
#pragma once

#include "server/queue.h"

struct queue_json_job {
    const struct queue_job_row *row;
    const struct job_spec *spec;
    const struct queue_run_row *run; /* NULL: it never ran */
    int64_t element;                 /* the number that people see; -1: all of it */
    const uint32_t *counts;          /* of its elements by state; NULL: it has one */
    const char *why, *sooner;        /* "": nothing to say */
    int64_t place, starts_ns;        /* 0: not known */
    const char *stage;               /* NULL: it is over for long */
};

/* An object. */
void queue_json_row(struct queue *q, struct buf *b, const struct queue_json_job *j);

/* An object: whose run it is and when it held its GPUs. From any thread. */
void queue_json_brief(struct buf *b, const struct queue_job_row *row, const struct job_spec *spec,
                      const struct queue_run_row *run);
/* The same of those that go on and hold this GPU since before `to`: items of an open list. */
void queue_json_on_gpu(struct queue *q, struct buf *b, const char *uuid, int64_t to_ns);
