/* One look at a service: whether its run is well, or whether it could run here at all. These wait, up to the check's timeout and what
 * an engine takes: for threads of their own. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "model/service_spec.h"
#include "model/settings.h"
#include "model/wire_run.h"
#include "node/owners.h"

struct health_target {
    char name[OWNERS_NAME]; /* "17.0.1" */
    struct wire_run_key key;
    bool is_image;
    struct service_spec spec; /* points into words */
    struct buf words;
    pid_t pid; /* of its first process: its environment and its place are those of the command */
    uid_t uid;
    gid_t gid, *group;
    unsigned groups;
    struct settings settings;
};

/* 0: it is well; else a sentence that says what was wrong. */
int health_check(const struct health_target *t, struct error *e) MUST_CHECK;

/* Its image is here; nobody listens at its port, unless it is to take the place of one that may. */
int health_try_spec(const struct settings *s, const struct job_spec *spec, struct error *e) MUST_CHECK;
