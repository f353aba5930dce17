/* The sampler's side of the ring: what is known of each device, and how it gets out. Every function here may be called
 * from any thread and returns promptly: no lock is held across a driver call, so a hung card blocks nobody. */
#pragma once

#include <pthread.h>

#include "base/shm.h"
#include "model/energy.h"
#include "model/health.h"
#include "model/ring.h"
#include "model/xid.h"

struct board_device {
    pthread_mutex_t lock;
    struct latest latest;
    int64_t for_ns[METRIC_COUNT]; /* how long a reading of each metric stays current */
    struct energy energy;
    bool energy_is_ours; /* the card has no counter: ours starts where it was left */
    struct xid_count xids;
    struct health health;
    enum device_state state;
    char trouble[104]; /* what the last failed call said */
};

struct board {
    struct ring ring;
    struct shm shm;
    pthread_mutex_t event_lock;
    unsigned count;
    _Atomic int64_t answer_ns, lost_ns;
    struct board_device device[DEVICE_MAX];
};

/* Continues the ring at path if it has just these devices, else lays out a new one and renames it in. */
int board_open(struct board *b, const char *path, const struct ring_spec *spec, struct error *e) MUST_CHECK;

/* Without a driver there are no devices to lay out: whatever ring is there says so, or an empty one. */
int board_open_absent(struct board *b, const char *path, const char *why, struct error *e) MUST_CHECK;
void board_driver(struct board *b, enum ring_driver_state state, const char *text);

/* The inventory that the ring at path has for a GPU index (and its instances after it), for a card that does not
 * answer now. Returns how many devices were copied, 0 when it is not known. */
unsigned board_remembered(const char *path, int index, struct inventory *ret, unsigned room);

/* A round of readings begins, and ends with what came (s and p may be NULL: nothing did). */
void board_begin(struct board *b, unsigned device, int64_t now_ns);
void board_end(struct board *b, unsigned device, struct sample *s, const struct ring_processes *p, bool says_lost,
               const char *trouble);

/* A look at the processes alone, after board_begin: p when it is another list than before, else NULL. */
void board_looked(struct board *b, unsigned device, const struct ring_processes *p);

/* Readings from outside the rounds: slow metrics (p may be NULL). */
void board_add(struct board *b, unsigned device, struct sample *s, const struct ring_processes *p);

/* Worth asking for more than a sign of life. */
bool board_is_there(struct board *b, unsigned device);

/* The call that a round is waiting in, for the words of a card that does not answer. */
void board_waits_for(struct board *b, unsigned device, const char *call);

void board_fence(struct board *b, unsigned device, bool is_fenced, const char *why);
void board_forbid(struct board *b, unsigned device, const char *why);
void board_keep(struct board *b, unsigned device, const int *metrics, int64_t for_ns);
void board_energy_is_ours(struct board *b, unsigned device);

/* Looks at every device's health; what changed becomes state and event. */
void board_judge(struct board *b, int64_t now_ns);

void board_guard(struct board *b, unsigned device, const struct ring_guard *g);
void board_xid(struct board *b, unsigned device, uint64_t code, enum xid_source source, int pid, const char *process);
void board_event(struct board *b, enum event_severity severity, int device, const char *kind, const char *fmt, ...)
    PRINTF(5, 6);
