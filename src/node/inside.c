#include "node/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define USUAL_MAX 16 /* /dev/nvidia0 to 15, where nobody says which */

void inside_open(struct inside *i) { openings_begin(&i->files, i->file, INSIDE_MAX); }

void inside_close(struct inside *i) { openings_end(&i->files); }

bool inside_is_gpu(const char *path) {
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/nvidia", 7) != 0 || strstr(path, "..")) return false;
    size_t digits = strspn(name + 7, "0123456789");
    return digits > 0 && digits <= 3 && !name[7 + digits];
}

#define MINOR_BITS 8

/* Ids are random digits: the first of them are as good as all. */
int64_t inside_tag(const char *container_id, int minor) {
    char digits[14] = {0};
    memcpy(digits, container_id, strnlen(container_id, sizeof digits - 1));
    return (strtoll(digits, NULL, 16) << MINOR_BITS) + (minor + 1) % (1 << MINOR_BITS);
}

int inside_minor(int64_t tag) { return tag == OPENINGS_ANY ? -1 : (int)(tag & ((1 << MINOR_BITS) - 1)) - 1; }

static void add(struct inside *i, const struct engine_facts *f, const char *path) {
    char whole[128];
    struct stat link;
    if (!inside_is_gpu(path)) return;
    snprintf(whole, sizeof whole, "/proc/%d/root%s", f->pid, path);
    if (lstat(whole, &link) < 0 || S_ISLNK(link.st_mode)) return; /* it may lead anywhere */
    int minor = atoi(strrchr(path, '/') + strlen("/nvidia"));
    (void)openings_add(&i->files, whole, inside_tag(f->id, minor));
}

void inside_add(struct inside *i, const struct container_said *said) {
    const struct engine_facts *f = &said->facts;
    if (i->files.fd < 0 || !f->has_own_devices || f->pid <= 0) return;
    for (unsigned k = 0; k < said->device_count; k++) add(i, f, said->device[k]);
    for (int k = 0; !said->device_count && k < USUAL_MAX; k++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/nvidia%d", k);
        add(i, f, path);
    }
}

void inside_read(struct inside *i, openings_fn each, void *ctx) { (void)openings_read(&i->files, each, ctx); }
