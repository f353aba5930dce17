/* A job as somebody asks for it, and the states it goes through. A spec lies in a record: bytes that say the same on every
 * side (command line, API, node, server), that the node seals and nobody else can change. Decoded, a spec points into its
 * record and owns nothing. Pure: no I/O, no clock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define JOB_RECORD_MAX (256u << 10)
#define JOB_WORDS_MAX 4096u
#define JOB_NAME_MAX 128 /* bytes, with its end */
#define JOB_GPUS_MAX 64
#define JOB_SCOPE_MAX 512u
#define JOB_AFTER_MAX 256u
#define JOB_MOUNTS_MAX 32u
#define JOB_RETRIES_MAX 100
#define JOB_ELEMENTS_MAX 100000u /* of one array or sweep */
#define JOB_PRIORITY_MAX 100

/* Texts one behind the other, each with its end. */
struct job_words {
    const char *s;
    size_t len;
    unsigned count;
};
/* The next one, or NULL. at: NULL before the first. */
const char *job_word_next(const struct job_words *w, const char *at);
/* Making them: one call a word, then what lies in b as words. They point into b, which must not grow after that. */
void job_word_put(struct buf *b, const char *word);
struct job_words job_words_of(const struct buf *b);

enum job_over { JOB_OVER_WARN, JOB_OVER_END }; /* what happens to one that takes more than it asked for */

/* Texts are never NULL: "" is none. */
struct job_spec {
    const char *name;         /* never empty: made of the command or the image where none was given */
    struct job_words command; /* with an image: its arguments, which may be none */
    const char *image;        /* "": a process of this machine */
    struct job_words mounts;  /* "SOURCE:TARGET[:ro]", with an image only */
    struct job_words env;     /* "KEY=VALUE", set above the submitter's own */
    const char *cwd;          /* "": where the submitter stood */
    int gpus;                 /* how many, 1 to JOB_GPUS_MAX */
    struct job_words scope;   /* UUIDs or indices that it may be given; none: any. As many as gpus: just these */
    uint64_t memory_bytes;    /* every one of its GPUs has at least so much; 0: any */
    uint64_t share_bytes;     /* above 0: this part of one GPU's memory, and others may have the rest */
    enum job_over share_over, idle_over; /* more memory than its share; idle for long (jobs.idle_warn_s) */
    int priority;                        /* -JOB_PRIORITY_MAX to JOB_PRIORITY_MAX; more is sooner */
    int64_t finish_by_ns;                /* wall clock; 0: none */
    int64_t time_limit_ns;               /* of a run; 0: none */
    int retries;                         /* how often it is tried again after a failure, 0 to 100 */
    struct job_words after;              /* "17": after job 17 ended well; "17:any", "-1": job_after.h */
    const char *array;                   /* "1-100%8", "0,3,10-20:5"; with a sweep just "%8"; "": none */
    struct job_words sweep;              /* "lr=1e-3,1e-4": every combination, the last word's fastest */
    struct job_words labels;             /* "KEY=VALUE" */
    struct job_words notify;             /* "terminal", "mail:ADDRESS", "webhook:URL", "command:TEXT" */
    bool is_pty;                         /* a terminal of its own that one may sit at */
    const char *ui;                      /* its own UI: model/ui.h */
    struct job_words repeat;             /* it comes again: model/repeat.h; none: once */
    struct job_words service;            /* it stays up: model/service_spec.h; none: it is to end */
};

/* A name for one that was given none: its script, its program or its image. */
void job_name_make(const struct job_spec *s, char ret[JOB_NAME_MAX]);

/* Appends a record. The spec must have passed job_check. The same spec is always the same bytes, and a record that
 * job_decode takes is what job_encode makes of it: nothing in it goes unread. */
void job_encode(const struct job_spec *s, struct buf *b);
/* Whatever comes from outside: nothing beyond the bytes is looked at, and what job_check refuses is refused. */
int job_decode(const void *record, size_t len, struct job_spec *ret, struct error *e) MUST_CHECK;
/* What can be said without knowing the machine: the sentence begins with the key. now_ns: wall clock, for a deadline that
 * is over; 0: deadlines are not looked at. */
int job_check(const struct job_spec *s, int64_t now_ns, struct error *e) MUST_CHECK;

/* ---- arrays and sweeps ---- */

/* How many elements (1 for a plain job), and how many may run at once (0: as many as fit). */
int job_elements(const struct job_spec *s, unsigned *ret_count, unsigned *ret_at_once, struct error *e) MUST_CHECK;
/* Element i as it is run: GPUMGR_ARRAY_INDEX and the sweep's variables in its environment, {index} and {lr} replaced in its
 * command. Written to b as a record of its own. */
int job_element(const struct job_spec *s, unsigned i, struct buf *b, struct error *e) MUST_CHECK;
/* What its sweep gives element i, "lr=1e-3": appended to b as words. */
void job_element_values(const struct job_spec *s, unsigned i, struct buf *b);
/* The number people see for element i: its array index, or i + 1 for a sweep; -1: there is no such element. And back. */
int64_t job_element_number(const struct job_spec *s, unsigned i);
int64_t job_element_find(const struct job_spec *s, int64_t number);

/* ---- states ---- */

/*   id          name        is it over */
#define JOB_STATES(X)                                                                                                  \
    X(WAITING, "waiting", false)     /* in the queue */                                                                \
    X(HELD, "held", false)           /* until another job has ended, or somebody lets it go */                         \
    X(GRANTED, "starting", false)    /* has its GPUs; the node may or may not have begun */                            \
    X(RUNNING, "running", false)     /**/                                                                              \
    X(ENDING, "ending", false)       /* was told to end */                                                             \
    X(DONE, "done", true)            /* exit code 0 */                                                                 \
    X(FAILED, "failed", true)        /* another one, a signal, or it could not be started */                           \
    X(CANCELLED, "cancelled", true)  /**/                                                                              \
    X(TIMEOUT, "timeout", true)      /* its time limit */                                                              \
    X(UNKNOWN, "exit unknown", true) /* it ended and nobody knows how */

enum job_state {
#define X(id, name, over) JOB_##id,
    JOB_STATES(X)
#undef X
        JOB_STATE_COUNT
};
const char *job_state_name(enum job_state s);
bool job_state_is_over(enum job_state s);
bool job_state_may_become(enum job_state from, enum job_state to);

/* Why a run was told to end, or did. */
enum job_reason {
    JOB_BY_ITSELF,
    JOB_BY_CANCEL,
    JOB_BY_TIME_LIMIT,
    JOB_BY_MEMORY, /* more than its share */
    JOB_BY_IDLE,   /* held a GPU and did nothing with it */
    JOB_BY_START,  /* it could not be started: the text says why */
    JOB_BY_REBOOT,
    JOB_BY_SHIM,    /* the process that watched it was killed: it was ended, its exit is not known */
    JOB_BY_PREEMPT, /* gave its GPUs to another */
    JOB_BY_LOST,    /* its machine did not come back: given up, its exit is not known */
    JOB_BY_STRAY,   /* used a GPU that it was not given */
    JOB_REASON_COUNT
};
const char *job_reason_text(enum job_reason r);
/* The state that a run's end is: why it was told to end counts before how it did. */
enum job_state job_end_state(enum job_reason why, bool has_exit, int code, int signal);
