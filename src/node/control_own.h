/* What the files of control share: one call, who makes it, the container it is about. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/instance.h"
#include "base/json_slice.h"
#include "model/container_spec.h"
#include "model/settings.h"
#include "model/wire_container_call.h"
#include "node/seal.h"
#include "node/stream.h"

/* Who asks, as this machine knows him. */
struct control_who {
    struct seal_context login;
    struct buf keep, groups; /* what login points into */
    char account[64];        /* "": a caller of this machine */
    bool is_admin;           /* an administrator of the server, with a user here */
    bool uses_engine;        /* may use the engine's socket himself, and so do everything anyway */
};

/* One call on its way; each has a thread. */
struct control {
    struct settings settings;
    const struct instance *where;
    char socket[108]; /* of the engine */
    struct wire_container_call call;
    struct control_who who;
    struct wire_container_answer answer;
    struct stream_end end; /* FOLLOW, SHELL: what the caller stays at; fd 0: nothing */
    struct buf out;        /* the answer's body */
    char event[168];       /* what happened, for everybody's list of events; "": nothing */
};

/* A container as its engine describes it. */
struct control_seen {
    struct buf json, image_json;
    struct json_slice all, config, host, state, labels;
    char id[72], name[128], image[256], account[64], run[48], pin[40];
    bool is_gpu;  /* has or had to do with GPUs */
    bool is_ours; /* made here: uid is whose it is. An image's own labels say nothing */
    bool is_running;
    uint32_t uid, gid;
};
void control_seen_done(struct control_seen *s);

/* ---- control_who.c ---- */

int control_who_account(struct control *c, struct error *e) MUST_CHECK;
/* What an administrator may do with everybody's, whatever user he is on this machine: it runs nothing that he chose. */
bool control_is_for_admins(enum container_verb v);
void control_who_local(struct control *c, int fd, uint32_t uid, uint32_t gid);
/* Whose container it is, to open what it mounts; gid: of a number that has no name here. */
void control_login(uint32_t uid, uint32_t gid, struct control_who *ret);
void control_who_done(struct control_who *w);
/* -EPERM and whose it is. */
int control_may(const struct control_who *w, const struct control_seen *s, enum container_verb v, struct error *e)
    MUST_CHECK;
/* Besides: to run something in a container is to be who it runs as. */
bool control_may_enter(const struct control_who *w, const struct control_seen *s);

/* ---- control_look.c ---- */

/* GET of the engine, as JSON that was checked. -ENOENT: there is none, said in `what`'s name. */
int control_get(const struct control *c, const char *target, const char *what, struct buf *ret, struct error *e)
    MUST_CHECK;
/* POST or DELETE; the engine's own sentence where it refuses. -ENOENT, -EEXIST (a conflict), else -EIO. */
int control_do(const struct control *c, const char *method, const char *target, const char *body, int timeout_s,
               struct buf *answer, struct error *e) MUST_CHECK;

int control_see(const struct control *c, const char *of, struct control_seen *ret, struct error *e) MUST_CHECK;
/* The image's own description, once; what is equal there was not asked for by anybody. */
int control_see_image(const struct control *c, struct control_seen *s, struct error *e) MUST_CHECK;
int control_list(struct control *c, struct error *e) MUST_CHECK;
int control_images(struct control *c, struct error *e) MUST_CHECK;
/* As it could be asked for again. keep holds what *ret points into. */
void control_spec(const struct control_seen *s, struct buf *keep, struct container_spec *ret);

/* ---- control_asked.c ---- */

/* Which GPUs it asked its engine for, with commas: indices, UUIDs. count: how many, -1 all, also where the engine picks which.
 * False: it asked for none. */
bool control_asked(const struct control_seen *s, struct buf *ids, int *ret_count);

/* ---- control_make.c ---- */

int control_add(struct control *c, struct error *e) MUST_CHECK;
/* TRY and EDIT. */
int control_edit(struct control *c, struct error *e) MUST_CHECK;

/* ---- control_mend.c ---- */

/* Puts right what a change that was interrupted left: true when nothing is left to do. */
bool control_mend(struct control *c);

/* ---- control_act.c ---- */

int control_act(struct control *c, struct error *e) MUST_CHECK;
/* POST /containers/ID/VERB. */
int control_post(const struct control *c, const char *id, const char *verb, int timeout_s, struct error *e) MUST_CHECK;
/* Before it starts: its GPUs are free, or is_shared; what it mounts is bound. */
int control_ready(struct control *c, const struct control_seen *s, bool is_shared, struct error *e) MUST_CHECK;
/* It should have come up with the machine, and could not. */
bool control_was_kept(const struct control_seen *s);
int control_remove(const struct control *c, const struct control_seen *s, bool forces, struct error *e) MUST_CHECK;

/* Which GPUs: `count` free ones, or just those of scope. Written as UUIDs with commas. */
struct job_words;
int control_gpus(int count, const struct job_words *scope, bool is_shared, const char *own, char *ret, size_t room,
                 struct error *e) MUST_CHECK;
/* Where what it mounts is bound: in a file system of our own, DIR/containers. */
void control_pin_dir(const struct control *c, const char *pin, char *ret, size_t room);
void control_tidy(const struct control *c);
/* Opens them as `who` and binds them there; ret: a JSON object with "Mounts". */
int control_bind(const struct control *c, const struct seal_context *who, const char *pin,
                 const struct job_words *words, struct buf *ret, struct error *e) MUST_CHECK;

/* ---- control_log.c ---- */

int control_log(struct control *c, struct error *e) MUST_CHECK;
/* The last so many lines, and what comes until the container ends. */
int control_follow(struct control *c, const char *of, unsigned lines, struct stream_end *ret, struct error *e)
    MUST_CHECK;

/* ---- control_session.c ---- */

/* -EAGAIN: he, or all together, have too many. */
int control_session_begin(uint32_t uid, struct error *e) MUST_CHECK;
/* Until the end of one side; end is done then. */
void control_session(int fd, struct stream_end *end);
void control_session_end(uint32_t uid);

/* ---- control_shell.c ---- */

int control_shell(struct control *c, const char *of, unsigned rows, unsigned columns, struct stream_end *ret,
                  struct error *e) MUST_CHECK;
/* The port of its own page, and no other. */
int control_port(struct control *c, const struct wire_stream_open *o, struct stream_end *ret, struct error *e)
    MUST_CHECK;
int control_ui(struct control *c, struct error *e) MUST_CHECK;
