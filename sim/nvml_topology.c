/* How cards lie to each other and to the processors. The NUMA node is the simulated one; which processors it has
   is asked of this machine, and a node that this machine has not stands for all of them. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/nvml_lib.h"

enum {
    P2P_OK = 0,
    P2P_NOT_SUPPORTED = 5,
    P2P_READ = 0,
    P2P_WRITE,
    P2P_NVLINK,
    P2P_ATOMICS,
    P2P_PCI,
    P2P_UNKNOWN_KIND = 6
};

static uint32_t level_of(const struct shm_card *a, const struct shm_card *b) {
    if (a->index == b->index) return NVML_TOPOLOGY_INTERNAL;
    return a->numa_node == b->numa_node ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
}

static nvml_return ask_pair(struct ask *one, struct ask *two, enum call call, struct nvml_device *a,
                            struct nvml_device *b, const void *out) {
    nvml_return r = ask_device(one, call, a, 0, out);
    return r == NVML_SUCCESS ? ask_device(two, call, b, 0, out) : r;
}

EXPORT nvml_return nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *a, struct nvml_device *b, uint32_t *ret) {
    struct ask one, two;
    nvml_return r = ask_pair(&one, &two, CALL_nvmlDeviceGetTopologyCommonAncestor, a, b, ret);
    if (r != NVML_SUCCESS) return r;
    if (one.card->index == two.card->index) return NVML_ERROR_NOT_SUPPORTED;
    *ret = level_of(one.card, two.card);
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetTopologyNearestGpus(struct nvml_device *device, uint32_t level, uint32_t *count,
                                                    struct nvml_device **out) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetTopologyNearestGpus, device, 0, count);
    if (r != NVML_SUCCESS) return r;
    uint32_t room = *count, n = 0;
    if (room > 0 && !out) return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < q.root->gpu_count; i++) {
        if (i == q.card->index || level_of(q.card, &shm_gpu(q.root, i)->card) != level) continue;
        if (n < room) out[n] = handle_make(HANDLE_DEVICE, i, NVML_NO_INSTANCE);
        n++;
    }
    if (room == 0 || n < room)
        *count = n; /* asked with no room it only counts; with less than needed it fills what there is */
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetP2PStatus(struct nvml_device *a, struct nvml_device *b, uint32_t index, uint32_t *ret) {
    struct ask one, two;
    nvml_return r = ask_pair(&one, &two, CALL_nvmlDeviceGetP2PStatus, a, b, ret);
    if (r != NVML_SUCCESS) return r;
    if (index > P2P_UNKNOWN_KIND) return NVML_ERROR_INVALID_ARGUMENT;
    bool is_pair = one.card->index != two.card->index;
    bool by_link = is_pair && ask_can(&one, ABILITY_NVLINK) && ask_can(&two, ABILITY_NVLINK);
    *ret = by_link && index < P2P_PCI ? P2P_OK : P2P_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* Fills `set` from a list such as "0-3,8-11". */
static bool cpus_of_node(uint32_t node, cpu_set_t *set) {
    char path[64], list[4096];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/cpulist", node);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool has_line = fgets(list, sizeof list, f) != NULL;
    fclose(f);
    int first, last, used;
    CPU_ZERO(set);
    for (const char *p = list; has_line && sscanf(p, "%d%n", &first, &used) == 1; p += *p == ',') {
        p += used;
        last = first;
        if (sscanf(p, "-%d%n", &last, &used) == 1) p += used;
        for (int i = first; i <= last && i < CPU_SETSIZE; i++) CPU_SET(i, set);
    }
    return CPU_COUNT(set) > 0;
}

static void cpus_of(const struct shm_card *c, cpu_set_t *set) {
    if (cpus_of_node(c->numa_node, set)) return;
    CPU_ZERO(set);
    long n = sysconf(_SC_NPROCESSORS_CONF);
    for (int i = 0; i < n && i < CPU_SETSIZE; i++) CPU_SET(i, set);
}

enum { LONG_BITS = 8 * sizeof(unsigned long) };

static nvml_return affinity(enum call call, struct nvml_device *d, uint32_t size, unsigned long *out) {
    struct ask q;
    cpu_set_t set;
    nvml_return r = ask_device(&q, call, d, 0, out);
    if (r != NVML_SUCCESS) return r;
    if (size == 0) return NVML_ERROR_INVALID_ARGUMENT;
    cpus_of(q.card, &set);
    memset(out, 0, size * sizeof *out);
    for (uint32_t i = 0; i < CPU_SETSIZE && i < size * LONG_BITS; i++)
        if (CPU_ISSET(i, &set)) out[i / LONG_BITS] |= 1ul << i % LONG_BITS;
    return NVML_SUCCESS;
}
EXPORT nvml_return nvmlDeviceGetCpuAffinity(struct nvml_device *device, uint32_t size, unsigned long *out) {
    return affinity(CALL_nvmlDeviceGetCpuAffinity, device, size, out);
}
EXPORT nvml_return nvmlDeviceGetCpuAffinityWithinScope(struct nvml_device *device, uint32_t size, unsigned long *out,
                                                       uint32_t scope) {
    if (scope > 1) return NVML_ERROR_INVALID_ARGUMENT;
    return affinity(CALL_nvmlDeviceGetCpuAffinityWithinScope, device, size, out);
}

EXPORT nvml_return nvmlDeviceGetMemoryAffinity(struct nvml_device *device, uint32_t size, unsigned long *out,
                                               uint32_t scope) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMemoryAffinity, device, 0, out);
    if (r != NVML_SUCCESS) return r;
    if (size == 0 || scope > 1 || q.card->numa_node >= size * LONG_BITS) return NVML_ERROR_INVALID_ARGUMENT;
    memset(out, 0, size * sizeof *out);
    out[q.card->numa_node / LONG_BITS] |= 1ul << q.card->numa_node % LONG_BITS;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceSetCpuAffinity(struct nvml_device *device) {
    struct ask q;
    cpu_set_t set;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceSetCpuAffinity, device, 0, device);
    if (r != NVML_SUCCESS) return r;
    cpus_of(q.card, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

EXPORT nvml_return nvmlDeviceClearCpuAffinity(struct nvml_device *device) {
    struct ask q;
    cpu_set_t set;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceClearCpuAffinity, device, 0, device);
    if (r != NVML_SUCCESS) return r;
    memset(&set, 0xff, sizeof set);
    return sched_setaffinity(0, sizeof set, &set) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

EXPORT nvml_return nvmlSystemGetTopologyGpuSet(uint32_t cpu, uint32_t *count, struct nvml_device **out) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlSystemGetTopologyGpuSet, count, &root);
    if (r != NVML_SUCCESS) return r;
    uint32_t room = *count, n = 0;
    if (room > 0 && !out) return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < root->gpu_count; i++) {
        cpu_set_t set;
        cpus_of(&shm_gpu(root, i)->card, &set);
        if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &set)) continue;
        if (n < room) out[n] = handle_make(HANDLE_DEVICE, i, NVML_NO_INSTANCE);
        n++;
    }
    if (room == 0 || n < room) *count = n;
    return NVML_SUCCESS;
}
