#include "node/opens.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define MINORS 64
/* Marking what is marked already changes nothing. */
void opens_mark(struct opens *o) {
    char path[300];
    openings_renew(&o->files);
    for (int32_t i = -1; i < MINORS; i++) {
        if (i < 0)
            snprintf(path, sizeof path, "%s/nvidia-uvm", o->dir);
        else
            snprintf(path, sizeof path, "%s/nvidia%d", o->dir, i);
        (void)openings_add(&o->files, path, i);
    }
}

void opens_begin(struct opens *o, const char *dir) {
    memset(o, 0, sizeof *o);
    o->files.fd = -1;
    snprintf(o->dir, sizeof o->dir, "%s", dir);
    if (!*dir) return;
    openings_begin(&o->files, o->file, OPENS_FILES_MAX);
    opens_mark(o);
}

void opens_end(struct opens *o) { openings_end(&o->files); }

struct taking {
    struct opens *o;
    int64_t now_ns;
};

static void keep(void *ctx, int64_t tag, int32_t pid) {
    const struct taking *t = ctx;
    if (tag != OPENINGS_ANY || pid) openers_keep(&t->o->openers, tag, pid, t->now_ns);
}

void opens_read(struct opens *o, int64_t now_ns) {
    struct taking t = {o, now_ns};
    if (o->files.fd >= 0) (void)openings_read(&o->files, keep, &t);
}
