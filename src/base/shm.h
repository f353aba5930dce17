/* A file on tmpfs that several processes map: made beside its name and renamed in when it is whole, so that no one
 * maps a half-made one. And waiting on a word of it: a read-only mapping is enough to wait. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct shm {
    void *mem;
    size_t size;
    dev_t dev; /* which file this is: a later one of the same name differs */
    ino_t ino;
};

/* A new zero-filled file, mapped for writing under a name of its own; shm_publish renames it to path. Space is
 * taken at once: a full tmpfs fails here and not later with SIGBUS. */
int shm_create(const char *path, size_t size, mode_t mode, struct shm *ret, struct error *e) MUST_CHECK;
int shm_publish(const char *path, struct error *e) MUST_CHECK;

int shm_open_file(const char *path, bool writable, size_t min_size, struct shm *ret, struct error *e) MUST_CHECK;
void shm_done(struct shm *s);

/* True when path now names another file than the one mapped (or none). */
bool shm_is_replaced(const struct shm *s, const char *path);

/* Returns when the word is no longer seen, when woken, or after the timeout. */
void shm_wait(const _Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns);
void shm_wake(_Atomic uint32_t *word);
