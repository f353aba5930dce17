/* What can happen to the machine: XIDs, memory errors, a card or the driver that goes away, and the way back. */
#include <stdio.h>
#include <string.h>

#include "sim/machine.h"

/* What the kernel module prints after the process, by XID; the others get no more than their number. */
static const struct {
    uint32_t code;
    const char *rest;
    uint32_t recovery; /* field 230: 0 none, 1 reset, 2 reboot, 4 drain and reset */
    bool kills;        /* the process it is blamed on ends */
} xids[] = {
    {13,  "Graphics SM Warp Exception on (GPC 2, TPC 1, SM 0): Out Of Range Address",                           0, false},
    {31,  "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_3 faulted @ 0x7f3a_5c000000",    0, false},
    {43,  "Ch 00000010, engmask 00000101",                                                                      0, false},
    {45,  "Ch 00000008",                                                                                        0, false},
    {48,  "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 2", 4, true },
    {63,  "Row Remapper: New row (0x1c4d) marked for remapping, reset gpu to activate.",                        0, false},
    {64,  "Row Remapper: failed to remap row",                                                                  1, false},
    {74,  "NVLink: fatal error detected on link 4(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",                      1, false},
    {79,  "GPU has fallen off the bus.",                                                                        2, false},
    {94,  "Contained memory error",                                                                             0, true },
    {95,  "Uncontained memory error",                                                                           1, true },
    {119, "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL)",  1,
     false                                                                                                              },
    {120, "GSP Error: Task 1 raised error code 0x5",                                                            1, false},
    {154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",                            1, false},
};

static struct task *task_on(struct machine *m, uint32_t gpu) {
    for (unsigned i = 0; i < m->tasks.high; i++) {
        struct task *s = &m->tasks.slot[i];
        if (s->used && !s->done && s->ask.gpus >> gpu & 1) return s;
    }
    return NULL;
}

static void evict_all(struct machine *m, uint64_t gpus, int code, const char *why) {
    for (unsigned i = 0; i < m->tasks.high; i++) {
        struct task *s = &m->tasks.slot[i];
        if (s->used && s->ask.gpus & gpus && m->listener.evict) m->listener.evict(m->listener.self, s, code, why);
    }
}

static void tell(struct machine *m, uint32_t gpu, uint64_t type, uint64_t value) {
    if (m->listener.event) m->listener.event(m->listener.self, gpu, type, value);
}

void machine_xid(struct machine *m, uint32_t gpu, uint32_t code) {
    struct board *b = &m->board[gpu];
    struct task *blamed = task_on(m, gpu);
    uint32_t before = b->recovery_action;
    const char *rest = NULL;
    bool kills = false;
    for (size_t i = 0; i < sizeof xids / sizeof *xids; i++) {
        if (xids[i].code != code) continue;
        rest = xids[i].rest;
        kills = xids[i].kills;
        if (xids[i].recovery > b->recovery_action) b->recovery_action = xids[i].recovery;
    }
    b->last_xid = code;
    bool asks_more = b->recovery_action != before;
    if (m->listener.xid)
        m->listener.xid(m->listener.self, gpu, code, blamed ? blamed->pid : 0, blamed ? blamed->ask.name : "", rest);
    tell(m, gpu, EVENT_XID, code);
    if (asks_more) tell(m, gpu, EVENT_RECOVERY, b->recovery_action);
    if (kills && blamed && m->listener.evict)
        m->listener.evict(m->listener.self, blamed, CODE_LOST, "an uncorrectable memory error hit this task");
}

void machine_ecc(struct machine *m, uint32_t gpu, bool uncorrected, uint32_t count) {
    struct board *b = &m->board[gpu];
    enum { DRAM = 2 };
    for (int life = 0; life < 2; life++) (uncorrected ? b->ecc_uncorrected : b->ecc_corrected)[life][DRAM] += count;
    uint64_t can = m->card[gpu].abilities;
    if (uncorrected && can & CAN(REMAP)) {
        b->remapped_uncorrected += count;
        b->remap_pending = 1;
    }
    if (uncorrected && can & CAN(RETIRED_PAGES)) {
        b->retired_dbe += count;
        b->retired_pending = 1;
    }
    tell(m, gpu, uncorrected ? EVENT_ECC_DOUBLE : EVENT_ECC_SINGLE, count);
    if (uncorrected) machine_xid(m, gpu, 48);
}

void machine_lose(struct machine *m, uint32_t gpu) {
    if (m->board[gpu].lost) return;
    machine_xid(m, gpu, 79);
    m->board[gpu].lost = true;
    tell(m, gpu, EVENT_UNAVAILABLE, 0);
    evict_all(m, UINT64_C(1) << gpu, CODE_LOST, "the GPU has fallen off the bus");
}

/* All that a driver keeps in its own memory starts anew with it; what the board keeps stays. */
static void fresh_driver(struct machine *m, uint32_t gpu) {
    struct board *b = &m->board[gpu];
    struct plant *p = &m->plant[gpu];
    plant_reset_settings(p);
    memset(b->ecc_corrected[0], 0, sizeof b->ecc_corrected[0]);
    memset(b->ecc_uncorrected[0], 0, sizeof b->ecc_uncorrected[0]);
    memset(p->totals, 0, sizeof p->totals);
    memset(p->reason_s, 0, sizeof p->reason_s);
    memset(m->mig_busy_s[gpu], 0, sizeof m->mig_busy_s[gpu]);
    p->now.enc_s = p->now.dec_s = p->now.jpg_s = p->now.ofa_s = 0;
    p->energy_j = p->now.energy_j = 0;
    p->past_count = 0;
    b->ecc_mode = b->ecc_pending;
    b->remap_pending = b->retired_pending = 0;
    b->last_xid = b->recovery_action = 0;
    b->compute_mode = 0;
    b->app_clocks_open = 0;
    b->persistence = 1;
}

void machine_driver_down(struct machine *m, double for_s) {
    m->driver = SHM_DRIVER_DOWN;
    m->driver_back_s = m->now_s + for_s;
    evict_all(m, UINT64_MAX, CODE_DRIVER_DOWN, "the driver was unloaded");
    if (m->listener.driver) m->listener.driver(m->listener.self);
}

void machine_driver_mismatch(struct machine *m) {
    m->driver = SHM_DRIVER_MISMATCH;
    if (m->listener.driver) m->listener.driver(m->listener.self);
}

void machine_driver_up(struct machine *m) {
    if (m->driver == SHM_DRIVER_DOWN) {
        for (uint32_t i = 0; i < m->gpu_count; i++) fresh_driver(m, i);
        m->generation++;
    }
    m->driver = SHM_DRIVER_UP;
    if (m->listener.driver) m->listener.driver(m->listener.self);
}

void machine_heal(struct machine *m, uint32_t gpu) {
    struct board *b = &m->board[gpu];
    struct plant *p = &m->plant[gpu];
    if (b->lost) {
        p->world.air_c = m->air_c;
        plant_revive(p);
    }
    b->lost = b->hung = p->burnt = false;
    b->hang_pid = 0;
    b->hang_call[0] = '\0';
    b->blind = b->flapping = 0;
    b->cooling = 1;
    b->air_add_c = 0;
    b->recovery_action = b->last_xid = 0;
    b->remap_pending = 0;
    p->world.fans_dead = 0;
    p->world.brake = false;
    if (m->driver != SHM_DRIVER_UP) machine_driver_up(m);
}
