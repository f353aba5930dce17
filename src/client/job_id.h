/* Which job: 17, or 17.3 for number 3 of an array. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct job_id {
    int64_t job;
    int64_t element; /* as people see it; -1: none was named */
};

int job_id_parse(const char *word, struct job_id *ret, struct error *e) MUST_CHECK;

enum { JOB_ID_TEXT = 48 };
void job_id_text(const struct job_id *id, char ret[JOB_ID_TEXT]);
