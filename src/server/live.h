/* What nodes say now: their GPUs, their hosts, how fresh each of it is. Memory only: frames go in (live_take), views read
 * it. Belongs to the loop's thread.
 *
 * Times of a node's readings are by the node's boot clock; live_node_now turns ours into it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/host_metrics.h"
#include "model/inventory.h"
#include "model/ring.h"
#include "model/sample.h"
#include "model/wire.h"
#include "model/wire_device.h"
#include "server/live_tasks.h"
#include "server/marks.h"

#define LIVE_STALE_NS (3ll * 1000000000) /* silence that is shown */
#define LIVE_GONE_NS                                                                                                   \
    (60ll * 1000000000) /* a node that is silent for so long is gone, unless `gone_after_ns` says else */
#define LIVE_NODES_MAX 4096

enum live_change { LIVE_STATE = 1, LIVE_PROCESSES = 2, LIVE_XIDS = 4, LIVE_GUARD = 8 };

struct live_device {
    struct live_node *node;
    bool is_known; /* its inventory has come */
    struct inventory is;
    uint16_t source;
    struct ring_state state;
    struct latest latest;
    int64_t for_ns[METRIC_COUNT]; /* how long a reading stays current */
    struct ring_xids xids;
    bool has_guard;
    struct ring_guard guard;
    int64_t processes_boot_ns; /* 0: this card cannot list processes */
    uint32_t process_count, process_total;
    struct wire_process *process;
    int64_t sample_boot_ns; /* of the newest reading */
    int *series;            /* the recorder's handles by metric; NULL: none yet */

    /* what the streams were last told */
    uint32_t changed; /* enum live_change bits since then */
    const char *told_state;
    uint64_t told_has[SAMPLE_WORDS];
    double told[METRIC_COUNT];
};

struct live_source {
    struct ring_driver driver;
    int64_t beat_ns; /* by the node's boot clock; 0: there is no ring */
};

struct live_node {
    char name[64], boot_id[40], version[32];
    struct wire_map gpu_map, host_map;
    uint16_t devices, inventories; /* of the session; those whose inventory has come */
    struct live_device *device;
    uint16_t sources;
    struct live_source source[WIRE_SOURCES_MAX];
    struct host_sample host;
    int *host_series;
    struct live_tasks tasks;
    struct marks *marks;
    void *link;             /* the connection; NULL: none */
    bool is_welcomed;       /* it knows our marks */
    bool is_gone;           /* silent for too long: see live_tick */
    uint64_t rounds;        /* that have ended */
    int64_t clock_ahead_ns; /* its boot clock less ours */
    int64_t seen_ns;        /* when it last said something, by our boot clock */
    int64_t seen_real_ns;
    const char *told_state;
    uint64_t told_host_has[HOST_WORDS];
    double told_host[HOST_METRIC_COUNT];
};

struct live {
    struct live_node **node; /* by name */
    size_t count;
    uint64_t version; /* rises with every frame */
    uint64_t shape;   /* rises when nodes or their devices come, go or change */
    struct marks_list *marks;
    int64_t gone_after_ns;       /* 0: LIVE_GONE_NS */
    int64_t ticked_ns, awake_ns; /* the last look, and since when we look without a pause */
    /* what is to be kept; any may be NULL */
    void *ctx;
    void (*on_sample)(void *ctx, struct live_node *n, struct live_device *d, const struct sample *s);
    void (*on_host)(void *ctx, struct live_node *n, const struct host_sample *s);
    /* is_new: its mark was not taken before. Others come too, for those who keep marks of their own. */
    void (*on_event)(void *ctx, struct live_node *n, uint16_t source, int64_t mark, const struct event *ev,
                     bool is_new);
    /* from which mark on a source's events should come again; not beyond ours, which is `mark` */
    int64_t (*event_mark)(void *ctx, const struct live_node *n, uint16_t source, int64_t mark);
    void (*on_round)(void *ctx, struct live_node *n);
    /* a task's record that was not taken before; what an engine says of a container */
    void (*on_task)(void *ctx, struct live_node *n, const struct wire_task *t);
    void (*on_container)(void *ctx, struct live_node *n, const struct wire_container *c);
    /* the machine was started anew: what ran there before is over */
    void (*on_boot)(void *ctx, struct live_node *n);
    /* it is gone, or back: n->is_gone has changed */
    void (*on_gone)(void *ctx, struct live_node *n);
};

void live_done(struct live *l);

/* A frame from a node's connection. *node: whose it is, NULL before its HELLO. now: by our clocks. -EPROTO: the
 * connection makes no sense and should be closed. 1: all inventories are here, and a WELCOME is due. */
int live_take(struct live *l, struct live_node **node, void *link, const struct wire_frame *f, int64_t now_ns,
              int64_t now_real_ns, struct error *e) MUST_CHECK;

/* The connection is gone. */
void live_part(struct live *l, struct live_node *n);

/* Once a second: whoever has said nothing for too long is gone. Time in which we did not look ourselves (a machine that
 * slept, a stopped process) is nobody's silence. */
void live_tick(struct live *l, int64_t now_ns);

/* A node that an earlier server knew: listed as silent until it comes. NULL: it is there already, or there are too many. */
struct live_node *live_expect(struct live *l, const char *name, int64_t seen_real_ns, bool is_gone, int64_t now_ns);

/* Takes a node off the list; it must have no connection. What it left in marks and history stays. */
void live_forget(struct live *l, struct live_node *n);

struct live_node *live_find_node(const struct live *l, const char *name);
/* A GPU (no MIG instance) by its UUID. */
struct live_device *live_find_gpu(const struct live *l, const char *uuid, struct live_node **node);

static inline int64_t live_node_now(const struct live_node *n, int64_t now_ns) { return now_ns + n->clock_ahead_ns; }
static inline bool live_is_instance(const struct live_device *d) { return d->is.parent >= 0; }

/* "ok", "stale"; "gone" once live_tick has found it so. */
const char *live_node_state(const struct live_node *n, int64_t now_ns);
/* "ok", "lost", ..., "stale"; the reason goes to `why` and may be empty. */
const char *live_device_state(const struct live_node *n, const struct live_device *d, int64_t now_ns, char *why,
                              size_t room);
