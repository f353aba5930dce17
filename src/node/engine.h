/* What the container engines of this machine (Docker, Podman) say about their containers: names, images, labels, what
 * started and what ended. One thread of its own talks to all of them; nobody else ever waits for an engine. An engine may
 * be absent, slow, stopped, restarted or lying: that costs bounded memory and time, and what is known stays known.
 *
 * Every function here may be called from any one thread and returns at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/instance.h"

enum engine_kind { ENGINE_DOCKER, ENGINE_PODMAN };
enum engine_state {
    ENGINE_UNKNOWN, /* the engine did not say */
    ENGINE_CREATED,
    ENGINE_RUNNING,
    ENGINE_PAUSED,
    ENGINE_RESTARTING,
    ENGINE_EXITED, /* may be started again */
    ENGINE_REMOVED,
};

#define ENGINE_ID_HEX 64
#define ENGINE_NO_PRIORITY INT32_MIN
#define ENGINE_LABELS_MAX 2048

/* One container. Texts are valid UTF-8 without control characters, cut where they are longer. */
struct engine_facts {
    char id[ENGINE_ID_HEX + 1];
    char name[72], image[128];
    char tenant[48];         /* label gpumgr.tenant; "": none */
    char bad_label[112];     /* one sentence about the first label of ours that cannot be read; "": all are good */
    int64_t deadline_ns;     /* label gpumgr.deadline; 0: none */
    int64_t period_ns;       /* label gpumgr.period; 0: none */
    int64_t created_real_ns; /* 0: not known, as all times here */
    int64_t started_boot_ns; /* when we learned of its start */
    int32_t priority;        /* label gpumgr.priority, or ENGINE_NO_PRIORITY */
    int32_t pid;             /* of its first process; 0: not known */
    uint32_t uid;            /* whose engine this is: another user's may say what it likes about its containers */
    uint8_t engine, state;   /* enum engine_kind, enum engine_state */
    bool has_own_devices;    /* device nodes of its own: opening them is not seen on the host's */
};

const char *engine_kind_name(enum engine_kind k);   /* "docker", "podman" */
const char *engine_state_name(enum engine_state s); /* "running", ... */

/* What is to be watched. Paths of sockets with commas between; a * in one is expanded every few seconds. "": none. */
struct engine_setup {
    const char *docker, *podman;
    const struct instance *where; /* its samplers are told to look when a container starts; NULL: nobody is told */
    unsigned workers;             /* samplers there */
};

struct engine;

int engine_new(const struct engine_setup *setup, struct engine **ret, struct error *e) MUST_CHECK;
void engine_free(struct engine *g); /* waits for the thread, which never waits for an engine */

/* What is known of a container. False: nothing yet. Then the engines are asked, and there will be news if one knows it. */
bool engine_facts(struct engine *g, const char *id, struct engine_facts *ret);

/* All labels of a container, lines of key=value; "" when there are none or it is not known. */
void engine_labels(struct engine *g, const char *id, char ret[ENGINE_LABELS_MAX]);

enum engine_news {
    ENGINE_FACTS,   /* became known, or changed: name, labels, state */
    ENGINE_STARTED, /* the container started just now */
    ENGINE_ENDED,   /* it ended; it may still be listed */
    ENGINE_GONE,    /* it was removed: its facts are kept for a minute */
    ENGINE_MANY,    /* so many at once that some were left out: ask again for all that matter. No id */
};

/* Becomes readable (poll, epoll) when there is news; engine_next then takes them one by one. False: no more. */
int engine_fd(const struct engine *g);
bool engine_next(struct engine *g, enum engine_news *ret_news, char ret_id[ENGINE_ID_HEX + 1]);

/* When a container last made us expect a process on a GPU: it is about to run, it started, or somebody in it opened a device file.
 * Boot clock; 0: never. */
int64_t engine_announced_ns(const struct engine *g);

/* When a process in this container opened a device node of the container's own (node/openers.h); 0: not seen. */
struct opener;
int64_t engine_opened_ns(struct engine *g, const struct opener *who, const char *id, int minor);

/* Every container that is known: how many were written. For the server, at the beginning of a session. */
unsigned engine_all(struct engine *g, struct engine_facts *ret, unsigned room);

/* One label of lines of key=value. False: it is not there, and ret is "". */
bool engine_label_of(const char *labels, const char *key, char *ret, size_t room);

/* Every container that runs and has this label, with all of them as lines of key=value; not those of another user's engine, who could
 * have everybody's GPUs that way. Called under a lock: it must not come back here. The label of those that were given GPUs has UUIDs with commas; labels are cut where they are long, so many GPUs are several:
 * gpumgr.gpus, gpumgr.gpus.1, ... Runs of jobs in containers have theirs. */
#define ENGINE_RUN_LABEL "gpumgr.run"
#define ENGINE_GPUS_LABEL "gpumgr.gpus"
#define ENGINE_GPUS_EACH 8u
#define ENGINE_GPUS_PARTS 8u
typedef void (*engine_holder_fn)(void *ctx, const struct engine_facts *f, const char *labels);
void engine_each_with(struct engine *g, const char *label, engine_holder_fn each, void *ctx);
