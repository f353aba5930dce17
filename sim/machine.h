/* The simulated machine: its cards, what runs on them, its driver. Everything that has a state, and the one place that
 * moves time on. No I/O: what must be told to the outside (events, log lines, ended tasks) is handed to a listener.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/plant.h"
#include "sim/tasks.h"

enum { /* nvmlEventType* */
       EVENT_ECC_SINGLE = 0x1,
       EVENT_ECC_DOUBLE = 0x2,
       EVENT_PSTATE = 0x4,
       EVENT_XID = 0x8,
       EVENT_UNAVAILABLE = 0x4000,
       EVENT_RECOVERY = 0x8000,
};

struct board { /* what a card keeps beside its physics, and what is wrong with it */
    bool lost;
    bool hung;
    int32_t hang_pid;
    char hang_call[64];
    uint64_t blind, flapping; /* abilities gone; abilities that come and go */
    double cooling, air_add_c;
    uint64_t ecc_corrected[2][SHM_ECC_PLACES], ecc_uncorrected[2][SHM_ECC_PLACES];
    uint32_t remapped_corrected, remapped_uncorrected, remap_pending, remap_failed;
    uint32_t retired_sbe, retired_dbe, retired_pending;
    uint32_t recovery_action, last_xid;
    uint32_t ecc_mode, ecc_pending, persistence, compute_mode;
    uint32_t app_clocks_open; /* application clocks may be set by anyone */
    uint32_t link_replays, pcie_replays;
};

struct machine;

struct listener { /* called from within machine_advance() and the fault functions */
    void (*event)(void *self, uint32_t gpu, uint64_t type, uint64_t value);
    void (*xid)(void *self, uint32_t gpu, uint32_t code, uint32_t pid, const char *name, const char *rest);
    void (*driver)(void *self);                                           /* went down or came up */
    void (*evict)(void *self, struct task *t, int code, const char *why); /* its card is gone */
    void *self;
};

struct machine {
    uint32_t gpu_count;
    uint64_t seed;
    double now_s;
    double air_c;
    double shared_air_k; /* each card's air warms by this many kelvins for each watt of the others; 0: never */
    struct shm_card card[SHM_GPUS_MAX];
    struct plant plant[SHM_GPUS_MAX];
    struct board board[SHM_GPUS_MAX];
    struct load load[SHM_GPUS_MAX];
    double reference_mhz[SHM_GPUS_MAX][KIND_COUNT];
    double mig_busy_s[SHM_GPUS_MAX][SHM_MIG_MAX][UNIT_COUNT];
    struct tasks tasks;
    uint32_t driver; /* enum shm_driver */
    uint32_t generation;
    double driver_back_s; /* when a reload ends */
    bool costs_on;
    struct listener listener;
};

/* Adds one card; -1 when there are SHM_GPUS_MAX already. */
int machine_add(struct machine *m, const struct model *model, bool mig_on);

/* Moves time on by dt_s, in steps small enough for the governors. Returns how many tasks finished. */
int machine_advance(struct machine *m, double dt_s);

/* Seconds from now until something happens that should be noticed exactly: a task's end, the end of a reload. */
double machine_next_s(struct machine *m);

enum { MACHINE_WHY_MAX = 256 };

/* Registers a task; the code is NVML's, with a sentence in `why` when it is not 0. */
int machine_start(struct machine *m, const struct wire_task *ask, uint32_t pid, uint32_t uid, struct task **ret,
                  char why[MACHINE_WHY_MAX]);

/* Troubles. */
void machine_xid(struct machine *m, uint32_t gpu, uint32_t code);
void machine_ecc(struct machine *m, uint32_t gpu, bool uncorrected, uint32_t count);
void machine_lose(struct machine *m, uint32_t gpu);
void machine_driver_down(struct machine *m, double for_s);
void machine_driver_mismatch(struct machine *m);
void machine_driver_up(struct machine *m);
void machine_heal(struct machine *m, uint32_t gpu);
