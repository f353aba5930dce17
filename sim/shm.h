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
#ifndef SIM_SHM_H
#define SIM_SHM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/ability.h"

#define SHM_MAGIC 0x6d697375706755ull /* "Ugpusim" */
#define SHM_VERSION 1u
#define SHM_FILE "gpus"   /* in $GPUSIM_DIR */
#define SHM_SOCKET "sock" /* in $GPUSIM_DIR */
#define SHM_KMSG "kmsg"   /* kernel log records, as /dev/kmsg prints them */
#define SHM_DEV "dev"     /* nvidia0.., nvidiactl, nvidia-uvm */

enum {
    SHM_GPUS_MAX = 64,
    SHM_PROCS_MAX = 128,
    SHM_MEM_CLOCKS_MAX = 6,
    SHM_GR_CLOCKS_MAX = 240,
    SHM_FANS_MAX = 4,
    SHM_LINKS_MAX = 18,
    SHM_MIG_MAX = 7,
    SHM_SAMPLES_MAX = 120,
    SHM_ECC_PLACES = 8, /* NVML's memory locations: L1 L2 DRAM registers texture texture-shm CBU SRAM */
};

enum shm_driver {
    SHM_DRIVER_UP,
    SHM_DRIVER_DOWN,     /* not loaded: a reload is under way, or gpusim has ended. Init and calls: DRIVER_NOT_LOADED */
    SHM_DRIVER_MISMATCH, /* upgraded under a running kernel module. Init: LIB_RM_VERSION_MISMATCH */
};

/* Busy time of each unit, in nanoseconds of simulated time since the driver was loaded. GPM's metric over two samples is
 * the difference of the counter over the difference of shm_gpm.elapsed_ns. */
enum shm_unit {
    UNIT_GRAPHICS,
    UNIT_SM,
    UNIT_OCCUPANCY, /* warps over the most warps: a share, weighted by time, like the rest */
    UNIT_INTEGER,
    UNIT_TENSOR,
    UNIT_DFMA,
    UNIT_HMMA,
    UNIT_IMMA,
    UNIT_DRAM,
    UNIT_FP64,
    UNIT_FP32,
    UNIT_FP16,
    UNIT_NVDEC,
    UNIT_NVENC,
    UNIT_NVJPG,
    UNIT_NVOFA,
    UNIT_COUNT
};

struct shm_gpm {
    uint64_t elapsed_ns;
    uint64_t busy_ns[UNIT_COUNT];
    uint64_t pcie_tx_bytes, pcie_rx_bytes;     /* as the GPU sees it: tx leaves the GPU */
    uint64_t nvlink_tx_bytes, nvlink_rx_bytes; /* all links together */
};

struct shm_clocks { /* the graphics clocks that go with one memory clock, highest first */
    uint32_t mem_mhz;
    uint32_t count;
    uint32_t gr_mhz[SHM_GR_CLOCKS_MAX];
};

struct shm_mig { /* one GPU instance with one compute instance */
    char uuid[48];
    char profile[24]; /* "1g.10gb" */
    uint32_t gi, ci;
    uint32_t profile_id;  /* NVML_GPU_INSTANCE_PROFILE_* */
    uint32_t slices;      /* of compute */
    uint32_t mem_slices;
    uint32_t sm_count;
    uint32_t copy_engines, decoders;
    uint32_t encoders, jpegs, ofas;
    uint32_t place_start; /* first memory slice */
    uint64_t memory_bytes;
};

/* What a card is. Constant. */
struct shm_card {
    uint64_t abilities; /* CAN(...) */
    uint32_t index, minor_number;
    char model[24]; /* "h200", as gpusim's --model names it */
    char name[64];  /* as the driver prints it */
    char uuid[48];
    char serial[32];
    char vbios[32];
    char board_part[32];
    char inforom_image[16], inforom_oem[16], inforom_ecc[16], inforom_power[16];
    uint32_t brand;        /* nvmlBrandType_t */
    uint32_t architecture; /* nvmlDeviceArchitecture_t */
    uint32_t cc_major, cc_minor;
    uint32_t cores, sm_count;
    uint32_t bus_width_bits;
    uint32_t board_id;
    uint32_t module_id;
    uint32_t numa_node;
    uint32_t irq;
    uint32_t warps_per_sm;

    uint32_t pci_domain, pci_bus, pci_device;
    uint32_t pci_device_id, pci_subsystem_id; /* device << 16 | vendor, as NVML packs them */
    uint32_t pcie_gen_max, pcie_width_max;    /* of device and slot together */
    uint32_t pcie_gen_device;                 /* of the device alone */

    uint64_t memory_bytes, reserved_bytes, bar1_bytes;

    uint32_t power_min_mw, power_max_mw, power_default_mw;
    uint32_t power_usage_is_instant; /* GetPowerUsage: 1 on GA100 and older, else a one-second average */

    int32_t shutdown_c, slowdown_c, mem_max_c, gpu_max_c; /* absolute thresholds */
    int32_t acoustic_min_c, acoustic_default_c, acoustic_max_c; /* 0 0 0: no target temperature */
    int32_t tlimit_c[4]; /* fields 193-196: shutdown, slowdown, mem max, gpu max */

    uint32_t gr_max_mhz, gr_min_mhz, mem_max_mhz, video_max_mhz;
    uint32_t app_gr_default_mhz, app_mem_default_mhz;
    uint32_t mem_clock_count;
    struct shm_clocks clocks[SHM_MEM_CLOCKS_MAX]; /* highest memory clock first */

    uint32_t fan_count, fan_min_pct, fan_max_pct, fan_max_rpm;
    uint32_t link_count, link_version, link_speed_mbps; /* NVLink */
    uint64_t event_types;       /* nvmlEventType* bits that can be registered */
    uint64_t supported_reasons; /* clocks event reasons this card can show */
    uint32_t mig_count;         /* devices in mig[]; 0 with MIG mode off */
    uint32_t mig_mode;          /* current and pending */
    struct shm_mig mig[SHM_MIG_MAX];
};

struct shm_fan {
    uint32_t pct, target_pct, rpm;
    uint32_t manual; /* nvmlFanControlPolicy: 0 follows the temperature, 1 was set */
};

/* What a card says now. Behind shm_gpu.state_seq. */
struct shm_state {
    uint64_t at_us;    /* wall clock, microseconds since 1970 */
    uint64_t blind;    /* abilities that a fault took away for the moment */
    uint32_t lost;     /* every call: GPU_IS_LOST (15) */
    uint32_t hung;     /* a call never returns: see hang_call and hang_pid */
    int32_t hang_pid;  /* 0: in every client; else the host pid of one (wire.h, VERB_HELLO tells a client its own) */
    uint32_t unused_;
    char hang_call[64]; /* empty: every call that takes this GPU; else one NVML function's name */

    int32_t temp_c, mem_temp_c, margin_c;
    uint32_t pstate;
    uint32_t power_avg_mw, power_inst_mw;
    uint32_t limit_mw, enforced_mw; /* requested; what holds */
    uint64_t energy_mj;

    uint32_t sm_mhz, gr_mhz, mem_mhz, video_mhz;
    uint32_t app_gr_mhz, app_mem_mhz;
    uint32_t lock_gr_min_mhz, lock_gr_max_mhz; /* 0 0: not locked */
    uint32_t lock_mem_min_mhz, lock_mem_max_mhz;
    uint64_t reasons;       /* clocks event reasons */
    uint64_t reason_ns[16]; /* accumulated time of each, by bit number */

    uint32_t util_gpu, util_mem, util_enc, util_dec, util_jpg, util_ofa; /* percent */
    uint32_t util_period_us;
    uint32_t enc_sessions;

    uint64_t used_bytes;  /* without reserved_bytes */
    uint64_t bar1_used_bytes;

    uint32_t pcie_gen, pcie_width;
    uint32_t pcie_tx_kbps, pcie_rx_kbps; /* KB/s over the last 20 ms, as GetPcieThroughput says */
    uint64_t pcie_tx_bytes, pcie_rx_bytes;
    uint64_t pcie_replays;
    uint64_t link_tx_kib[SHM_LINKS_MAX], link_rx_kib[SHM_LINKS_MAX];
    uint64_t link_replays, link_recoveries, link_crc_errors; /* of link 0; the other links have none */

    uint64_t ecc_corrected[2][SHM_ECC_PLACES];   /* [0] since the driver was loaded, [1] for the life of the board */
    uint64_t ecc_uncorrected[2][SHM_ECC_PLACES];
    uint32_t remapped_corrected, remapped_uncorrected, remap_pending, remap_failed;
    uint32_t retired_sbe, retired_dbe, retired_pending;
    uint32_t recovery_action; /* field 230 */

    uint32_t ecc_mode, ecc_pending;
    uint32_t persistence, compute_mode;
    uint32_t display_active, display_mode;
    int32_t acoustic_c;
    uint32_t last_xid; /* 0: none since the driver was loaded */
    struct shm_fan fan[SHM_FANS_MAX];

    struct shm_gpm gpm;                  /* the whole card */
    struct shm_gpm mig_gpm[SHM_MIG_MAX]; /* by place in shm_card.mig */
    uint64_t mig_used_bytes[SHM_MIG_MAX];
};

enum shm_proc_kind { SHM_PROC_COMPUTE = 1, SHM_PROC_GRAPHICS = 2 }; /* bits: a process can be in both lists */

struct shm_proc {
    uint32_t pid;
    uint32_t kinds;
    uint64_t used_bytes;
    uint32_t gi, ci;    /* UINT32_MAX: not on a MIG device */
    uint32_t mig;       /* place in shm_card.mig, UINT32_MAX likewise */
    uint32_t sm_pct, mem_pct, enc_pct, dec_pct, jpg_pct, ofa_pct;
    uint32_t unused_;
    uint64_t util_at_us; /* end of the window the percentages are of; GetProcessUtilization's time stamp */
    char name[32];
};

/* Who uses the card. Behind shm_gpu.procs_seq. */
struct shm_procs {
    uint64_t count;
    struct shm_proc proc[SHM_PROCS_MAX];
};

/* One point of the history behind nvmlDeviceGetSamples, taken six times a second. */
struct shm_sample {
    uint64_t at_us;
    uint32_t power_mw, util_gpu, util_mem, util_enc, util_dec, util_jpg, util_ofa;
    uint32_t sm_mhz, mem_mhz;
    uint32_t unused_;
};

/* Behind shm_gpu.samples_seq. The newest is at (written - 1) % SHM_SAMPLES_MAX. */
struct shm_samples {
    uint64_t written;
    struct shm_sample sample[SHM_SAMPLES_MAX];
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
    _Atomic uint64_t beat_ns;             /* CLOCK_MONOTONIC of the last step: an old one means gpusim has stopped */
    _Atomic uint64_t sim_ns;              /* simulated time since the start; differs from real time with --speed */
};

_Static_assert(sizeof(struct shm_card) % 8 == 0, "words");
_Static_assert(sizeof(struct shm_state) % 8 == 0, "words");
_Static_assert(sizeof(struct shm_procs) % 8 == 0, "words");
_Static_assert(sizeof(struct shm_samples) % 8 == 0, "words");

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
    shm_read_span((g), offsetof(struct shm_state, first),                                                              \
                  offsetof(struct shm_state, last) + sizeof((ret)->last), (ret))
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

/* Where the simulator lives: $GPUSIM_DIR, else "/tmp/gpusim-UID". Returns `buf`. */
const char *shm_default_dir(char *buf, size_t size);

#endif
