#include "node/owners.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "node/process.h"
#include "node/seal.h"

#define DEEPEST 64 /* generations */

struct row {
    struct owner entry;
    char (*uuid)[96];
    unsigned gpus;
};

static struct {
    pthread_mutex_t lock;
    struct row *of;
    unsigned count, room;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct row *find(const char *name) {
    for (unsigned i = 0; i < self.count; i++)
        if (strcmp(self.of[i].entry.name, name) == 0) return &self.of[i];
    return NULL;
}

static struct row *fresh(void) {
    if (self.count == self.room) {
        unsigned room = self.room ? 2 * self.room : 16;
        struct row *of = realloc(self.of, room * sizeof *of);
        if (!of) abort();
        self.of = of;
        self.room = room;
    }
    return memset(&self.of[self.count++], 0, sizeof(struct row));
}

void owners_put(const struct owner *e, const char (*uuids)[96], unsigned gpus) {
    pthread_mutex_lock(&self.lock);
    struct row *r = find(e->name);
    if (!r) {
        r = fresh();
        r->uuid = malloc(gpus * sizeof *uuids + 1);
        if (!r->uuid) abort();
        if (gpus) memcpy(r->uuid, uuids, gpus * sizeof *uuids);
        r->gpus = gpus;
    }
    r->entry = *e;
    pthread_mutex_unlock(&self.lock);
}

void owners_drop(const char *name) {
    pthread_mutex_lock(&self.lock);
    struct row *r = find(name);
    if (r) {
        free(r->uuid);
        *r = self.of[--self.count];
    }
    pthread_mutex_unlock(&self.lock);
}

void owners_hold(void) { pthread_mutex_lock(&self.lock); }

void owners_release(const char *name, pid_t shim, uint64_t shim_ticks) {
    struct row *r = find(name);
    if (r && shim) {
        r->entry.shim = shim;
        r->entry.shim_ticks = shim_ticks;
    }
    pthread_mutex_unlock(&self.lock);
}

bool owners_find(const char *name, struct owner *ret) {
    pthread_mutex_lock(&self.lock);
    const struct row *r = find(name);
    if (r) *ret = r->entry;
    pthread_mutex_unlock(&self.lock);
    return r != NULL;
}

static bool of_shim(pid_t pid, uint64_t ticks, struct owner *ret) {
    bool is_found = false;
    pthread_mutex_lock(&self.lock);
    for (unsigned i = 0; i < self.count && !is_found; i++) {
        const struct owner *e = &self.of[i].entry;
        if (e->shim != pid || e->shim_ticks != ticks) continue;
        *ret = *e;
        is_found = true;
    }
    pthread_mutex_unlock(&self.lock);
    return is_found;
}

bool owners_of_process(pid_t pid, struct owner *ret) {
    pthread_mutex_lock(&self.lock);
    bool is_any = self.count > 0;
    pthread_mutex_unlock(&self.lock);
    for (int i = 0; is_any && i < DEEPEST && pid > 1; i++) {
        pid_t parent;
        uint64_t ticks;
        if (!process_parent(pid, &parent, &ticks)) return false;
        if (of_shim(pid, ticks, ret)) return true;
        pid = parent;
    }
    return false;
}

void owners_container(const char *run, char ret[OWNERS_CONTAINER]) {
    char own[SEAL_MARK];
    seal_mark(run, own);
    snprintf(ret, OWNERS_CONTAINER, "gpumgr-%.40s-%.8s", run, own);
}

bool owners_of_container(const char *container, struct owner *ret) {
    const struct row *r = NULL;
    char name[OWNERS_CONTAINER];
    if (strncmp(container, "gpumgr-", strlen("gpumgr-")) != 0) return false;
    pthread_mutex_lock(&self.lock);
    for (unsigned i = 0; i < self.count && !r; i++) {
        owners_container(self.of[i].entry.name, name);
        if (strcmp(name, container) == 0) r = &self.of[i];
    }
    if (r) *ret = r->entry;
    pthread_mutex_unlock(&self.lock);
    return r != NULL;
}

bool owners_on_gpu(const char *uuid, struct owner *ret) {
    const struct row *has = NULL;
    pthread_mutex_lock(&self.lock);
    for (unsigned i = 0; i < self.count && !has; i++)
        for (unsigned g = 0; g < self.of[i].gpus && !has; g++)
            if (strcmp(self.of[i].uuid[g], uuid) == 0) has = &self.of[i];
    if (has) *ret = has->entry;
    pthread_mutex_unlock(&self.lock);
    return has != NULL;
}

static bool has(const struct row *r, const char *uuid) {
    bool has = false;
    for (unsigned g = 0; g < r->gpus; g++) has |= strcmp(r->uuid[g], uuid) == 0;
    return has;
}

bool owners_gives(const char *name, const char *uuid) {
    pthread_mutex_lock(&self.lock);
    const struct row *r = find(name);
    bool gives = !r || has(r, uuid);
    pthread_mutex_unlock(&self.lock);
    return gives;
}

bool owners_has_gpu(const char *uuid) {
    struct owner ignored;
    return owners_on_gpu(uuid, &ignored);
}
