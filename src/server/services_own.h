/* What the files services*.c share, and nobody else. */
#pragma once

#include "base/clock.h"
#include "model/service.h"
#include "net/loop.h"
#include "server/queue_spawn.h"
#include "server/service_store.h"
#include "server/services.h"

#define SERVICES_MAX 1000
#define SERVICE_REVISIONS 10 /* that are kept */
#define SERVICE_CHECKS 60    /* that are shown */

struct service_revision {
    uint32_t number;
    int64_t made_ns;
    char *by, *ask;
    struct buf record, seal;
    struct job_spec spec; /* points into the record, and rules into the spec */
    struct service_spec rules;
    bool is_stored;
};

struct service_check {
    int64_t at_ns, job;
    int32_t took_ms;
    bool is_good;
};

struct service_ack {
    struct service_ack *next;
    queue_done_fn done;
    void *ctx;
};

struct service_one {
    int64_t id, made_ns;
    uint32_t uid;
    uint8_t origin;
    char *name, *user, *account, *node;
    struct service life;
    struct service_revision **revision; /* the oldest first */
    size_t revisions;
    bool is_stored, is_dirty, is_spawning; /* dirty: the file says something else */
    bool wants_settle, is_leaving;         /* leaving: its row is being dropped */
    int64_t again_ns;
    struct service_ack *acks; /* told when it is written next */
    struct service_check check[SERVICE_CHECKS];
    unsigned checks; /* of all time */
    char check_text[160];
    enum service_state told; /* the state that people last heard of */
    char told_text[SERVICE_TEXT];
};

struct services {
    struct loop *loop;
    struct state *state;
    struct queue *queue;
    queue_event_fn on_event;
    void *event_ctx;
    struct service_one **of; /* by number */
    size_t count;
    int64_t last_id;
    bool is_posted, is_writing, is_started, is_stopping;
};

/* services.c */
struct service_one *service_by_id(const struct services *s, int64_t id);
struct service_revision *service_revision_of(const struct service_one *o, uint32_t number); /* or NULL */
struct service_one *service_one_new(const struct service_row *row);
void service_one_free(struct service_one *o);
void service_one_add(struct services *s, struct service_one *o);
void service_one_drop(struct services *s, struct service_one *o);
int service_revision_add(struct service_one *o, const struct service_revision_row *row, bool is_stored, struct error *e)
    MUST_CHECK;
void service_touch(struct services *s, struct service_one *o); /* something changed: settled and written soon */
void services_settle_soon(struct services *s);
void service_end_job(struct services *s, int64_t job); /* its run is to end; one that is over stays so */
bool service_may(const struct service_one *o, const struct queue_who *who);

/* services_flush.c */
void services_write(struct services *s);
void service_spawn(struct services *s, struct service_one *o, uint32_t revision);

/* services_take.c */
bool services_is_own(const struct job_spec *s);
int services_take(void *ctx, const struct queue_submit *from, queue_submitted_fn done, void *done_ctx, struct error *e)
    MUST_CHECK;
