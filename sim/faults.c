/* One function and one row a fault. */
#include "sim/faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "sim/amount.h"

PRINTF(3, 4) static int wrong(char *why, size_t size, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, size, fmt, ap);
    va_end(ap);
    return -1;
}

static int fault_lost(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    if (n > 0) return wrong(why, size, "lost takes nothing more, not '%s'", a[0]);
    machine_lose(m, gpu);
    return 0;
}

static int fault_hang(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    struct board *b = &m->board[gpu];
    uint32_t pid = 0;
    const char *call = "";
    for (int i = 0; i < n; i++) {
        bool is_pid = strncmp(a[i], "pid=", 4) == 0;
        if (is_pid && !amount_count(a[i] + 4, 1, 1u << 22, &pid))
            return wrong(why, size, "hang: pid=P needs a process number, not '%s'", a[i] + 4);
        if (is_pid) continue;
        if (strncmp(a[i], "nvml", 4) != 0 || strlen(a[i]) >= sizeof b->hang_call)
            return wrong(why, size, "hang: '%s' is neither an NVML function nor pid=P", a[i]);
        call = a[i];
    }
    snprintf(b->hang_call, sizeof b->hang_call, "%s", call);
    b->hang_pid = (int32_t)pid;
    b->hung = true;
    return 0;
}

static int fault_sensor(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    struct board *b = &m->board[gpu];
    int which = n > 0 ? ability_by_name(a[0]) : -1;
    if (which < 0) return wrong(why, size, "sensor: '%s' is not one; `sensors` lists them", n > 0 ? a[0] : "");
    uint64_t bit = UINT64_C(1) << which;
    const char *how = n > 1 ? a[1] : "off";
    bool off = strcmp(how, "off") == 0, flap = strcmp(how, "flap") == 0, on = strcmp(how, "on") == 0;
    if (!off && !flap && !on) return wrong(why, size, "sensor: off, flap or on, not '%s'", how);
    b->blind = off ? b->blind | bit : b->blind & ~bit;
    b->flapping = flap ? b->flapping | bit : b->flapping & ~bit;
    return 0;
}

static int fault_xid(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    uint32_t code;
    if (n != 1 || !amount_count(a[0], 1, 999, &code)) return wrong(why, size, "xid: a code of 1 to 999 is needed");
    if (code == 79)
        machine_lose(m, gpu);
    else
        machine_xid(m, gpu, code);
    return 0;
}

static int fault_ecc(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    if (!(m->card[gpu].abilities & CAN(ECC))) return wrong(why, size, "ecc: GPU %u has no ECC", gpu);
    const char *which = n > 0 ? a[0] : "corrected";
    bool corrected = strcmp(which, "corrected") == 0, uncorrected = strcmp(which, "uncorrected") == 0;
    uint32_t count = 1;
    if ((!corrected && !uncorrected) || n > 2 || (n == 2 && !amount_count(a[1], 1, 1000000, &count)))
        return wrong(why, size, "ecc: corrected or uncorrected, then a count of 1 to 1000000");
    machine_ecc(m, gpu, uncorrected, count);
    return 0;
}

static int fault_fan_stop(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    uint32_t fans = m->card[gpu].fan_count, fan;
    if (fans == 0) return wrong(why, size, "fan-stop: GPU %u has no fan of its own", gpu);
    if (n == 0) {
        m->plant[gpu].world.fans_dead = (1u << fans) - 1;
        return 0;
    }
    if (n > 1 || !amount_count(a[0], 0, fans - 1, &fan))
        return wrong(why, size, "fan-stop: a fan of 0 to %u, not '%s'", fans - 1, a[0]);
    m->plant[gpu].world.fans_dead |= 1u << fan;
    return 0;
}

static int fault_cooling(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    double factor;
    if (n != 1 || !amount_number(a[0], 0.5, 10, &factor))
        return wrong(why, size, "cooling: a factor of 0.5 to 10 is needed (1 is healthy)");
    m->board[gpu].cooling = factor;
    return 0;
}

static int fault_ambient(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    double more;
    if (n != 1 || !amount_number(a[0], -30, 60, &more))
        return wrong(why, size, "ambient: kelvins of -30 to +60 are needed");
    m->board[gpu].air_add_c = more;
    return 0;
}

static int fault_reload(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    (void)gpu;
    double for_s = 3;
    if (n > 1 || (n == 1 && (!amount_seconds(a[0], &for_s) || for_s > 3600)))
        return wrong(why, size, "driver-reload: seconds of 0 to 3600, not '%s'", a[0]);
    if (m->driver == SHM_DRIVER_UP) machine_driver_down(m, for_s);
    return 0;
}

static int fault_mismatch(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    (void)gpu;
    if (n > 0) return wrong(why, size, "driver-mismatch takes nothing more, not '%s'", a[0]);
    machine_driver_mismatch(m);
    return 0;
}

static int fault_cap(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    const struct model *model = m->plant[gpu].model;
    double watts;
    if (!(m->card[gpu].abilities & CAN(POWER_SET)))
        return wrong(why, size, "cap: GPU %u has no power limit to set", gpu);
    if (n != 1 || !amount_number(a[0], model->limit_min_w, model->limit_max_w, &watts))
        return wrong(why, size, "cap: watts of %.0f to %.0f are needed", model->limit_min_w, model->limit_max_w);
    m->plant[gpu].set.limit_w = watts;
    return 0;
}

static int fault_brake(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    if (n > 0) return wrong(why, size, "brake takes nothing more, not '%s'", a[0]);
    m->plant[gpu].world.brake = true;
    return 0;
}

static int fault_replay(struct machine *m, uint32_t gpu, int n, char *const *a, char *why, size_t size) {
    uint32_t count = 1;
    if (n > 1 || (n == 1 && !amount_count(a[0], 1, 1000000, &count)))
        return wrong(why, size, "pcie-replay: a count of 1 to 1000000, not '%s'", a[0]);
    m->board[gpu].pcie_replays += count;
    return 0;
}

const struct fault faults[] = {
    {"lost",            "",                            "the GPU falls off the bus: XID 79, every call says GPU_IS_LOST",                      fault_lost    },
    {"hang",            "[CALL] [pid=P]",              "calls never return: all, or one NVML function; everywhere, or in one process",
     fault_hang                                                                                                                                             },
    {"sensor",          "NAME [off|flap|on]",          "a reading turns not-supported, or comes and goes (`sensors` lists names)",
     fault_sensor                                                                                                                                           },
    {"xid",             "CODE",                        "an XID: as event and in the kernel log",                                              fault_xid     },
    {"ecc",             "[corrected|uncorrected] [N]", "memory errors: counters and events; uncorrected ones also XID 48",
     fault_ecc                                                                                                                                              },
    {"fan-stop",        "[FAN]",                       "a fan stands still, or all of them; the driver goes on saying the speed it asks for",
     fault_fan_stop                                                                                                                                         },
    {"cooling",         "FACTOR",                      "the cooler's resistance to air times FACTOR",                                         fault_cooling },
    {"ambient",         "KELVINS",                     "the air that comes in is warmer by that much",                                        fault_ambient },
    {"driver-reload",   "[SECONDS]",                   "the driver goes and comes back (3 s): handles are invalid, settings lost",
     fault_reload                                                                                                                                           },
    {"driver-mismatch", "",                            "library and kernel module differ: nvmlInit fails until healed",                       fault_mismatch},
    {"cap",             "WATTS",                       "someone else changes the power limit",                                                fault_cap     },
    {"brake",           "",                            "the board asserts power brake: half clocks",                                          fault_brake   },
    {"pcie-replay",     "[N]",                         "PCIe replays",                                                                        fault_replay  },
};

const size_t fault_count = sizeof faults / sizeof *faults;

const struct fault *fault_by_name(const char *name) {
    for (size_t i = 0; i < fault_count; i++)
        if (strcmp(faults[i].name, name) == 0) return &faults[i];
    return NULL;
}
