/* The conversation with one engine over its Unix socket: a stream of events that stays open, and beside it one question at a
 * time (the list, a container's description, whether it is there). A state machine on two sockets that never block;
 * whoever owns it brings poll and the time. Everything the engine may send has a limit, in size and in time, and an engine
 * that breaks one is left alone for a while. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_reader.h"
#include "node/container.h"
#include "node/engine.h"

enum talk_question { TALK_NOTHING, TALK_LIST, TALK_INSPECT, TALK_PING };

enum { TALK_FDS = 2, TALK_QUEUE = 128 };

struct talk_line {
    int fd; /* -1: none */
    struct http_reader reader;
    struct buf body;
    int64_t since_ns; /* asked then */
};

/* Who is told. Called from within talk_ready and talk_tick. */
struct talk_ears {
    void *ctx;
    void (*event)(void *ctx, unsigned number, enum container_action action, const struct container_said *said);
    /* One row of the list of all that run, and its end: what was not in it does not run. asked_ns: what an event said since
     * then is newer. */
    void (*listed)(void *ctx, unsigned number, const struct container_said *said, int64_t asked_ns);
    void (*list_over)(void *ctx, unsigned number, int64_t asked_ns);
    void (*described)(void *ctx, unsigned number, const struct container_said *said, int64_t asked_ns);
    void (*unknown)(void *ctx, unsigned number, const char *id); /* the engine does not know it */
};

struct talk {
    unsigned number;
    enum engine_kind kind;
    char path[108];
    uint32_t uid; /* who listens there */
    const struct talk_ears *ears;
    struct talk_line stream, ask;
    enum talk_question asked;
    char asked_id[ENGINE_ID_HEX + 1];
    bool needs_list, is_subscribed, was_live, is_silent, is_said;
    bool passes_over; /* the rest of an overlong line */
    unsigned failures, bad_lines;
    int64_t try_ns, heard_ns, live_ns; /* next try; when the engine last said anything, when it last was live */
    int64_t subscribed_ns, listed_ns;  /* the stream is open since then; last asked for the list */
    int64_t second_ns;                 /* what it may say in this second */
    uint64_t second_bytes;
    char queue[TALK_QUEUE][ENGINE_ID_HEX + 1]; /* to be described */
    unsigned queue_at, queue_count;
};

void talk_init(struct talk *t, unsigned number, enum engine_kind kind, const char *path, const struct talk_ears *ears);
void talk_done(struct talk *t);

/* Asks for a description when its turn comes. */
void talk_ask(struct talk *t, const char *id);

/* Fills in TALK_FDS entries; talk_ready gets them back. */
void talk_poll(const struct talk *t, struct pollfd *fds, int64_t now_ns);
void talk_ready(struct talk *t, const struct pollfd *fds, int64_t now_ns);

/* Connects, asks, gives up. */
void talk_tick(struct talk *t, int64_t now_ns);
int64_t talk_next_ns(const struct talk *t, int64_t now_ns);

/* The event stream is open and the engine answers. */
bool talk_is_live(const struct talk *t);
/* Containers may start unseen: it should be there and does not talk. Not so where no engine ever was. */
bool talk_is_missed(const struct talk *t, int64_t now_ns);
