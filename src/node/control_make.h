/* Parts of what the engine is told of a container, for a new one (control_make.c) and one anew (control_edit.c). */
#pragma once

#include "node/control_own.h"

#define MAKE_S 60

/* What makes it ours; spec's own besides. */
struct making {
    const struct container_spec *spec;
    uint32_t uid;
    const char *account, *pin, *gpus; /* gpus: UUIDs with commas */
    const char *from;                 /* the id of the one that it takes the place of; "": of none */
    bool is_ours;
};

void make_words(struct buf *b, const char *key, const struct job_words *w);
/* Items of a list. uuids "": it has none, and an image that asks for all gets none either. */
void make_gpu_env(struct buf *b, const char *uuids);
void make_devices(const struct control *c, struct buf *b, const char *uuids);
void make_restart(struct buf *b, const char *text);
void make_labels(struct buf *b, const struct making *m);

/* A name for the directory in which its mounts are bound. */
void make_pin(char ret[40]);
void make_let_go(const struct control *c, const char *pin);

/* It is on this machine, and says nothing that only we say. */
int make_check_image(const struct control *c, const char *image, struct error *e) MUST_CHECK;
int make_create(const struct control *c, const char *name, const char *body, char ret_id[72], struct error *e)
    MUST_CHECK;

/* ---- control_edit.c, for what was interrupted (control_mend.c) ---- */

#define EDIT_FROM "gpumgr.from" /* a label: the id of the one that it takes the place of */
#define EDIT_NEW_UP CONTAINER_NAME_OURS "new-up"
#define EDIT_NEW_DOWN CONTAINER_NAME_OURS "new-down"
#define EDIT_UP CONTAINER_NAME_OURS "up"
#define EDIT_DOWN CONTAINER_NAME_OURS "down"

int edit_rename(const struct control *c, const char *id, const char *name, struct error *e) MUST_CHECK;
int edit_force_away(const struct control *c, const char *id);
/* The old one as it was, without the new one ("": there is none). What fails here is tried again by control_mend. */
int edit_put_back(const struct control *c, const struct control_seen *old, const char *new_id, bool is_aside);
