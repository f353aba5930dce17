/* The job, or the element of an array, that somebody names: what the server knows of it, and its place as the node counts. */
#pragma once

#include "client/job_id.h"
#include "client/job_news.h"

struct job_pick {
    struct job_news news;
    uint32_t place; /* of its element, from 0 */
    bool is_pty;
    uint64_t log_bytes;
    bool is_here; /* its machine is this one: our node has it */
};

/* -EINVAL: an array without a number, a number without an array. */
int job_pick(const char *dir, const struct job_id *id, struct job_pick *ret, struct error *e) MUST_CHECK;
