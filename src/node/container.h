/* What engines say about containers, from JSON to facts: events, the list, one container's whole description. Pure, and
 * lenient about all that it does not need: a member of the wrong type is a member that is not there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "node/engine.h"

enum { CONTAINER_DEVICES_MAX = 16 };

/* What one message says. Of the facts those that it does not mention are zero. */
struct container_said {
    struct engine_facts facts;
    bool has_labels;  /* they were there: those of ours that are missing are gone. Of events: one of ours was there */
    bool has_devices; /* has_own_devices and device count */
    unsigned device_count;
    char labels[ENGINE_LABELS_MAX];         /* of a list or a description: all of them, lines of key=value */
    char device[CONTAINER_DEVICES_MAX][64]; /* paths of its own device nodes, as it sees them */
};

enum container_action {
    CONTAINER_OTHER, /* nothing that matters here */
    CONTAINER_CREATED,
    CONTAINER_STARTED,
    CONTAINER_PAUSED,
    CONTAINER_UNPAUSED,
    CONTAINER_ENDED,
    CONTAINER_REMOVED,
    CONTAINER_RENAMED,
};

/* One event of GET /events. -EINVAL: not an event of a container with a proper id. */
int container_event(const char *json, size_t len, enum container_action *ret_action, struct container_said *ret,
                    struct error *e) MUST_CHECK;

/* GET /containers/ID/json */
int container_inspect(const char *json, size_t len, struct container_said *ret, struct error *e) MUST_CHECK;

/* GET /containers/json: each is called for every row with a proper id. Returns how many those were. */
typedef void (*container_fn)(void *ctx, const struct container_said *said);
int container_list(const char *json, size_t len, container_fn each, void *ctx, struct error *e) MUST_CHECK;

/* Puts what was said over what is known. True: that changed something that others see. */
bool container_merge(struct engine_facts *known, const struct container_said *said);

bool container_is_same(const struct engine_facts *a, const struct engine_facts *b);

/* 64 lower-case hexadecimal digits. */
bool container_is_id(const char *text);

/* One label; those that are not ours are passed over. */
void container_label(struct engine_facts *f, const char *key, const char *value);

/* 2026-11-15T08:00:00.25Z or with +02:00; 0: not a time after 1970. */
int64_t container_time_ns(const char *text);
