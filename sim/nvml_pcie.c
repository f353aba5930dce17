/* The card's place on the PCI bus, its link there, and what passes over it. */
#include <stdio.h>
#include <string.h>

#include "sim/nvml_lib.h"

void pci_fill(const struct shm_card *c, struct nvml_pci_info *ret) {
    memset(ret, 0, sizeof *ret);
    ret->domain = c->pci_domain;
    ret->bus = c->pci_bus;
    ret->device = c->pci_device;
    ret->device_id = c->pci_device_id;
    ret->subsystem_id = c->pci_subsystem_id;
    snprintf(ret->bus_id_legacy, sizeof ret->bus_id_legacy, "%04X:%02X:%02X.0", c->pci_domain & 0xffff,
             c->pci_bus & 0xff, c->pci_device & 0xff);
    snprintf(ret->bus_id, sizeof ret->bus_id, "%08X:%02X:%02X.0", c->pci_domain, c->pci_bus & 0xff,
             c->pci_device & 0xff);
}

EXPORT nvml_return nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetPciInfo_v3, device, 0, ret);
    if (r == NVML_SUCCESS) pci_fill(q.card, ret);
    return r;
}

/* The first two versions had the short address only, and room after the ids that is not ours to fill. */
enum { OLD_PCI_INFO_SIZE = offsetof(struct nvml_pci_info, bus_id) };

static nvml_return old_pci_info(enum call call, struct nvml_device *d, void *ret) {
    struct ask q;
    struct nvml_pci_info info;
    nvml_return r = ask_device(&q, call, d, 0, ret);
    if (r != NVML_SUCCESS) return r;
    pci_fill(q.card, &info);
    memcpy(ret, &info, OLD_PCI_INFO_SIZE);
    return NVML_SUCCESS;
}
EXPORT nvml_return nvmlDeviceGetPciInfo(struct nvml_device *device, void *ret) {
    return old_pci_info(CALL_nvmlDeviceGetPciInfo, device, ret);
}
EXPORT nvml_return nvmlDeviceGetPciInfo_v2(struct nvml_device *device, void *ret) {
    return old_pci_info(CALL_nvmlDeviceGetPciInfo_v2, device, ret);
}

enum { CLASS_DISPLAY = 3, SUBCLASS_3D = 2 };
struct pci_info_ext {
    uint32_t version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
    char bus_id[NVML_PCI_BUS_ID_SIZE];
};
NVML_LAYOUT(struct pci_info_ext, 64);

EXPORT nvml_return nvmlDeviceGetPciInfoExt(struct nvml_device *device, struct pci_info_ext *ret) {
    struct ask q;
    struct nvml_pci_info info;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetPciInfoExt, device, 0, ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_VERSION(struct pci_info_ext, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    pci_fill(q.card, &info);
    *ret = (struct pci_info_ext){
        ret->version,
        info.domain,
        info.bus,
        info.device,
        info.device_id,
        info.subsystem_id,
        CLASS_DISPLAY,
        q.s.display_mode ? 0 : SUBCLASS_3D,
        "",
    };
    memcpy(ret->bus_id, info.bus_id, sizeof ret->bus_id);
    return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, CAN(PCIE), uint32_t, q.card->pcie_gen_max)
ANSWER(nvmlDeviceGetGpuMaxPcieLinkGeneration, CAN(PCIE), uint32_t, q.card->pcie_gen_device)
ANSWER(nvmlDeviceGetMaxPcieLinkWidth, CAN(PCIE), uint32_t, q.card->pcie_width_max)
ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, CAN(PCIE), uint32_t, q.s.pcie_gen)
ANSWER(nvmlDeviceGetCurrPcieLinkWidth, CAN(PCIE), uint32_t, q.s.pcie_width)
ANSWER(nvmlDeviceGetPcieLinkMaxSpeed, CAN(PCIE), uint32_t, q.card->pcie_gen_max)
ANSWER(nvmlDeviceGetPcieReplayCounter, CAN(PCIE_REPLAY), uint32_t, q.s.pcie_replays)

EXPORT nvml_return nvmlDeviceGetPcieSpeed(struct nvml_device *device, uint32_t *ret) {
    static const uint32_t mbps[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetPcieSpeed, device, CAN(PCIE), ret);
    if (r == NVML_SUCCESS) *ret = q.s.pcie_gen < sizeof mbps / sizeof *mbps ? mbps[q.s.pcie_gen] : 0;
    return r;
}

EXPORT nvml_return nvmlDeviceGetPcieThroughput(struct nvml_device *device, uint32_t counter, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetPcieThroughput, device, CAN(PCIE_THROUGHPUT), ret);
    if (r != NVML_SUCCESS) return r;
    if (counter > NVML_PCIE_RX_BYTES) return NVML_ERROR_INVALID_ARGUMENT;
    *ret = counter == NVML_PCIE_TX_BYTES ? q.s.pcie_tx_kbps : q.s.pcie_rx_kbps;
    return NVML_SUCCESS;
}
