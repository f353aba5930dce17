/* A job as JSON: what a job file and the API take, and what they show. Every key that a job does not have, and every value
 * that a key cannot have, is named at the beginning of the sentence: "gpus: 2.5 is not a whole number", "env.A: ...",
 * "command[2]: ...". null is as good as leaving a key out. Pure: the caller says what time it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/job.h"

#define JOB_JSON_JOBS_MAX 10000u /* of one document */

/* One object of a job: appends its record. The sentence may also be about the text itself ("line 3: ..."). */
int job_json_record(const char *text, size_t len, int64_t now_ns, struct buf *ret, struct error *e) MUST_CHECK;

/* One job, a list of jobs, or {"jobs": [...]}. Each record is handed over once all of them are known to be good; where one is
 * not, nothing is, and of several the sentence says which ("jobs[3]: gpus: ..."). How many there were. A job of several may wait
 * for another of them by its name, wherever that one stands; in the record that is a distance (model/job_after.h). */
typedef void (*job_json_fn)(void *ctx, const void *record, size_t len);
int job_json_records(const char *text, size_t len, int64_t now_ns, job_json_fn each, void *ctx, struct error *e)
    MUST_CHECK;

/* What everybody may see of a job, as members of an object that is open: name, command, image, cwd, mounts, gpus, scope,
 * memory_bytes, share_bytes, over, priority, finish_by, time_limit_s, retries, after, array, sweep, labels, pty, service. All are
 * always there; what was not asked for is null. Neither env nor notify: they may hold secrets. */
void job_json_members(struct buf *b, const struct job_spec *s);

/* And of element i of a sweep: "values", an object; null for others. */
void job_json_values(struct buf *b, const struct job_spec *s, int64_t i);

/* An object that job_json_record takes back to the same record, with all that is in it. For its owner's eyes. */
void job_json_spec(struct buf *b, const struct job_spec *s);
