/* A page that supervisor and child share (a memfd handed down): the child beats, the supervisor looks. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct heart {
    _Atomic int64_t beat_ns;       /* boot clock */
    _Atomic int64_t ready_ns;      /* when the child first did what it is for; 0: not yet */
    _Atomic int64_t given_back_ns; /* when it had put back all that it had changed; 0: it has not */
    _Atomic int64_t open_ns;       /* how long its slowest GPU took to open: the next child has to wait for so long */
};

int heart_make(struct heart **ret, int *ret_fd, struct error *e) MUST_CHECK;
int heart_join(int fd, struct heart **ret, struct error *e) MUST_CHECK;
void heart_close(struct heart **h, int *fd); /* accepts NULL and -1, and leaves them */
