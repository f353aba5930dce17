/* What the server has the node do for people on its machine (model/wire_job.h describes the rest of the talk):
 *
 *   WANTED    server: the GPUs that somebody waits for and that a process outside the queue has; and those that an operator
 *             declared sound, and when. After WELCOME, and when that changes. What becomes of the process is the node's own
 *             decision (model/outside.h).
 *   NOTICE    server: tell the owner of this job, by this word of his `notify`. Whom and how, the seal says and not the server.
 *   NOTICED   node: the answer; one that is refused with -EAGAIN may be asked for again later. */
#pragma once

#include "model/wire_job.h"

struct wire_wanted {
    uint16_t count, sound;
    const uint8_t *at, *sound_at;
    size_t len, sound_len;
};
/* In this order: begin, so many wanted, the sound, so many of them, wire_end. */
size_t wire_begin_wanted(struct buf *b, uint16_t count);
void wire_add_wanted(struct buf *b, const char *uuid);
void wire_begin_sound(struct buf *b, uint16_t count);
void wire_add_sound(struct buf *b, const char *uuid, int64_t since_ns);
int wire_get_wanted(const struct wire_frame *f, struct wire_wanted *ret, struct error *e) MUST_CHECK;
bool wire_next_wanted(struct wire_wanted *list, char ret[96]);
bool wire_next_sound(struct wire_wanted *list, char ret[96], int64_t *since_ns); /* wall clock */

struct wire_notice {
    uint64_t id; /* comes back with the answer */
    int64_t job;
    uint16_t word; /* which of its notify */
    char kind[24]; /* "job_done" */
    char text[168];
    struct wire_sealed sealed;
};
void wire_put_notice(struct buf *b, const struct wire_notice *n);
int wire_get_notice(const struct wire_frame *f, struct wire_notice *ret, struct error *e) MUST_CHECK;

struct wire_noticed {
    uint64_t id;
    int32_t result; /* 0, or a negative errno with text */
    char text[160];
};
void wire_put_noticed(struct buf *b, const struct wire_noticed *n);
int wire_get_noticed(const struct wire_frame *f, struct wire_noticed *ret, struct error *e) MUST_CHECK;
