/* What goes over $GPUSIM_DIR/sock: a SOCK_SEQPACKET socket, one struct wire_request in, one or more struct wire_reply
 * out. A packet is exactly one struct; anything else closes the connection.
 *
 * Every request gets one reply with the same verb and an NVML return code (0 is good) and, when it failed, a sentence.
 * Two verbs turn the connection into something more:
 *   VERB_TASK       the connection is now that task, and closing it ends the task. When the work is done one more
 *                   reply comes, with verb VERB_TASK_DONE. The pid is the peer's by SO_PEERCRED, hence the host's.
 *   VERB_SUBSCRIBE  from now on replies with verb VERB_EVENT come as events happen (one connection per NVML event set;
 *                   subscribing again replaces the masks). Events that happened before are not replayed.
 * All other connections may ask any number of questions.
 *
 * Set calls are for root and for the user that runs gpusim; others get NO_PERMISSION (4), as with the driver.
 */
#pragma once

#include <stdint.h>

#include "sim/shm.h"

#define WIRE_VERSION 1u

/* The nvmlReturn_t values that gpusim answers with. */
enum wire_code {
    CODE_OK = 0,
    CODE_INVALID = 2,
    CODE_NOT_SUPPORTED = 3,
    CODE_NO_PERMISSION = 4,
    CODE_NOT_FOUND = 6,
    CODE_DRIVER_DOWN = 9,
    CODE_LOST = 15,
    CODE_IN_USE = 19,
    CODE_MEMORY = 20,
};

enum wire_verb {
    VERB_HELLO = 1, /* who am I: reply.hello */
    VERB_SET,       /* request.set */
    VERB_TASK,      /* request.task */
    VERB_TASK_DONE, /* reply.done */
    VERB_SUBSCRIBE, /* request.subscribe */
    VERB_EVENT,     /* reply.event */
    VERB_COMMAND,   /* request.command: "fault 0 xid 79"; reply.text is what to print */
};

/* What VERB_SET changes, and what the values are. Checked by gpusim against model and abilities as a driver checks:
 * NOT_SUPPORTED (3) where the model cannot, INVALID_ARGUMENT (2) out of range. */
enum wire_setting {
    SET_POWER_LIMIT = 1, /* mW */
    SET_LOCKED_CLOCKS,   /* min, max MHz; NVML's symbolic 0xffffff01, 0xffffff02 are allowed in pairs */
    SET_LOCKED_CLOCKS_RESET,
    SET_MEM_LOCKED_CLOCKS, /* min, max MHz */
    SET_MEM_LOCKED_CLOCKS_RESET,
    SET_APP_CLOCKS, /* memory, graphics MHz (NVML's order) */
    SET_APP_CLOCKS_RESET,
    SET_FAN,             /* fan, percent: also makes the policy manual */
    SET_FAN_DEFAULT,     /* fan: back to following the temperature */
    SET_FAN_POLICY,      /* fan, 0 temperature / 1 manual */
    SET_PERSISTENCE,     /* 0, 1 */
    SET_ECC,             /* 0, 1: becomes current with the next driver load */
    SET_ECC_CLEAR,       /* 0 volatile, 1 aggregate */
    SET_COMPUTE_MODE,    /* 0 default, 2 prohibited, 3 exclusive process */
    SET_ACOUSTIC,        /* target temperature, C */
    SET_API_RESTRICTION, /* 0 application clocks; 0 anyone may set them, 1 root only */
    SET_COUNT
};

enum wire_kind { /* what a task does; each heats and fills the units in its own way (kinds.c) */
                 KIND_MATMUL,
                 KIND_COPY,
                 KIND_SMALL,
                 KIND_GRAPHICS,
                 KIND_INFER,
                 KIND_VIDEO,
                 KIND_HPC,
                 KIND_IDLE, /* a context and memory, no work */
                 KIND_COUNT
};

struct wire_set {
    uint32_t setting;
    uint32_t unused_;
    int64_t value[2];
};

struct wire_task {
    uint64_t gpus;         /* bit per GPU index; a task on several runs at the pace of the slowest */
    uint64_t memory_bytes; /* on each */
    double demand;         /* of one GPU, 0 to 1 */
    double work_s;         /* seconds at full clock with the card to itself; infinite for ever */
    uint32_t kind;         /* enum wire_kind */
    uint32_t mig;          /* place in shm_card.mig, or UINT32_MAX */
    uint32_t is_mps;       /* a client of an MPS server: in that list alone */
    uint32_t unused_;
    char name[32]; /* as the kernel log will call it */
};

struct wire_subscribe {
    uint64_t types[SHM_GPUS_MAX]; /* nvmlEventType* mask of each GPU, 0 for none */
};

struct wire_request {
    uint32_t verb;
    uint32_t gpu; /* for VERB_SET */
    union {
        struct wire_set set;
        struct wire_task task;
        struct wire_subscribe subscribe;
        char command[512];
    };
};

struct wire_hello {
    uint32_t version;  /* WIRE_VERSION */
    uint32_t pid, uid; /* the caller's, as the host numbers them */
    uint32_t may_set;
};

struct wire_done {
    double elapsed_s;  /* from registration to the exact moment the work was done */
    double overtime_s; /* how long after that moment this reply was sent: bounded by gpusim's step */
    double work_s;
};

struct wire_event { /* nvmlEventData_t, less the handle */
    uint32_t gpu;
    uint32_t unused_;
    uint64_t type;
    uint64_t value;  /* the XID */
    uint32_t gi, ci; /* UINT32_MAX: none */
};

struct wire_started {
    int64_t boot_ns; /* when it was taken up: from now on the library shows it */
};

struct wire_reply {
    uint32_t verb;
    int32_t code; /* nvmlReturn_t */
    union {
        struct wire_hello hello;
        struct wire_started started;
        struct wire_done done;
        struct wire_event event;
    };
    char text[8192]; /* only as much as needed is sent: up to and with the final NUL */
};
