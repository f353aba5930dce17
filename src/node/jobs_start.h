/* From a grant to a shim: the seal is broken, the environment made, the process started. Shared by jobs*.c and run_image.c alone. */
#pragma once

#include "model/settings.h"
#include "node/runs.h"

struct starting {
    const struct settings *settings;
    const char *settings_path; /* for containers */
    char shim[300];            /* the program */
    char node[300];            /* our own, for containers */
    char cgroup[300];          /* where runs get theirs; "": nowhere */
    int64_t grace_ns;
};

/* Where the programs are, and whether runs can have cgroups. */
int starting_init(struct starting *s, const struct settings *settings, const struct instance *where, struct error *e)
    MUST_CHECK;

/* Starts a shim for a run whose directory is there. A failure is the run's end: the sentence says why. */
int starting_run(const struct starting *s, const struct runs *runs, struct run *run, struct error *e) MUST_CHECK;

/* Starts what removes a run's container, in the place of its shim. */
int starting_end_image(const struct starting *s, const struct runs *runs, struct run *run, struct error *e) MUST_CHECK;

/* What a job finds in its environment by our word, whatever its user says. */
#define STARTING_KEYS 10
extern const char *const starting_keys[STARTING_KEYS];

/* The cgroup of a run; "" where there is none. */
void starting_cgroup(const struct starting *s, const struct run *run, char *ret, size_t room);
/* The mark that all processes of a run carry, as it is in their environment. */
void starting_mark(const struct run *run, char *ret, size_t room);
