/* The contract between gpusim and everything that reads its GPUs: the layout of the file $GPUSIM_DIR/gpus.
 *
 * gpusim is the only writer. It fills the file under another name, renames it into place (mode 0644) and only then
 * listens on $GPUSIM_DIR/sock (wire.h), so whoever can connect can also map. Readers map it read-only.
 *
 * Three kinds of content:
 *   - constant after the rename: shm_root's plain members, shm_card. Read them directly.
 *   - single words that change: the _Atomic members of shm_root. Load them relaxed, or with acquire where said.
 *   - shm_state, shm_procs, shm_samples: each behind a sequence word. Never read them in place: shm_read() copies any
 *     part of one out, and the copy is always of one moment. Words are relaxed atomics, so this is clean under TSan.
 *
 * Sizes are multiples of eight and there are no pointers and no implicit padding, so that readers built by another
 * compiler agree. A new layout gets a new SHM_VERSION, and readers refuse what they do not know.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/ability.h"
#include "sim/shm_card.h"
#include "sim/shm_state.h"

#define SHM_MAGIC 0x6d697375706755ull /* "Ugpusim" */
#define SHM_VERSION 1u
#define SHM_FILE "gpus"   /* in $GPUSIM_DIR */
#define SHM_SOCKET "sock" /* in $GPUSIM_DIR */
#define SHM_KMSG "kmsg"   /* kernel log records, as /dev/kmsg prints them */
#define SHM_DEV "dev"     /* nvidia0.., nvidiactl, nvidia-uvm */

enum shm_driver {
    SHM_DRIVER_UP,
    SHM_DRIVER_DOWN,     /* not loaded: a reload is under way, or gpusim has ended. Init and calls: DRIVER_NOT_LOADED */
    SHM_DRIVER_MISMATCH, /* upgraded under a running kernel module. Init: LIB_RM_VERSION_MISMATCH */
};

struct shm_gpu {
    struct shm_card card;
    _Alignas(64) _Atomic uint64_t state_seq; /* odd while it is being written */
    struct shm_state state;
    _Alignas(64) _Atomic uint64_t procs_seq;
    struct shm_procs procs;
    _Alignas(64) _Atomic uint64_t samples_seq;
    struct shm_samples samples;
};

struct shm_root {
    uint64_t magic;
    uint32_t version;
    uint32_t gpu_count;
    uint64_t gpu_stride; /* sizeof(struct shm_gpu), of the first at gpu_offset */
    uint64_t gpu_offset;
    uint64_t size_bytes; /* of the file */
    char driver_version[80];
    char nvml_version[80];
    char gsp_version[80];
    uint32_t cuda_version; /* 13000 */
    uint32_t pid;          /* gpusim's */
    char dev_dir[256];     /* device files: "%s/nvidia%u" with minor_number */

    _Alignas(64) _Atomic uint32_t driver; /* enum shm_driver */
    _Atomic uint32_t generation;          /* grows by one with every driver load; handles of an older one are invalid */
    _Atomic uint32_t costs_on;            /* calls take as long as on an H200 (costs.h) */
    _Atomic uint32_t bell;                /* grows with every step: a futex word for who wants to wait for news */
    _Atomic uint64_t beat_ns;             /* CLOCK_BOOTTIME of the last step: an old one means gpusim has stopped */
    _Atomic uint64_t sim_ns;              /* simulated time since the start; differs from real time with --speed */
};

static inline const struct shm_gpu *shm_gpu(const struct shm_root *r, uint32_t index) {
    return (const struct shm_gpu *)((const char *)r + r->gpu_offset + r->gpu_stride * index);
}

/* Copies `size` bytes at `from`, which lie behind `seq`, to `to`; both a multiple of eight and eight-aligned. Waits out a
 * write under way (a few hundred nanoseconds). A writer that died in one leaves the words as they were: after about a
 * millisecond the copy is taken as it stands and -1 returned; 0 otherwise. */
int shm_read(const _Atomic uint64_t *seq, const void *from, void *to, size_t size);

/* The same for one GPU's whole state, and for one eight-aligned run of its members:
 *   shm_read_state(g, &state);
 *   SHM_GET(g, power_avg_mw, limit_mw, &state)  copies from power_avg_mw up to and including limit_mw's word */
int shm_read_state(const struct shm_gpu *g, struct shm_state *ret);
int shm_read_span(const struct shm_gpu *g, size_t first, size_t last, struct shm_state *ret);
#define SHM_GET(g, first, last, ret)                                                                                   \
    shm_read_span((g), offsetof(struct shm_state, first), offsetof(struct shm_state, last) + sizeof((ret)->last), (ret))
int shm_read_procs(const struct shm_gpu *g, struct shm_procs *ret); /* copies `count` entries, not all */
int shm_read_samples(const struct shm_gpu *g, struct shm_samples *ret);

/* Whether the card answers questions about `a` at this moment. */
static inline int shm_can(const struct shm_card *c, const struct shm_state *s, enum ability a) {
    return (int)(((c->abilities & ~s->blind) >> a) & 1);
}

/* Writer's side. Only gpusim calls these. */
void shm_write(_Atomic uint64_t *seq, void *to, const void *from, size_t size);

/* Maps $dir/gpus read-only. Returns a negative errno: -ENOENT no simulator there, -EPROTO another layout. */
int shm_open_dir(const char *dir, const struct shm_root **ret);
void shm_close_dir(const struct shm_root *r);

/* Where the simulator lives: $GPUSIM_DIR, else "/dev/shm/gpusim-UID" (memory: a disk can stall its writer). Returns `buf`. */
const char *shm_default_dir(char *buf, size_t size);
