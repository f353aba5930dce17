/* The runs of this machine as the jobs' thread has them, and their directories: DIR/jobs/JOB.ELEMENT.ATTEMPT while they go on
 * or their end is not stored, DIR/jobs/kept/... after that. What is certain lies in a directory (run/record.h); a struct run
 * is what was read there. All of this is one thread's: shared by jobs*.c alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/instance.h"
#include "model/settings.h"
#include "model/wire_run.h"
#include "node/owners.h"
#include "node/tasks.h"
#include "run/record.h"

#define RUNS_BUCKETS 1024u
#define RUNS_EXIT_OURS 125     /* as Docker's own client: it was not the container that failed */
#define RUNS_REFUSED "refused" /* in a run's directory: why its container never ran */
#define RUNS_FILE_MAX (2u << 20)

struct run {
    struct run *next; /* in its bucket */
    struct wire_run_key key;
    char name[OWNERS_NAME], title[JOB_NAME_MAX];
    uint32_t uid;
    unsigned gpus;
    char (*uuid)[96]; /* owned */
    bool is_image, is_service;
    uint64_t share_bytes;
    uint8_t share_over, idle_over; /* enum job_over */
    pid_t shim;                    /* 0: none */
    int pidfd, watch;              /* of the shim; of its state (inotify); -1: none */
    unsigned starts;               /* shims that were started for it */
    uint8_t stop;                  /* why it was told to end, though its shim may not have heard it; 0: it was not */
    bool is_orphan;                /* its shim was killed: its processes are being ended */
    int64_t orphan_ns;
    bool is_clean;        /* of an image: its container is being removed, or is gone */
    bool is_found;        /* at the start, without a shim: to be looked at */
    struct wire_run said; /* as the server and callers are told */
    int64_t start_boot_ns;
    bool is_memory_said, is_idle_said, is_stray_said; /* what it does wrong */
    int64_t stray_ns;         /* since when it uses a GPU that it was not given; 0: it does not */
    bool has_figures;         /* they are in its records: it has ended */
    struct task_figures sum;  /* scratch of a round */
    struct wire_figures used; /* as it was told last: none of it goes back (jobs_figures.c) */
};

struct runs {
    struct instance where;
    char dir[256], boot_id[40];
    struct run *bucket[RUNS_BUCKETS];
    unsigned count;
};

int runs_open(struct runs *r, const struct instance *where, struct error *e) MUST_CHECK;

void run_name(const struct wire_run_key *k, char ret[OWNERS_NAME]);
bool run_parse_name(const char *name, struct wire_run_key *ret);
/* A path in the directory of a run, wherever that lies now; file "": the directory. */
void run_path(const struct runs *r, const char *name, const char *file, char *ret, size_t room);

struct run *runs_find(const struct runs *r, const struct wire_run_key *k);
/* The newest attempt of an element that goes on or is not stored yet, or NULL. */
struct run *runs_newest(const struct runs *r, int64_t job, uint32_t element);
void runs_drop(struct runs *r, struct run *run); /* from memory, not from the disk */

/* A directory for a grant, with all that is needed to begin or to begin again, synced. -EEXIST: there is one. */
int runs_make(struct runs *r, const struct wire_grant *g, struct run **ret, struct error *e) MUST_CHECK;
/* A directory for a run that is never to begin. */
int runs_make_ended(struct runs *r, const struct wire_run_key *k, uint8_t reason, struct error *e) MUST_CHECK;
/* One that is there, into memory. */
int runs_load(struct runs *r, const struct wire_run_key *k, struct run **ret, struct error *e) MUST_CHECK;
/* What the records say of one, without taking it into memory. */
int runs_look(const struct runs *r, const struct wire_run_key *k, struct wire_run *ret, struct error *e) MUST_CHECK;
/* All keys of runs that go on or are not stored, for the start. */
typedef void (*runs_fn)(void *ctx, const struct wire_run_key *k);
void runs_each_on_disk(const struct runs *r, runs_fn each, void *ctx);

/* Reads the records anew into run->said. */
int run_refresh(const struct runs *r, struct run *run, struct record_state *ret, struct error *e) MUST_CHECK;
/* Its grant as it was stored; bytes keeps what *ret points into. */
int run_grant(const struct runs *r, const struct run *run, struct buf *bytes, struct wire_grant *ret, struct error *e)
    MUST_CHECK;
/* Appends a record where no shim is. */
int run_note(const struct runs *r, const char *name, struct record *record, bool sync, struct error *e) MUST_CHECK;
/* The server has it: notes that and moves the directory away. */
void run_keep(struct runs *r, struct run *run);
/* Directories that are older than the time they are kept for. */
void runs_tidy(const struct runs *r, int keep_days, unsigned at_most);
