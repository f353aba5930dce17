/* Which jobs somebody means: by their names and labels. Pure. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/job.h"

struct job_match {
    const char *name;        /* * is anything, ? is one character; NULL: any */
    struct job_words labels; /* "KEY=VALUE", "KEY" for any value; all of them */
};
bool job_match(const struct job_match *m, const struct job_spec *s);

/* Labels with commas between them, in which \, is a comma and \\ a backslash: appended to b as words. */
int job_match_labels(const char *text, struct buf *b, struct error *e) MUST_CHECK;
/* One more of them, the way back: with a comma before it where b has one already. */
void job_match_put(struct buf *b, const char *label);
