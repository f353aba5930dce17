/* A container as somebody asks for it from the page, the API or the command line, and what a change of one would change. The
 * same record goes from there over the server to the node, which alone acts (model/wire_container_call.h). Decoded, a spec
 * points into its record and owns nothing. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/job.h"

#define CONTAINER_RECORD_MAX (256u << 10)
#define CONTAINER_NAME_MAX 64
#define CONTAINER_NAME_OURS "-gpumgr-" /* what stands between has such names: nobody else gives them */
#define CONTAINER_MOUNTS_MAX 32u
#define CONTAINER_GPUS_MAX 64

/*   id       key        what people read */
#define CONTAINER_KEYS(X)                                                                                              \
    X(NAME, "name")                                                                                                    \
    X(IMAGE, "image")                                                                                                  \
    X(COMMAND, "command")                                                                                              \
    X(ENV, "env")                                                                                                      \
    X(MOUNTS, "mounts")                                                                                                \
    X(LABELS, "labels")                                                                                                \
    X(GPUS, "gpus")                                                                                                    \
    X(CWD, "cwd")                                                                                                      \
    X(DEADLINE, "deadline")                                                                                            \
    X(PERIOD, "period")                                                                                                \
    X(UI, "ui")                                                                                                        \
    X(RESTART, "restart")

enum container_key {
#define X(id, key) CONTAINER_KEY_##id,
    CONTAINER_KEYS(X)
#undef X
        CONTAINER_KEY_COUNT
};
const char *container_key_name(enum container_key k);

/* Texts are never NULL: "" is none. */
struct container_spec {
    unsigned given; /* BIT(CONTAINER_KEY_...): of a change, what is to be changed */
    const char *name, *image, *cwd;
    const char *deadline, *period; /* of each of its GPU tasks: labels gpumgr.deadline, gpumgr.period */
    const char *ui;                /* PORT[/PATH] of its own page: label gpumgr.ui */
    const char *restart;           /* "no", "on-failure[:N]", "always", "unless-stopped" */
    struct job_words command, env, mounts, labels;
    int gpus;               /* how many; -1: all of the machine's */
    struct job_words scope; /* just these; as many as gpus, or none */
    bool is_shared;         /* on GPUs that somebody else has, too */
};

/* What can be said without knowing the machine; the sentence begins with the key. Only keys that are given are looked at. */
int container_spec_check(const struct container_spec *s, struct error *e) MUST_CHECK;

void container_spec_encode(const struct container_spec *s, struct buf *b);
/* What container_spec_check refuses is refused. */
int container_spec_decode(const void *record, size_t len, struct container_spec *ret, struct error *e) MUST_CHECK;

/* The old one with all that the change gives. */
struct container_spec container_spec_changed(const struct container_spec *old, const struct container_spec *change);

/* What is different, a line each: key is "image" or "env.NAME"; from or to NULL: it is not there on that side. */
typedef void (*container_change_fn)(void *ctx, const char *key, const char *from, const char *to);
void container_spec_diff(const struct container_spec *from, const struct container_spec *to, container_change_fn each,
                         void *ctx);

/* As the reader below takes it back. */
void container_spec_put_json(const struct container_spec *s, struct buf *b);

/* A variable's or label's value, "KEY=VALUE" in a list; NULL: it is not there. */
const char *container_pair(const struct job_words *pairs, const char *key, size_t key_len);
