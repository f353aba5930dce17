/* What a simulated card says now: the part of the shared memory that changes (shm.h). Never read in place; shm_read() and
 * its kin copy it out. */
#pragma once

#include <stdint.h>

#include "sim/shm_card.h"

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

struct shm_fan {
    uint32_t pct, target_pct, rpm;
    uint32_t manual; /* nvmlFanControlPolicy: 0 follows the temperature, 1 was set */
};

/* What a card says now. Behind shm_gpu.state_seq. */
struct shm_state {
    uint64_t at_us;   /* wall clock, microseconds since 1970 */
    uint64_t blind;   /* abilities that a fault took away for the moment */
    uint32_t lost;    /* every call: GPU_IS_LOST (15) */
    uint32_t hung;    /* a call never returns: see hang_call and hang_pid */
    int32_t hang_pid; /* 0: in every client; else the host pid of one (wire.h, VERB_HELLO tells a client its own) */
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

    uint64_t used_bytes; /* without reserved_bytes */
    uint64_t bar1_used_bytes;

    uint32_t pcie_gen, pcie_width;
    uint32_t pcie_tx_kbps, pcie_rx_kbps; /* KB/s over the last 20 ms, as GetPcieThroughput says */
    uint64_t pcie_tx_bytes, pcie_rx_bytes;
    uint64_t pcie_replays;
    uint64_t link_tx_kib[SHM_LINKS_MAX], link_rx_kib[SHM_LINKS_MAX];
    uint64_t link_replays, link_recoveries, link_crc_errors; /* of link 0; the other links have none */

    uint64_t ecc_corrected[2][SHM_ECC_PLACES]; /* [0] since the driver was loaded, [1] for the life of the board */
    uint64_t ecc_uncorrected[2][SHM_ECC_PLACES];
    uint32_t remapped_corrected, remapped_uncorrected, remap_pending, remap_failed;
    uint32_t retired_sbe, retired_dbe, retired_pending;
    uint32_t recovery_action; /* field 230 */

    uint32_t ecc_mode, ecc_pending;
    uint32_t persistence, compute_mode;
    uint32_t app_clocks_restricted, unused2_; /* only root may set application clocks: so from the start */
    uint32_t display_active, display_mode;
    int32_t acoustic_c;
    uint32_t last_xid; /* 0: none since the driver was loaded */
    struct shm_fan fan[SHM_FANS_MAX];

    struct shm_gpm gpm;                  /* the whole card */
    struct shm_gpm mig_gpm[SHM_MIG_MAX]; /* by place in shm_card.mig */
    uint64_t mig_used_bytes[SHM_MIG_MAX];
};

enum shm_proc_kind {
    SHM_PROC_COMPUTE = 1,
    SHM_PROC_GRAPHICS = 2,
    SHM_PROC_MPS = 4
}; /* bits: a process can be in both lists */

struct shm_proc {
    uint32_t pid;
    uint32_t kinds;
    uint64_t used_bytes;
    uint32_t gi, ci; /* UINT32_MAX: not on a MIG device */
    uint32_t mig;    /* place in shm_card.mig, UINT32_MAX likewise */
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

_Static_assert(sizeof(struct shm_state) % 8 == 0, "words");
_Static_assert(sizeof(struct shm_procs) % 8 == 0, "words");
_Static_assert(sizeof(struct shm_samples) % 8 == 0, "words");
