/* What a card is: name, numbers on its label, place on the bus, what it was built with. */
#include <stdio.h>
#include <string.h>

#include "sim/nvml_lib.h"

EXPORT nvml_return nvmlDeviceGetName(struct nvml_device *device, char *text, uint32_t size) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlDeviceGetName, device, 0, text);
    if (r != NVML_SUCCESS) return r;
    if (q.mig == NVML_NO_INSTANCE) return text_out(text, size, q.card->name);
    char name[NVML_NAME_SIZE];
    snprintf(name, sizeof name, "%s MIG %s", q.card->name, q.card->mig[q.mig].profile);
    return text_out(text, size, name);
}

EXPORT nvml_return nvmlDeviceGetUUID(struct nvml_device *device, char *text, uint32_t size) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlDeviceGetUUID, device, 0, text);
    if (r != NVML_SUCCESS) return r;
    return text_out(text, size, q.mig == NVML_NO_INSTANCE ? q.card->uuid : q.card->mig[q.mig].uuid);
}

EXPORT nvml_return nvmlDeviceGetIndex(struct nvml_device *device, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlDeviceGetIndex, device, 0, ret);
    if (r == NVML_SUCCESS) *ret = q.mig == NVML_NO_INSTANCE ? q.card->index : q.mig;
    return r;
}

ANSWER_TEXT(nvmlDeviceGetSerial, CAN(SERIAL), q.card->serial)
ANSWER_TEXT(nvmlDeviceGetVbiosVersion, 0, q.card->vbios)
ANSWER_TEXT(nvmlDeviceGetBoardPartNumber, CAN(BOARD_PART), q.card->board_part)
ANSWER_TEXT(nvmlDeviceGetInforomImageVersion, CAN(INFOROM), q.card->inforom_image)
ANSWER(nvmlDeviceGetBrand, 0, uint32_t, q.card->brand)
ANSWER(nvmlDeviceGetMinorNumber, 0, uint32_t, q.card->minor_number)
ANSWER(nvmlDeviceGetArchitecture, 0, uint32_t, q.card->architecture)
ANSWER(nvmlDeviceGetBoardId, 0, uint32_t, q.card->board_id)
ANSWER(nvmlDeviceGetMultiGpuBoard, 0, uint32_t, 0)
ANSWER(nvmlDeviceGetNumGpuCores, 0, uint32_t, q.card->cores)
ANSWER(nvmlDeviceGetMemoryBusWidth, 0, uint32_t, q.card->bus_width_bits)
ANSWER(nvmlDeviceGetIrqNum, 0, uint32_t, q.card->irq)
ANSWER(nvmlDeviceGetBusType, 0, uint32_t, 2) /* PCIe */
ANSWER(nvmlDeviceGetModuleId, CAN(NVLINK), uint32_t, q.card->module_id)
ANSWER(nvmlDeviceGetPersistenceMode, CAN(PERSISTENCE), uint32_t, q.s.persistence)
ANSWER(nvmlDeviceGetComputeMode, CAN(COMPUTE_MODE), uint32_t, q.s.compute_mode)
ANSWER(nvmlDeviceGetDisplayMode, 0, uint32_t, q.s.display_mode)
ANSWER(nvmlDeviceGetDisplayActive, 0, uint32_t, q.s.display_active)
ANSWER(nvmlDeviceGetVirtualizationMode, 0, uint32_t, 0) /* none */
ANSWER(nvmlDeviceGetAccountingMode, CAN(PROCESSES), uint32_t, NVML_DISABLED)
ANSWER(nvmlDeviceGetAccountingBufferSize, CAN(PROCESSES), uint32_t, 4000)
ANSWER(nvmlDeviceGetInforomConfigurationChecksum, CAN(INFOROM), uint32_t, 0)

EXPORT nvml_return nvmlDeviceGetInforomVersion(struct nvml_device *device, uint32_t object, char *text, uint32_t size) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetInforomVersion, device, CAN(INFOROM), text);
    if (r != NVML_SUCCESS) return r;
    const char *const objects[] = {q.card->inforom_oem, q.card->inforom_ecc, q.card->inforom_power};
    if (object == 3) return NVML_ERROR_NOT_SUPPORTED; /* the DEN object: none of these boards has it */
    if (object > 3) return NVML_ERROR_INVALID_ARGUMENT;
    bool has_it = objects[object][0] && strcmp(objects[object], "N/A") != 0;
    return has_it ? text_out(text, size, objects[object]) : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlDeviceValidateInforom(struct nvml_device *device) {
    struct ask q;
    return ask_device(&q, CALL_nvmlDeviceValidateInforom, device, CAN(INFOROM), device);
}

EXPORT nvml_return nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int32_t *major, int32_t *minor) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlDeviceGetCudaComputeCapability, device, 0, minor ? major : NULL);
    if (r != NVML_SUCCESS) return r;
    *major = (int32_t)q.card->cc_major;
    *minor = (int32_t)q.card->cc_minor;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceOnSameBoard(struct nvml_device *a, struct nvml_device *b, int32_t *ret) {
    struct ask one, two;
    nvml_return r = ask_device(&one, CALL_nvmlDeviceOnSameBoard, a, 0, ret);
    if (r == NVML_SUCCESS) r = ask_device(&two, CALL_nvmlDeviceOnSameBoard, b, 0, ret);
    if (r == NVML_SUCCESS) *ret = one.card->board_id == two.card->board_id;
    return r;
}

EXPORT nvml_return nvmlDeviceGetGspFirmwareVersion(struct nvml_device *device, char *text) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetGspFirmwareVersion, device, CAN(GSP), text);
    return r == NVML_SUCCESS ? text_out(text, NVML_GSP_VERSION_SIZE, q.root->gsp_version) : r;
}

EXPORT nvml_return nvmlDeviceGetGspFirmwareMode(struct nvml_device *device, uint32_t *enabled, uint32_t *by_default) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetGspFirmwareMode, device, CAN(GSP), by_default ? enabled : NULL);
    if (r != NVML_SUCCESS) return r;
    *enabled = NVML_ENABLED;
    *by_default = NVML_ENABLED;
    return NVML_SUCCESS;
}

/* Accounting is off on every card: nobody is in its books. */
EXPORT nvml_return nvmlDeviceGetAccountingStats(struct nvml_device *device, uint32_t pid, struct nvml_accounting *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetAccountingStats, device, CAN(PROCESSES), ret);
    return r == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : r;
}

EXPORT nvml_return nvmlDeviceGetAccountingPids(struct nvml_device *device, uint32_t *count, const uint32_t *pids) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetAccountingPids, device, CAN(PROCESSES), count);
    if (r != NVML_SUCCESS) return r;
    bool has_room = pids && *count > 0;
    *count = 0;
    return has_room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

EXPORT nvml_return nvmlDeviceGetLastBBXFlushTime(struct nvml_device *device, const void *at_s, const void *took_us) {
    struct ask q;
    const void *out = took_us ? at_s : NULL;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetLastBBXFlushTime, device, CAN(INFOROM), out);
    return r == NVML_SUCCESS ? NVML_ERROR_NOT_READY : r; /* the black box is written hours after the driver's start */
}
