/* NVLink. Every link of a simulated card leads to a switch, as on the boards that carry these cards. */
#include <stdio.h>
#include <string.h>

#include "sim/nvml_lib.h"

enum { LINK_TO_SWITCH = 2, SWITCHES = 4, SWITCH_FIRST_BUS = 5 };
enum { ERROR_REPLAY, ERROR_RECOVERY, ERROR_CRC_FLIT, ERROR_CRC_DATA, ERROR_ECC_DATA, ERROR_KINDS };
enum { CAP_P2P, CAP_SYSMEM, CAP_P2P_ATOMICS, CAP_SYSMEM_ATOMICS, CAP_SLI, CAP_VALID, CAP_KINDS };

nvml_return link_check(const struct ask *q, uint32_t link) {
    return link < q->card->link_count ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvml_return ask_link(struct ask *q, enum call call, struct nvml_device *d, uint32_t link, const void *out) {
    nvml_return r = ask_device(q, call, d, CAN(NVLINK), out);
    return r == NVML_SUCCESS ? link_check(q, link) : r;
}

EXPORT nvml_return nvmlDeviceGetNvLinkState(struct nvml_device *device, uint32_t link, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_link(&q, CALL_nvmlDeviceGetNvLinkState, device, link, ret);
    if (r == NVML_SUCCESS) *ret = NVML_ENABLED;
    return r;
}

uint32_t link_version_code(const struct shm_card *c) {
    static const uint32_t by_generation[] = {0, 1, 2, 4, 6, 7, 8}; /* NVML also counts the half steps 2.2 and 3.1 */
    return c->link_version < sizeof by_generation / sizeof *by_generation ? by_generation[c->link_version] : 0;
}

EXPORT nvml_return nvmlDeviceGetNvLinkVersion(struct nvml_device *device, uint32_t link, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_link(&q, CALL_nvmlDeviceGetNvLinkVersion, device, link, ret);
    if (r == NVML_SUCCESS) *ret = link_version_code(q.card);
    return r;
}

EXPORT nvml_return nvmlDeviceGetNvLinkCapability(struct nvml_device *device, uint32_t link, uint32_t capability,
                                                 uint32_t *ret) {
    static const uint32_t has[CAP_KINDS] = {[CAP_P2P] = 1, [CAP_P2P_ATOMICS] = 1, [CAP_VALID] = 1};
    struct ask q;
    nvml_return r = ask_link(&q, CALL_nvmlDeviceGetNvLinkCapability, device, link, ret);
    if (r != NVML_SUCCESS) return r;
    if (capability >= CAP_KINDS) return NVML_ERROR_INVALID_ARGUMENT;
    *ret = has[capability];
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, uint32_t link, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_link(&q, CALL_nvmlDeviceGetNvLinkRemoteDeviceType, device, link, ret);
    if (r == NVML_SUCCESS) *ret = LINK_TO_SWITCH;
    return r;
}

static void switch_fill(const struct shm_card *c, uint32_t link, struct nvml_pci_info *ret) {
    memset(ret, 0, sizeof *ret);
    ret->domain = c->pci_domain;
    ret->bus = SWITCH_FIRST_BUS + link % SWITCHES;
    ret->device_id = c->architecture >= NVML_ARCH_HOPPER ? 0x22a310de : 0x1af110de;
    snprintf(ret->bus_id_legacy, sizeof ret->bus_id_legacy, "%04X:%02X:00.0", ret->domain & 0xffff, ret->bus & 0xff);
    snprintf(ret->bus_id, sizeof ret->bus_id, "%08X:%02X:00.0", ret->domain, ret->bus & 0xff);
}

EXPORT nvml_return nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, uint32_t link,
                                                       struct nvml_pci_info *ret) {
    struct ask q;
    nvml_return r = ask_link(&q, CALL_nvmlDeviceGetNvLinkRemotePciInfo_v2, device, link, ret);
    if (r == NVML_SUCCESS) switch_fill(q.card, link, ret);
    return r;
}

EXPORT nvml_return nvmlDeviceGetNvLinkRemotePciInfo(struct nvml_device *device, uint32_t link, void *ret) {
    struct ask q;
    struct nvml_pci_info info;
    nvml_return r = ask_link(&q, CALL_nvmlDeviceGetNvLinkRemotePciInfo, device, link, ret);
    if (r != NVML_SUCCESS) return r;
    switch_fill(q.card, link, &info);
    memcpy(ret, &info, offsetof(struct nvml_pci_info, bus_id)); /* the old layout ends here */
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetNvLinkErrorCounter(struct nvml_device *device, uint32_t link, uint32_t counter,
                                                   uint64_t *ret) {
    struct ask q;
    nvml_return r = ask_link(&q, CALL_nvmlDeviceGetNvLinkErrorCounter, device, link, ret);
    if (r != NVML_SUCCESS) return r;
    if (counter >= ERROR_KINDS) return NVML_ERROR_INVALID_ARGUMENT;
    if (counter == ERROR_ECC_DATA && q.card->architecture != NVML_ARCH_AMPERE) return NVML_ERROR_NOT_SUPPORTED;
    const uint64_t of_first[ERROR_KINDS] = {
        [ERROR_REPLAY] = q.s.link_replays,
        [ERROR_RECOVERY] = q.s.link_recoveries,
        [ERROR_CRC_FLIT] = q.s.link_crc_errors,
    };
    *ret = link == 0 ? of_first[counter] : 0;
    return NVML_SUCCESS;
}

/* Hopper and later on a switch are members of a fabric, complete from the start. */
enum { FABRIC_COMPLETED = 3, FABRIC_HEALTHY = 1 };

static nvml_return ask_fabric(struct ask *q, enum call call, struct nvml_device *d, const void *out) {
    nvml_return r = ask_device(q, call, d, CAN(NVLINK), out);
    return r == NVML_SUCCESS && q->card->architecture < NVML_ARCH_HOPPER ? NVML_ERROR_NOT_SUPPORTED : r;
}

EXPORT nvml_return nvmlDeviceGetGpuFabricInfo(struct nvml_device *device, struct nvml_fabric_v1 *ret) {
    struct ask q;
    nvml_return r = ask_fabric(&q, CALL_nvmlDeviceGetGpuFabricInfo, device, ret);
    if (r == NVML_SUCCESS) *ret = (struct nvml_fabric_v1){.state = FABRIC_COMPLETED};
    return r;
}

EXPORT nvml_return nvmlDeviceGetGpuFabricInfoV(struct nvml_device *device, struct nvml_fabric *ret) {
    struct ask q;
    nvml_return r = ask_fabric(&q, CALL_nvmlDeviceGetGpuFabricInfoV, device, ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_FABRIC_V2 && ret->version != NVML_FABRIC_V3) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const struct nvml_fabric f = {.version = ret->version, .state = FABRIC_COMPLETED, .summary = FABRIC_HEALTHY};
    memcpy(ret, &f, ret->version == NVML_FABRIC_V3 ? sizeof f : offsetof(struct nvml_fabric, summary));
    return NVML_SUCCESS;
}
