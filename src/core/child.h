/* A process that the supervisor keeps alive: started, watched by its heartbeat, ended, started again after a pause. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/heart.h"
#include "model/backoff.h"

enum child_state {
    CHILD_DOWN,   /* to be started at start_ns */
    CHILD_UP,     /* */
    CHILD_ENDING, /* was told to end (SIGTERM at ending_ns) */
    CHILD_KILLED, /* was sent SIGKILL at ending_ns */
    CHILD_FENCED, /* survives SIGKILL, and so does its predecessor: no third one until one of them is gone */
};

#define CHILD_ARGS_MAX 20

struct child {
    char name[24];
    const char *argv[CHILD_ARGS_MAX]; /* owned by whoever filled them */
    bool has_heart;
    bool is_quiet;    /* its standard output goes nowhere */
    bool is_optional; /* server, node: one that never got ready is tried again seldom, one that refuses its settings not
                        * before they change */
    int64_t patience_ns; /* between SIGTERM and SIGKILL; 0: as usual */
    const char *after;   /* a file that must be there first, or until after_ns; NULL: none */
    int64_t after_ns;
    enum child_state state;
    pid_t pid;
    int heart_fd;
    struct heart *heart;
    int64_t start_ns, started_ns, ending_ns;
    int64_t forgiven_ns;           /* silence before this does not count */
    struct backoff backoff, kills; /* kills: by others, while it did its work; they make its own failures no worse */
    pid_t stuck;                   /* a fenced predecessor */
};

/* Forks and execs argv; %H in an argument stands for the heartbeat's descriptor. */
int child_start(struct child *c, int64_t now_ns, struct error *e) MUST_CHECK;

void child_end(struct child *c, int64_t now_ns);

/* A pid was reaped. False: it is not this child, nor a fenced one before it. Else says how it ended, and when to start
 * the next one. */
bool child_reaped(struct child *c, pid_t pid, int status, int64_t now_ns, bool is_stopping);

/* The supervisor itself slept through (a suspended machine, Ctrl-Z): whoever slept with it is not hung. */
void child_forgive(struct child *c, int64_t now_ns);

/* Settings changed: one that was given up on is tried again. */
void child_retry(struct child *c, int64_t now_ns);

/* Time passed: starts, kills or fences as is due. silent_ns: a heart that stands still for longer is hung. */
void child_tick(struct child *c, int64_t now_ns, int64_t silent_ns, bool is_stopping);

/* When child_tick has something to do, at the latest. */
int64_t child_next_ns(const struct child *c, int64_t now_ns, int64_t silent_ns);
