/* Both sides of the sequence words, and mapping the file. See shm.h for the contract. */
#include "sim/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A copy that keeps meeting a writer gives way to it this many times before it takes what is there. The writer needs
 * under a microsecond and comes at most a hundred times a second, so only a dead one is ever met that often. */
enum { READ_TRIES = 2000 };

static void copy_words_out(uint64_t *to, const uint64_t *from, size_t words) {
    for (size_t i = 0; i < words; i++) to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

int shm_read(const _Atomic uint64_t *seq, const void *from, void *to, size_t size) {
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t before = atomic_load_explicit(seq, memory_order_acquire);
        if (before & 1) {
            sched_yield();
            continue;
        }
        copy_words_out(to, from, size / 8);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(seq, memory_order_relaxed) == before) return 0;
    }
    copy_words_out(to, from, size / 8);
    return -1;
}

void shm_write(_Atomic uint64_t *seq, void *to, const void *from, size_t size) {
    uint64_t before = atomic_load_explicit(seq, memory_order_relaxed);
    atomic_store_explicit(seq, before | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    uint64_t *w = to;
    const uint64_t *r = from;
    for (size_t i = 0; i < size / 8; i++) __atomic_store_n(&w[i], r[i], __ATOMIC_RELAXED);
    atomic_store_explicit(seq, (before | 1) + 1, memory_order_release);
}

int shm_read_state(const struct shm_gpu *g, struct shm_state *ret) {
    return shm_read(&g->state_seq, &g->state, ret, sizeof *ret);
}

int shm_read_span(const struct shm_gpu *g, size_t first, size_t last, struct shm_state *ret) {
    first &= ~(size_t)7;
    last = (last + 7) & ~(size_t)7;
    return shm_read(&g->state_seq, (const char *)&g->state + first, (char *)ret + first, last - first);
}

int shm_read_procs(const struct shm_gpu *g, struct shm_procs *ret) {
    for (;;) {
        uint64_t count;
        if (shm_read(&g->procs_seq, &g->procs.count, &count, sizeof count) < 0) return -1;
        if (count > SHM_PROCS_MAX) count = SHM_PROCS_MAX;
        size_t size = offsetof(struct shm_procs, proc) + count * sizeof(struct shm_proc);
        int r = shm_read(&g->procs_seq, &g->procs, ret, size);
        if (r < 0 || ret->count <= count) return r;
    }
}

int shm_read_samples(const struct shm_gpu *g, struct shm_samples *ret) {
    return shm_read(&g->samples_seq, &g->samples, ret, sizeof *ret);
}

/* A file of another version, cut short, or not ours must not become a bus error in whoever maps it. */
static int check_root(const struct shm_root *r, uint64_t size) {
    if (r->magic != SHM_MAGIC || r->version != SHM_VERSION) return -EPROTO;
    if (r->size_bytes != size || r->gpu_count > SHM_GPUS_MAX || r->gpu_stride != sizeof(struct shm_gpu)) return -EPROTO;
    if (r->gpu_offset % 64 != 0 || r->gpu_offset + r->gpu_stride * r->gpu_count > size) return -EPROTO;
    return 0;
}

int shm_open_dir(const char *dir, const struct shm_root **ret) {
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/" SHM_FILE, dir) >= sizeof path) return -ENAMETOOLONG;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;

    struct stat st;
    int r = fstat(fd, &st) < 0 ? -errno : (size_t)st.st_size < sizeof(struct shm_root) ? -EPROTO : 0;
    void *map = r < 0 ? MAP_FAILED : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (r == 0 && map == MAP_FAILED) r = -errno;
    close(fd);
    if (r < 0) return r;

    r = check_root(map, (uint64_t)st.st_size);
    if (r < 0) {
        munmap(map, (size_t)st.st_size);
        return r;
    }
    *ret = map;
    return 0;
}

void shm_close_dir(const struct shm_root *r) {
    if (r) munmap((void *)(uintptr_t)r, r->size_bytes);
}

const char *shm_default_dir(char *buf, size_t size) {
    const char *dir = getenv("GPUSIM_DIR");
    if (dir && *dir)
        snprintf(buf, size, "%s", dir);
    else
        snprintf(buf, size, "/dev/shm/gpusim-%u", (unsigned)getuid());
    return buf;
}
