/* Names of the jobs of one document, for those that wait for another of it. Pure. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/json_tree.h"
#include "model/job_after.h"

struct job_names {
    struct job_name *of; /* by name; those that were given one */
    size_t count;
};
void job_names_make(const struct json_tree *list, struct job_names *ret);
void job_names_done(struct job_names *n);

/* Whom the job at place `at` means by this text: a number, or another job of the document by its name, as a distance; both with or
 * without ":any". names NULL: there is no other. The sentence begins with the key. */
int job_names_after(const struct job_names *names, size_t at, const char *text, struct job_after *ret, struct error *e)
    MUST_CHECK;
