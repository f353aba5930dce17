/* A service's life: which of its runs should be there, from what is known of them. A pure step from facts to orders: no I/O, no
 * clock; times are wall clock, since they outlive a server.
 *
 * A service has at most three runs, each a job of the queue: the one that serves (now), the one that is to take its place
 * (next), and one that is being ended (old). Facts come in (how a job stands, what a check said, what a person wants, that
 * time has passed), then service_settle says what is to be done about them. It may be asked again at any time and never
 * gives the same order twice: an order is noted as given before it is returned.
 *
 *   restarts  by policy, after a pause that doubles up to pause_most and is forgotten after having been well for `forget`;
 *             after give_up restarts within `within` it is given up, until somebody wants it started again.
 *   health    failures in a row end a run; before a run was well once they count only after its grace.
 *   update    beside: the new revision is started in `next`, the old one serves on until the new one is well; replace: the old
 *             one is ended first. A new one that ends or fails its checks before it was well is ended, and the old revision
 *             stays (or comes back).
 *   yielding  is the queue's: the run ends, its job waits again, and both sides of that are one job here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/service_spec.h"

enum service_phase {
    SERVICE_NONE,
    SERVICE_ASKED,    /* its job is being made */
    SERVICE_WAITING,  /* for GPUs */
    SERVICE_STARTING, /* has them; was not seen well yet */
    SERVICE_WELL,     /* passes its checks, or has none and runs */
    SERVICE_YIELDED,  /* gave its GPUs away and waits for others */
    SERVICE_ENDING,   /* was told to end */
};

/* Why a run was told to end by us. */
enum service_why { SERVICE_BY_NOBODY, SERVICE_BY_HEALTH, SERVICE_BY_PERSON, SERVICE_BY_UPDATE };

struct service_slot {
    int64_t job; /* 0: none yet */
    uint32_t revision;
    uint8_t phase, why; /* enum service_phase, enum service_why */
    bool is_running, was_well;
    uint16_t failures; /* checks in a row */
    int64_t since_ns;  /* of its phase; of one that is starting, since it runs */
};

/*   id         name */
#define SERVICE_STATES(X)                                                                                              \
    X(STARTING, "starting")                                                                                            \
    X(WAITING, "waiting")         /* for GPUs */                                                                       \
    X(HEALTHY, "healthy")         /* or running, where it has no checks */                                             \
    X(UNHEALTHY, "unhealthy")     /* fails its checks; being ended, to be started again */                             \
    X(BACKING_OFF, "backing off") /* until its pause is over */                                                        \
    X(YIELDED, "yielded")         /* its GPUs went to a higher priority; it comes back */                              \
    X(SUSPENDED, "suspended")     /* until somebody resumes it */                                                      \
    X(ENDED, "ended")             /* and its policy does not start it again */                                         \
    X(FAILED, "given up")         /* too many restarts */                                                              \
    X(REMOVED, "being removed")

enum service_state {
#define X(id, name) SERVICE_IS_##id,
    SERVICE_STATES(X)
#undef X
        SERVICE_STATE_COUNT
};
const char *service_state_name(enum service_state s);

enum service_rest { SERVICE_GOES_ON, SERVICE_RESTS, SERVICE_ENDED_SELF, SERVICE_GAVE_UP, SERVICE_GOES_AWAY };

#define SERVICE_TEXT 200

struct service {
    uint8_t rest;           /* enum service_rest: whether it is to be up */
    bool replaces;          /* the update that is under way ends the old one first */
    uint32_t revision;      /* that is to serve */
    uint32_t next_revision; /* of an update that is under way; 0: none */
    uint32_t back_revision; /* with replaces: to go back to while the new one was not well yet; 0: none */
    struct service_slot now, next, old;
    int64_t pause_ns, due_ns; /* the last pause; when it is over; 0: none */
    uint32_t restarts;        /* of all time */
    uint16_t recent;          /* that are remembered */
    int64_t recent_ns[SERVICE_GIVE_UP_MAX];
    int64_t well_ns;         /* since when it is well; 0: it is not */
    char text[SERVICE_TEXT]; /* what people should know */
};

enum service_state service_state(const struct service *s);

/* ---- facts ---- */

struct service_end {
    bool is_good;      /* exit code 0 */
    bool is_cancelled; /* by us where it was told to end, else by somebody */
    char text[120];    /* "exit code 1" */
};

/* The policies of the revision that is to serve, and of the one that is to follow it (NULL: there is none). */
struct service_rules {
    const struct service_spec *now, *next;
};

void service_made(struct service *s, int64_t job, uint32_t revision); /* the job of a START is stored */
void service_not_made(struct service *s, uint32_t revision);          /* it could not be: it is tried again */
void service_waits(struct service *s, int64_t job, bool has_yielded, int64_t now_ns);
void service_starts(struct service *s, int64_t job, int64_t now_ns);
void service_runs(struct service *s, const struct service_rules *p, int64_t job, int64_t now_ns);
void service_ends(struct service *s, const struct service_rules *p, int64_t job, const struct service_end *end,
                  int64_t now_ns);
void service_checked(struct service *s, const struct service_rules *p, int64_t job, bool is_good, const char *text,
                     int64_t now_ns);

/* ---- wishes; the sentence says why it makes no sense ---- */

int service_suspend(struct service *s, struct error *e) MUST_CHECK;
int service_resume(struct service *s, struct error *e) MUST_CHECK; /* also of one that ended or was given up */
int service_restart(struct service *s, struct error *e) MUST_CHECK;
int service_remove(struct service *s, struct error *e) MUST_CHECK;
/* A new revision, which must be larger than all before. */
int service_update(struct service *s, uint32_t revision, bool replaces, struct error *e) MUST_CHECK;

/* ---- orders ---- */

struct service_orders {
    uint32_t start;  /* make a job of this revision; 0: none */
    int64_t stop[3]; /* end these jobs */
    unsigned stops;
    bool is_gone;     /* removed, and nothing of it is left */
    int64_t again_ns; /* ask again then at the latest; INT64_MAX: only after another fact */
};
void service_settle(struct service *s, const struct service_rules *p, int64_t now_ns, struct service_orders *ret);

/* Whether a job is one of its runs. */
const struct service_slot *service_slot_of(const struct service *s, int64_t job);

/* ---- in a file ---- */

void service_encode(const struct service *s, struct buf *b);
int service_decode(const void *bytes, size_t len, struct service *ret, struct error *e) MUST_CHECK;
