/* Settings anew, from the program that reads configuration files: this one parses no JSON, and a bad file is one
 * sentence from there. It runs beside us: whoever waits for it goes on with everything else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "model/settings.h"

struct reload { /* zero with fd = {-1, -1}: none is under way */
    pid_t pid;  /* 0: none, or ended */
    int status; /* once it has ended */
    bool is_running;
    int fd[2]; /* what it prints, and what it complains; -1: at its end */
    struct buf said[2];
    int64_t until_ns;
};

/* Starts argv[0] `config --resolved` with the flags that follow. */
int reload_begin(struct reload *r, char *const *argv, int64_t now_ns, struct error *e) MUST_CHECK;

/* A pid was reaped; false: it is not this one's. */
bool reload_reaped(struct reload *r, pid_t pid, int status);

/* Takes what has come. 0: not done yet; 1: *ret has the settings; negative: it failed, or took longer than five seconds.
 * Never waits. */
int reload_step(struct reload *r, int64_t now_ns, struct settings *ret, struct error *e) MUST_CHECK;

/* Gives it up, if one is under way. */
void reload_cancel(struct reload *r);
