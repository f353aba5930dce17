/* gpusim-facts DIR: what stands in the simulator's shared memory, as JSON. The tests hold the NVML library's answers
 * against it, so it reads the memory by its layout and shares nothing with the library. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/shm.h"

enum kind { TEXT, U32, I32, U64 };
struct member {
    const char *name;
    enum kind kind;
    size_t at;
    uint32_t count; /* 1 is a value, more an array; of TEXT the size */
};

#define IN_CARD(kind, m)                                                                                               \
    { #m, kind, offsetof(struct shm_card, m), 1 }
#define TEXT_CARD(m)                                                                                                   \
    { #m, TEXT, offsetof(struct shm_card, m), sizeof(((struct shm_card *)0)->m) }
#define IN_STATE(kind, m)                                                                                              \
    { #m, kind, offsetof(struct shm_state, m), 1 }
#define LIST_STATE(kind, m, n)                                                                                         \
    { #m, kind, offsetof(struct shm_state, m), n }

static const struct member card_members[] = {
    IN_CARD(U64, abilities),
    IN_CARD(U32, index),
    IN_CARD(U32, minor_number),
    TEXT_CARD(model),
    TEXT_CARD(name),
    TEXT_CARD(uuid),
    TEXT_CARD(serial),
    TEXT_CARD(vbios),
    TEXT_CARD(board_part),
    TEXT_CARD(inforom_image),
    TEXT_CARD(inforom_oem),
    TEXT_CARD(inforom_ecc),
    IN_CARD(U32, brand),
    IN_CARD(U32, architecture),
    IN_CARD(U32, cc_major),
    IN_CARD(U32, cc_minor),
    IN_CARD(U32, cores),
    IN_CARD(U32, bus_width_bits),
    IN_CARD(U32, board_id),
    IN_CARD(U32, irq),
    IN_CARD(U32, numa_node),
    IN_CARD(U32, pci_domain),
    IN_CARD(U32, pci_bus),
    IN_CARD(U32, pci_device),
    IN_CARD(U32, pci_device_id),
    IN_CARD(U32, pci_subsystem_id),
    IN_CARD(U32, pcie_gen_max),
    IN_CARD(U32, pcie_gen_device),
    IN_CARD(U32, pcie_width_max),
    IN_CARD(U64, memory_bytes),
    IN_CARD(U64, reserved_bytes),
    IN_CARD(U64, bar1_bytes),
    IN_CARD(U32, power_min_mw),
    IN_CARD(U32, power_max_mw),
    IN_CARD(U32, power_default_mw),
    IN_CARD(U32, power_usage_is_instant),
    IN_CARD(I32, shutdown_c),
    IN_CARD(I32, slowdown_c),
    IN_CARD(I32, mem_max_c),
    IN_CARD(I32, gpu_max_c),
    IN_CARD(I32, acoustic_min_c),
    IN_CARD(I32, acoustic_max_c),
    IN_CARD(U32, gr_max_mhz),
    IN_CARD(U32, mem_max_mhz),
    IN_CARD(U32, video_max_mhz),
    IN_CARD(U32, app_gr_default_mhz),
    IN_CARD(U32, app_mem_default_mhz),
    IN_CARD(U32, mem_clock_count),
    IN_CARD(U32, fan_count),
    IN_CARD(U32, fan_min_pct),
    IN_CARD(U32, fan_max_pct),
    IN_CARD(U32, link_count),
    IN_CARD(U32, link_speed_mbps),
    IN_CARD(U64, event_types),
    IN_CARD(U64, supported_reasons),
    IN_CARD(U32, mig_count),
    IN_CARD(U32, mig_mode),
    {"tlimit_c", I32, offsetof(struct shm_card, tlimit_c), 4},
};

static const struct member state_members[] = {
    IN_STATE(U64, at_us),
    IN_STATE(U64, blind),
    IN_STATE(U32, lost),
    IN_STATE(U32, hung),
    IN_STATE(I32, temp_c),
    IN_STATE(I32, mem_temp_c),
    IN_STATE(I32, margin_c),
    IN_STATE(U32, pstate),
    IN_STATE(U32, power_avg_mw),
    IN_STATE(U32, power_inst_mw),
    IN_STATE(U32, limit_mw),
    IN_STATE(U32, enforced_mw),
    IN_STATE(U64, energy_mj),
    IN_STATE(U32, sm_mhz),
    IN_STATE(U32, gr_mhz),
    IN_STATE(U32, mem_mhz),
    IN_STATE(U32, video_mhz),
    IN_STATE(U32, app_gr_mhz),
    IN_STATE(U32, app_mem_mhz),
    IN_STATE(U32, lock_gr_min_mhz),
    IN_STATE(U32, lock_gr_max_mhz),
    IN_STATE(U64, reasons),
    IN_STATE(U32, util_gpu),
    IN_STATE(U32, util_mem),
    IN_STATE(U32, util_enc),
    IN_STATE(U32, util_dec),
    IN_STATE(U32, util_jpg),
    IN_STATE(U32, util_ofa),
    IN_STATE(U64, used_bytes),
    IN_STATE(U64, bar1_used_bytes),
    IN_STATE(U32, pcie_gen),
    IN_STATE(U32, pcie_width),
    IN_STATE(U64, pcie_tx_bytes),
    IN_STATE(U64, pcie_rx_bytes),
    IN_STATE(U64, pcie_replays),
    IN_STATE(U64, link_replays),
    IN_STATE(U32, remapped_corrected),
    IN_STATE(U32, remapped_uncorrected),
    IN_STATE(U32, retired_sbe),
    IN_STATE(U32, retired_dbe),
    IN_STATE(U32, recovery_action),
    IN_STATE(U32, ecc_mode),
    IN_STATE(U32, ecc_pending),
    IN_STATE(U32, persistence),
    IN_STATE(U32, compute_mode),
    IN_STATE(I32, acoustic_c),
    LIST_STATE(U64, reason_ns, 16),
    LIST_STATE(U64, ecc_corrected, 2 * SHM_ECC_PLACES),
    LIST_STATE(U64, ecc_uncorrected, 2 * SHM_ECC_PLACES),
    LIST_STATE(U64, link_tx_kib, SHM_LINKS_MAX),
    LIST_STATE(U32, fan, 4 * SHM_FANS_MAX),
    LIST_STATE(U64, mig_used_bytes, SHM_MIG_MAX),
};

static void print_one(enum kind kind, const char *p) {
    uint32_t u;
    uint64_t w;
    memcpy(&u, p, sizeof u);
    if (kind == U64) memcpy(&w, p, sizeof w);
    if (kind == U32) printf("%" PRIu32, u);
    if (kind == I32) printf("%" PRId32, (int32_t)u);
    if (kind == U64) printf("%" PRIu64, w);
}

static void print_members(const struct member *m, size_t n, const void *base) {
    for (size_t i = 0; i < n; i++) {
        const char *p = (const char *)base + m[i].at;
        printf("%s\"%s\":", i ? "," : "", m[i].name);
        if (m[i].kind == TEXT) {
            printf("\"%.*s\"", (int)m[i].count, p); /* the simulator's own words: nothing in them needs escaping */
            continue;
        }
        if (m[i].count > 1) putchar('[');
        for (uint32_t k = 0; k < m[i].count; k++) {
            if (k) putchar(',');
            print_one(m[i].kind, p + k * (m[i].kind == U64 ? 8 : 4));
        }
        if (m[i].count > 1) putchar(']');
    }
}

static void print_lists(const struct shm_gpu *g) {
    const struct shm_card *c = &g->card;
    struct shm_procs p;
    printf(",\"mem_clocks\":[");
    for (uint32_t i = 0; i < c->mem_clock_count; i++) printf("%s%u", i ? "," : "", c->clocks[i].mem_mhz);
    printf("],\"gr_clocks\":[");
    for (uint32_t i = 0; i < c->clocks[0].count; i++) printf("%s%u", i ? "," : "", c->clocks[0].gr_mhz[i]);
    printf("],\"mig\":[");
    for (uint32_t i = 0; i < c->mig_count; i++)
        printf("%s{\"uuid\":\"%s\",\"profile\":\"%s\",\"gi\":%u,\"ci\":%u,\"sm_count\":%u,\"slices\":%u,\"memory_"
               "bytes\":%" PRIu64 "}",
               i ? "," : "", c->mig[i].uuid, c->mig[i].profile, c->mig[i].gi, c->mig[i].ci, c->mig[i].sm_count,
               c->mig[i].slices, c->mig[i].memory_bytes);
    shm_read_procs(g, &p);
    printf("],\"processes\":[");
    for (uint64_t i = 0; i < p.count; i++)
        printf("%s{\"pid\":%u,\"kinds\":%u,\"used_bytes\":%" PRIu64 ",\"sm_pct\":%u,\"util_at_us\":%" PRIu64 "}",
               i ? "," : "", p.proc[i].pid, p.proc[i].kinds, p.proc[i].used_bytes, p.proc[i].sm_pct,
               p.proc[i].util_at_us);
    putchar(']');
}

int main(int argc, char **argv) {
    const struct shm_root *root;
    if (argc != 2) {
        fprintf(stderr, "usage: gpusim-facts DIR\n");
        return 2;
    }
    int r = shm_open_dir(argv[1], &root);
    if (r < 0) {
        fprintf(stderr, "gpusim-facts: %s: %s\n", argv[1], strerror(-r));
        return 1;
    }
    printf("{\"driver_version\":\"%s\",\"nvml_version\":\"%s\",\"cuda_version\":%u,\"gpus\":[", root->driver_version,
           root->nvml_version, root->cuda_version);
    for (uint32_t i = 0; i < root->gpu_count; i++) {
        const struct shm_gpu *g = shm_gpu(root, i);
        struct shm_state s;
        shm_read_state(g, &s);
        printf("%s{", i ? "," : "");
        print_members(card_members, sizeof card_members / sizeof *card_members, &g->card);
        putchar(',');
        print_members(state_members, sizeof state_members / sizeof *state_members, &s);
        print_lists(g);
        putchar('}');
    }
    printf("]}\n");
    return 0;
}
