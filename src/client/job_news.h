/* A job as the server tells it (GET /api/v1/jobs/ID), and a thread that asks for it again and again, so that whoever waits for
 * a job can attend to keys and signals however long the server takes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json_tree.h"

struct job_news {
    char state[24], user[64], name[128];
    bool is_over, is_running; /* running: it has a process, or is about to */
    int place;                /* in the queue, from 1; 0: not known */
    int64_t starts_ns;        /* wall clock; 0: not known */
    char why[248], sooner[200];
    char gpus[96]; /* "0,3" */
    char node[64];
    bool has_exit;
    int code, signal;
    int retries, attempt;
    unsigned elements, done, failed, running; /* of an array; elements 1 otherwise */
    char text[248], reason[160], insight[248];
    int64_t started_ns, ended_ns; /* 0: not yet */
    char stage[24];               /* where it stands, as a word; "": the server has none to wait for */
};

/* From the answer's document. element: a number of an array, whose last run it is then about; -1: the job. False: it is
 * none. */
bool job_news_read(const struct json_tree *root, int64_t element, struct job_news *ret);

/* One question. -ENOENT: there is no such job. wait_s above 0: the answer comes when the job has left the stage that *ret has,
 * or after so long (at most JOB_WAIT_MOST_S); where it has none, at once. */
enum { JOB_WAIT_MOST_S = 15 };
int job_news_ask(const char *dir, int64_t job, int64_t element, int wait_s, struct job_news *ret, struct error *e)
    MUST_CHECK;

/* What its end is to a shell: the job's own exit code, 128 + signal, JOB_EXIT_NONE where it has none. */
enum { JOB_EXIT_NONE = 125 };
int job_news_exit(const struct job_news *n);

/* ---- again and again ---- */

struct job_watch;

/* Its descriptor is readable whenever there is something new: at once when the job moves on, and at least every_s, since
 * estimates move with the time. */
int job_watch_new(const char *dir, int64_t job, int64_t element, int every_s, struct job_watch **ret, struct error *e)
    MUST_CHECK;
void job_watch_free(struct job_watch *w); /* accepts NULL */
int job_watch_fd(const struct job_watch *w);
void job_watch_now(struct job_watch *w); /* something happened: asks at once */

/* 1: *ret is what was told last; 0: nothing new; negative: the last question failed, and e says how. -ENOTCONN: no server
 * is there now. */
int job_watch_take(struct job_watch *w, struct job_news *ret, struct error *e) MUST_CHECK;
