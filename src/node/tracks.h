/* The inside of node/tasks: what is known of each task, shared by its files (tasks.c: beginnings and ends; tasks_round.c: what
 * happens every second; tasks_send.c: frames for the server). Everything here is guarded by tracker.lock. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/ring.h"
#include "model/settings.h"
#include "model/slack.h"
#include "model/task.h"
#include "node/groups.h"
#include "node/opens.h"
#include "node/rings.h"
#include "node/table.h"
#include "node/uplink.h"

#define TRACKS_BUCKETS 1024u
#define TRACKS_CHANGES (2 * TABLE_SLOTS)
#define TRACKS_UNNAMED 256
#define TRACKS_GPUS GPUMGR_TASKS_GPUS_MAX

struct track {
    struct track *next; /* in its bucket, by pid */
    int32_t pid;
    int pidfd;    /* -1: the process is gone */
    bool is_live; /* its task runs; else: left the lists, or ended and still listed */
    uint32_t slot;
    struct gpumgr_task k; /* as the slot has it */
    struct task task;
    struct group *group; /* may be NULL */
    int64_t wake_ns;     /* task_wake_ns, kept */
    uint64_t listed[TRACKS_GPUS / 64];
    int64_t unlisted_ns; /* since when it is in no list; 0: it is in one */
    int64_t gone_ns;     /* when its process was found gone; 0: it lives */
    int64_t used_ns;     /* when it last did anything on a GPU */
    bool is_idle_said, is_dead_said, is_named;
    uint64_t memory_now;
    double sm_now; /* NaN: not measured */
};

/* What is known of one device, by its bit in the table. */
struct tracked_gpu {
    bool has_list;
    int64_t list_ns, spent_ns; /* of the list; up to when its time was divided */
    double energy_j, idle_w;   /* counter at spent_ns, NaN: none; least power seen while nobody worked */
    struct ring_processes processes;
};

struct tracker {
    pthread_mutex_t lock;
    struct table table;
    struct rings rings;
    struct opens opens;
    struct groups groups;
    struct engine *engine; /* NULL: none */
    struct slack slack;    /* of the node */
    struct node_state state;
    struct track *bucket[TRACKS_BUCKETS];
    struct track *at[TABLE_SLOTS]; /* tracks by their slot; NULL: an ended task */
    bool is_live[TABLE_SLOTS];
    struct {
        char *user, *command; /* of the task in this slot, while we run */
    } said[TABLE_SLOTS];
    struct {
        int64_t mark;
        uint32_t slot;
    } change[TRACKS_CHANGES];
    uint64_t changes; /* there were */
    struct tracked_gpu gpu[TRACKS_GPUS];
    int16_t bit[WIRE_DEVICES_MAX]; /* of a device of the rings; -1: none */
    uint32_t live;
    bool knows_pids; /* the driver's pids are those of our /proc */
    bool is_first;   /* nothing was looked at yet: who is there now was there before us */
    struct settings settings;
    int epoll, timer, bell, ended;
    int64_t timer_ns, round_ns, marked_ns;
    int64_t period_ns; /* when the first of the groups' periods is over; INT64_MAX: none */
    /* the main thread's, under the lock too */
    uint64_t change_next; /* the change to tell next */
    int64_t task_sent, event_sent;
    uint64_t group_told[GROUPS_MAX];
    uint32_t unnamed[TRACKS_UNNAMED]; /* slots that were told without their user's name */
    unsigned unnamed_count;
};

extern struct tracker tracker;

/* Writes the track's slot and notes the change. */
void track_put(struct track *t, int64_t now_ns);
/* The same for any slot, also of a task that ended. */
void slot_put(uint32_t slot, struct gpumgr_task *k, int64_t now_ns);
/* Takes the user's name and the command line, when they are known by now. */
void track_name(struct track *t, int64_t now_ns);
void track_free(struct track *t);
/* is_known false: when exactly is not known. */
void track_end(struct track *t, int64_t end_ns, bool is_known);
struct track *track_find(int32_t pid);
bool track_is_listed(const struct track *t);

/* What a list said of one process. */
struct sighting {
    int32_t pid, minor;
    int list_bit, bit; /* whose list it was; what it is on */
    int64_t at_ns;
};
void track_sight(const struct sighting *s, int64_t now_ns);
void track_exit(uint32_t slot, int64_t now_ns);
void track_tick(struct track *t, int64_t now_ns); /* its wake_ns has come */
/* A task that the node before us began and did not see the end of. */
void track_adopt(uint32_t slot, const struct gpumgr_task *k, int64_t now_ns);

/* One sentence for people; device: of the rings, or -1. */
void tracker_event(int severity, const char *kind, int device, int32_t pid, const char *fmt, ...) PRINTF(5, 6);
int tracker_device(const struct track *t);
/* One of a run of our queue. */
bool track_is_ours(const struct track *t);
/* One of a run that was not given this device; run (if not NULL): which. */
bool track_is_stray(const struct track *t, const struct inventory *device, char run[48]);

/* Fills change[] from the table: which slots, in the order of their marks. */
void tracker_index(void);
/* It ends: the time of its cards since the last round is divided now, while it is among those who had it. */
void tracker_settle(const struct track *t, int64_t now_ns);
void tracker_round(int64_t now_ns);
/* A period of a container is over: tracker.period_ns has come. */
void tracker_periods(int64_t now_ns);
/* What an engine said about a container. */
void tracker_facts(const struct engine_facts *f, int64_t now_ns);
