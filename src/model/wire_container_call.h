/* What is asked of a node about its containers, and answered (model/wire.h says how it lies on the wire).
 *
 * A server passes on what an account asks, by its name: who that is here, the node's own file says. On the node's own socket
 * (DIR/run/containers.sock, anyone may connect, one call a connection) the kernel says who asks, and account is not looked at.
 * The node decides whether he may, does it, and answers; nothing is kept, and what got no answer may or may not have happened.
 *
 *   CALL    server or caller: a verb, the container's id or name, words of its own
 *   ANSWER  node: 0 and a JSON document (LOG: a text of its own), or a negative errno and a sentence
 *
 * After the answer to FOLLOW and SHELL the connection carries STREAM_DATA, STREAM_SIZE and at last STREAM_END (model/wire_stream.h). */
#pragma once

#include "model/wire.h"

#define CONTAINERS_SOCKET "containers.sock" /* in the run directory */

/*   id       name       does it change anything */
#define CONTAINER_VERBS(X)                                                                                             \
    X(LIST, "list", false)                                                                                             \
    X(IMAGES, "images", false)                                                                                         \
    X(SPEC, "spec", false)                                                                                             \
    X(LOG, "log", false)                                                                                               \
    X(FOLLOW, "log", false)  /* on the node's own socket alone: the connection becomes a stream */                     \
    X(SHELL, "shell", false) /* the same */                                                                            \
    X(UI, "ui", false)       /* where its own page is, for whoever may open it */                                      \
    X(TRY, "try", false)     /* what EDIT would change */                                                              \
    X(ADD, "add", true)                                                                                                \
    X(EDIT, "edit", true)                                                                                              \
    X(START, "start", true)                                                                                            \
    X(STOP, "stop", true)                                                                                              \
    X(RESTART, "restart", true)                                                                                        \
    X(REMOVE, "remove", true)

enum container_verb {
#define X(id, name, changes) CONTAINER_VERB_##id,
    CONTAINER_VERBS(X)
#undef X
        CONTAINER_VERB_COUNT
};
const char *container_verb_name(enum container_verb v);
bool container_verb_changes(enum container_verb v);

struct wire_container_call {
    uint64_t request;
    uint8_t verb;
    char account[64];
    bool is_admin;
    bool is_shared;        /* START: on GPUs that somebody else has, too */
    char of[72];           /* id or name; "" where there is none yet */
    uint32_t lines;        /* LOG, FOLLOW: the last so many */
    const uint8_t *record; /* ADD, TRY, EDIT: model/container_spec */
    size_t record_len;
};
void wire_put_container_call(struct buf *b, const struct wire_container_call *c);
int wire_get_container_call(const struct wire_frame *f, struct wire_container_call *ret, struct error *e) MUST_CHECK;

#define WIRE_CONTAINER_ANSWER_MAX (2u << 20)
struct wire_container_answer {
    uint64_t request;
    int32_t result;
    char text[248];
    const uint8_t *body;
    size_t len;
};
void wire_put_container_answer(struct buf *b, const struct wire_container_answer *a);
int wire_get_container_answer(const struct wire_frame *f, struct wire_container_answer *ret, struct error *e)
    MUST_CHECK;
