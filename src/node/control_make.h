/* Parts of what the engine is told of a container, for a new one (control_make.c) and one anew (control_edit.c). */
#pragma once

#include "node/control_own.h"

#define MAKE_S 60

/* What makes it ours; spec's own besides. */
struct making {
    const struct container_spec *spec;
    uint32_t uid;
    const char *account, *pin, *gpus; /* gpus: UUIDs with commas */
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
