/* What somebody asks for who wants a job to stay up: when it is started again, how it is seen to be well, whether it gives its
 * GPUs to others. In a job's record it is a list of words, so that the owner's seal covers it:
 *
 *   restart=always pause=1s pause_most=5m forget=1m give_up=10 within=1h yield=no update=no probe=http port=8000 path=/healthz
 *   status=0 interval=10s timeout=3s grace=1m failures=3, and with probe=command the words of that command
 *
 * All of them, in this order: one meaning, one list of words. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/job.h"

enum service_restart { SERVICE_ALWAYS, SERVICE_ON_FAILURE, SERVICE_NEVER };
enum service_update {
    SERVICE_NEW,
    SERVICE_BESIDE,
    SERVICE_REPLACE
}; /* of one that is there: the old one kept, or ended first */
enum service_probe { SERVICE_UNPROBED, SERVICE_HTTP, SERVICE_TCP, SERVICE_COMMAND };

#define SERVICE_GIVE_UP_MAX 64

struct service_spec {
    enum service_restart restart;
    int64_t pause_ns, pause_most_ns; /* before it is started again; doubles each time */
    int64_t forget_ns;               /* well for so long: earlier failures are forgotten */
    int give_up;                     /* so many restarts within within_ns are the last ones; 0: never */
    int64_t within_ns;
    bool yields;                /* to a job of higher priority that waits for its GPUs */
    enum service_update update; /* what this record is to the service of its name */
    enum service_probe probe;
    int port;         /* HTTP, TCP */
    const char *path; /* HTTP; never NULL */
    int status;       /* HTTP; 0: any from 200 to 399 */
    int64_t interval_ns, timeout_ns, grace_ns;
    int failures;             /* in a row, before it counts as unhealthy */
    struct job_words command; /* COMMAND: run beside it, as its user; exit code 0 is well */
};

/* As it is where nothing is said. */
void service_spec_usual(struct service_spec *s);

/* Appends the words; the spec must have passed service_spec_check. */
void service_spec_write(const struct service_spec *s, struct buf *b);
/* What service_spec_write wrote, and nothing else. *ret points into the words. */
int service_spec_read(const struct job_words *w, struct service_spec *ret, struct error *e) MUST_CHECK;

/* What cannot be meant: the sentence begins with the key, as in "service.health.port: ...". */
int service_spec_check(const struct service_spec *s, struct error *e) MUST_CHECK;
/* The job that carries it: what makes no sense for something that stays up. */
int service_spec_check_job(const struct job_spec *j, struct error *e) MUST_CHECK;

const char *service_restart_name(enum service_restart r);
const char *service_probe_name(enum service_probe p); /* "none", "http", "tcp", "command" */

/* As an object, the one that a job file has under "service". */
void service_spec_json(struct buf *b, const struct service_spec *s);
