/* Whose a process is, from its cgroups: a container, a pod, a Slurm step, a unit, a session. Reads the text of
 * /proc/PID/cgroup (v1, v2 and hybrid) and nothing else; names come later, from whoever knows the id. Pure. */
#pragma once

#include <stdint.h>

enum belonging_kind {
    BELONGS_TO_NONE,
    BELONGS_TO_SESSION, /* somebody's login */
    BELONGS_TO_UNIT,    /* a systemd unit */
    BELONGS_TO_LXC,
    BELONGS_TO_SLURM,
    BELONGS_TO_CONTAINERD,
    BELONGS_TO_CRIO,
    BELONGS_TO_PODMAN,
    BELONGS_TO_DOCKER,
    BELONGS_TO_JOB, /* of our own queue; its id is job.element.attempt. No cgroup says so: node/owners.h does */
    BELONGING_KINDS
};

#define BELONGING_ID_HEX 64

struct belonging {
    enum belonging_kind kind;
    char id[72];       /* 64 hex digits of a container; "4711.0" of a Slurm step; a unit's, session's or LXC's name */
    char pod[40];      /* uid of a Kubernetes pod; "" none */
    int64_t uid;       /* of a user's slice or a Slurm job's user; -1 unknown */
    int64_t slurm_job; /* also when a container runs inside the job; -1 none */
    char slurm_step[16];
};

void belonging_parse(const char *cgroup, struct belonging *ret);

/* "docker", "podman", "slurm", ... */
const char *belonging_kind_name(enum belonging_kind kind);
