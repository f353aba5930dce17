/* What a job waits for. In a record it is the number of a job that was handed in before ("17"), or, among jobs that are handed in
 * together, how many places away the other one stands: "-2" is two before this one, "+1:any" the next, however it ends. Numbers
 * of one submission follow each other, so a job's own number and a distance are a number: whoever writes the record needs to know
 * none, and nobody has to change it once it is sealed. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/job.h"

struct job_after {
    int64_t job;  /* a number; a distance, never 0 */
    bool is_near; /* it is a distance */
    bool any;     /* however it ends */
};
/* A word of a record; false: it is none. */
bool job_after_read(const char *word, struct job_after *ret);
/* Appended as a word. */
void job_after_put(struct buf *b, const struct job_after *a);
/* What s waits for, by numbers, where its own is `job`: words in b, which was empty and must not grow after that. */
struct job_words job_after_numbers(const struct job_spec *s, int64_t job, struct buf *b);

/* Jobs that are handed in together. Whether each waits for one of them or for a number, and none for itself in a circle; *ret_at is
 * the one that the sentence is about. step (count of them, or NULL): 1 for who waits for none of them, else one more than the
 * last whom it waits for. */
int job_after_check(const struct job_spec *jobs, size_t count, uint32_t *step, size_t *ret_at, struct error *e)
    MUST_CHECK;
