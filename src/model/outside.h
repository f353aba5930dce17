/* What happens to a process that uses a GPU outside the queue, where an operator wants anything to happen at all: it is warned
 * once somebody has waited for that GPU for a while, and ended after a second while. Pure: time is an argument, and acting is
 * somebody else's.
 *
 * Nothing is ended that was not warned of that end, and not before the time that the warning said. Where nobody waits any more the
 * warning is taken back, and the next one begins anew. While it is not known whether somebody waits, nothing happens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum outside_mode { OUTSIDE_SHOW, OUTSIDE_WARN, OUTSIDE_END };

struct outside_policy {
    enum outside_mode mode;
    int64_t warn_ns;  /* wanted for so long: it is warned; and not wanted for so long: that is taken back */
    int64_t end_ns;   /* from the warning to the end */
    int64_t grace_ns; /* from TERM to KILL */
};

/*   id       name        */
#define OUTSIDE_STEPS(X)                                                                                               \
    X(SEEN, "")                                                                                                        \
    X(WARNED, "warned")                                                                                                \
    X(TOLD, "told to end") /* TERM */                                                                                  \
    X(KILLED, "killed")                                                                                                \
    X(LEFT, "cannot be ended")

enum outside_step {
#define X(id, name) OUTSIDE_##id,
    OUTSIDE_STEPS(X)
#undef X
        OUTSIDE_STEP_COUNT
};
const char *outside_step_name(enum outside_step s);

/* What is known of one process now. */
struct outside_facts {
    int64_t now_ns; /* boot clock */
    bool is_known;  /* whether somebody waits for its GPUs is known ... */
    bool is_wanted; /* ... and somebody does */
    bool is_spared; /* the operator's exceptions, the system's own, ours */
};

/* What is remembered of it. The zero value is one that was just seen. */
struct outside {
    uint8_t step;                   /* enum outside_step */
    bool is_promised;               /* the warning said when it will be ended */
    int64_t wanted_ns, unwanted_ns; /* since when; 0: it is not so */
    int64_t warned_ns, ends_ns;     /* ends: not before */
    int64_t told_ns;
};

enum outside_act {
    OUTSIDE_DO_NOTHING,
    OUTSIDE_DO_WARN, /* says ends_ns where is_promised */
    OUTSIDE_DO_TAKE_BACK,
    OUTSIDE_DO_TERM,
    OUTSIDE_DO_KILL,
};

/* One step in time; what it says is to be done now, once. */
enum outside_act outside_step(struct outside *o, const struct outside_policy *p, const struct outside_facts *f);

/* When it will be ended as things stand, boot clock; 0: it will not. */
int64_t outside_ends_ns(const struct outside *o, const struct outside_policy *p);

/* The operator's exceptions: users by name and programs by their whole path, with commas. A name that a process gives itself does
 * not count. user and path may be "". */
bool outside_is_excepted(const char *list, const char *user, const char *path);
