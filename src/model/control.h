/* What may be said to the sampler: a fixed table of fixed-size messages over one SOCK_SEQPACKET Unix socket
 * (run/sampler.N.sock), from root and from the uid the sampler runs as. It takes no other input. */
#pragma once

#include <stdint.h>

#define CONTROL_MAGIC 0x67706374u

enum control_verb {
    CONTROL_PING,          /* answers with the sampler's pid */
    CONTROL_LOOK,          /* read every metric of every GPU now, slow ones too; answers when it is under way */
    CONTROL_RELOAD,        /* take the settings that the supervisor last wrote */
    CONTROL_GUARD_SET,     /* argument: GPU, enum control_guard, value in thousandths, ms it holds, ms to confirm in */
    CONTROL_GUARD_CONFIRM, /* argument: GPU. What was set by hand stays for its time */
    CONTROL_GUARD_RESTORE, /* argument: GPU, or -1 for all. Back to the baseline, what was set by hand is forgotten */
    CONTROL_HUNT, /* argument: GPU or -1 for all, ms in which a process is expected, ms between looks without that
                              (0: no more than the rounds; -1: as it was), pid of who opened a device file
                              or 0, minor number of that file and 1 or 0 for all */
    CONTROL_VERBS
};

enum control_guard {
    CONTROL_GUARD_LIMIT,  /* watts, or MHz where clocks are what is moved: never more than this */
    CONTROL_GUARD_TARGET, /* degrees */
};

struct control_request {
    uint32_t magic, verb;
    int64_t argument[5];
};

struct control_reply {
    uint32_t magic;
    int32_t result; /* 0 or a negative errno */
    int64_t value;
    char text[104]; /* one sentence when result is negative */
};
