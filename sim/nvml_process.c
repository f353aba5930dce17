/* Who uses the card: process lists in the three layouts that they have had, and each process's share.
 *
 * Lists answer a call that has no room with INSUFFICIENT_SIZE and the number there is. */
#include <string.h>

#include "sim/nvml_lib.h"

/* Drops those that are not of `kinds` or not on the MIG device that was asked; what stays keeps its order. */
static void keep(struct shm_procs *p, uint32_t kinds, uint32_t mig) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < p->count; i++) {
        if (!(p->proc[i].kinds & kinds)) continue;
        if (mig != NVML_NO_INSTANCE && p->proc[i].mig != mig) continue;
        if (n != i) p->proc[n] = p->proc[i];
        n++;
    }
    p->count = n;
}

static nvml_return list(enum call call, struct nvml_device *d, uint32_t kinds, uint32_t *count, const void *out,
                        struct shm_procs *ret) {
    struct ask q;
    nvml_return r = ask_any_device(&q, call, d, CAN(PROCESSES), count);
    if (r != NVML_SUCCESS) return r;
    uint32_t room = *count;
    shm_read_procs(q.gpu, ret);
    keep(ret, kinds, q.mig);
    if (room > 0 && ret->count > 0 && !out) return NVML_ERROR_INVALID_ARGUMENT;
    *count = (uint32_t)ret->count;
    return room < ret->count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvml_return list_v1(enum call call, struct nvml_device *d, uint32_t kinds, uint32_t *count,
                           struct nvml_process_v1 *out) {
    struct shm_procs p;
    nvml_return r = list(call, d, kinds, count, out, &p);
    for (uint64_t i = 0; r == NVML_SUCCESS && i < p.count; i++)
        out[i] = (struct nvml_process_v1){.pid = p.proc[i].pid, .used_memory = p.proc[i].used_bytes};
    return r;
}

static nvml_return list_v2(enum call call, struct nvml_device *d, uint32_t kinds, uint32_t *count,
                           struct nvml_process_v2 *out) {
    struct shm_procs p;
    nvml_return r = list(call, d, kinds, count, out, &p);
    for (uint64_t i = 0; r == NVML_SUCCESS && i < p.count; i++)
        out[i] = (struct nvml_process_v2){p.proc[i].pid, p.proc[i].used_bytes, p.proc[i].gi, p.proc[i].ci};
    return r;
}

#define PROCESS_LISTS(name, kinds)                                                                                     \
    EXPORT nvml_return name(struct nvml_device *device, uint32_t *count, struct nvml_process_v1 *out) {                \
        return list_v1(CALL_##name, device, kinds, count, out);                                                        \
    }                                                                                                                  \
    EXPORT nvml_return name##_v2(struct nvml_device *device, uint32_t *count, struct nvml_process_v2 *out) {           \
        return list_v2(CALL_##name##_v2, device, kinds, count, out);                                                   \
    }                                                                                                                  \
    EXPORT nvml_return name##_v3(struct nvml_device *device, uint32_t *count, struct nvml_process_v2 *out) {           \
        return list_v2(CALL_##name##_v3, device, kinds, count, out);                                                   \
    }
PROCESS_LISTS(nvmlDeviceGetComputeRunningProcesses, SHM_PROC_COMPUTE)
PROCESS_LISTS(nvmlDeviceGetGraphicsRunningProcesses, SHM_PROC_GRAPHICS)
PROCESS_LISTS(nvmlDeviceGetMPSComputeRunningProcesses, SHM_PROC_MPS)

EXPORT nvml_return nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device,
                                                         struct nvml_process_detail_list *ret) {
    static const uint32_t kinds[] = {
        [NVML_PROCESS_COMPUTE] = SHM_PROC_COMPUTE,
        [NVML_PROCESS_GRAPHICS] = SHM_PROC_GRAPHICS,
        [NVML_PROCESS_MPS] = SHM_PROC_MPS,
    };
    const struct shm_root *root;
    struct shm_procs p;
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    if (!ret) return NVML_ERROR_INVALID_ARGUMENT;
    if (ret->version != NVML_PROCESS_DETAIL_LIST_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (ret->mode > NVML_PROCESS_MPS) return NVML_ERROR_INVALID_ARGUMENT; /* all together came with a later driver */
    if (!ret->processes) ret->count = 0;
    r = list(CALL_nvmlDeviceGetRunningProcessDetailList, device, kinds[ret->mode], &ret->count, ret->processes, &p);
    for (uint64_t i = 0; r == NVML_SUCCESS && i < p.count; i++)
        ret->processes[i] =
            (struct nvml_process_detail){p.proc[i].pid, p.proc[i].used_bytes, p.proc[i].gi, p.proc[i].ci, 0};
    return r;
}

/* Shares. Only processes that did something since `last_seen_us` are told of; none at all is NOT_FOUND, and the
   count is then left as it was. The size asked for is that of the driver's buffer, not of what is in it. */
enum { UTILIZATION_SLOTS = 72 };

static bool is_busy(const struct shm_proc *p, uint64_t last_seen_us) {
    bool did = p->sm_pct | p->mem_pct | p->enc_pct | p->dec_pct | p->jpg_pct | p->ofa_pct;
    return did && p->util_at_us > last_seen_us;
}

static nvml_return shares(enum call call, struct nvml_device *d, uint64_t last_seen_us, uint32_t *count, bool has_room,
                          struct shm_procs *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, call, d, CAN(PROCESS_UTIL), count);
    if (r != NVML_SUCCESS) return r;
    if (q.card->mig_mode) return NVML_ERROR_NOT_SUPPORTED;
    shm_read_procs(q.gpu, ret);
    uint32_t room = *count, slots = ret->count > UTILIZATION_SLOTS ? (uint32_t)ret->count : UTILIZATION_SLOTS;
    uint64_t n = 0;
    for (uint64_t i = 0; i < ret->count; i++)
        if (is_busy(&ret->proc[i], last_seen_us)) ret->proc[n++] = ret->proc[i];
    ret->count = n;
    if (!has_room || room < n) {
        *count = slots;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    if (n == 0) return NVML_ERROR_NOT_FOUND;
    *count = (uint32_t)n;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *out,
                                                   uint32_t *count, uint64_t last_seen_us) {
    struct shm_procs p;
    nvml_return r = shares(CALL_nvmlDeviceGetProcessUtilization, device, last_seen_us, count, out != NULL, &p);
    for (uint64_t i = 0; r == NVML_SUCCESS && i < p.count; i++) {
        const struct shm_proc *one = &p.proc[i];
        out[i] = (struct nvml_process_utilization){
            one->pid, one->util_at_us, one->sm_pct, one->mem_pct, one->enc_pct, one->dec_pct,
        };
    }
    return r;
}

EXPORT nvml_return nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device,
                                                         struct nvml_processes_utilization *ret) {
    const struct shm_root *root;
    struct shm_procs p;
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    if (!ret) return NVML_ERROR_INVALID_ARGUMENT;
    if (ret->version != NVML_PROCESSES_UTILIZATION_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    r = shares(CALL_nvmlDeviceGetProcessesUtilizationInfo, device, ret->last_seen_us, &ret->count, ret->rows != NULL,
               &p);
    for (uint64_t i = 0; r == NVML_SUCCESS && i < p.count; i++) {
        const struct shm_proc *one = &p.proc[i];
        ret->rows[i] = (struct nvml_process_utilization_row){
            .timestamp_us = one->util_at_us,
            .pid = one->pid,
            .sm = one->sm_pct,
            .memory = one->mem_pct,
            .encoder = one->enc_pct,
            .decoder = one->dec_pct,
            .jpeg = one->jpg_pct,
            .ofa = one->ofa_pct,
        };
    }
    return r;
}
