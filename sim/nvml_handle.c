/* From an index, a UUID, a serial or a PCI address to a handle.
 *
 * A lost card is still counted, but no handle is given for it, as with a card that has fallen off the bus. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/nvml_lib.h"

static nvml_return give(struct ask *q, enum call call, uint32_t index, uint32_t mig, struct nvml_device **ret) {
    nvml_return r = ask_index(q, call, index);
    if (r == NVML_SUCCESS) *ret = handle_make(HANDLE_DEVICE, index, mig);
    return r;
}

static nvml_return count(enum call call, uint32_t *ret) {
    const struct shm_root *root;
    nvml_return r = ask_library(call, ret, &root);
    if (r == NVML_SUCCESS) *ret = root->gpu_count;
    return r;
}

EXPORT nvml_return nvmlDeviceGetCount(uint32_t *ret) { return count(CALL_nvmlDeviceGetCount, ret); }
EXPORT nvml_return nvmlDeviceGetCount_v2(uint32_t *ret) { return count(CALL_nvmlDeviceGetCount_v2, ret); }

static nvml_return by_index(enum call call, uint32_t index, struct nvml_device **ret) {
    const struct shm_root *root;
    struct ask q;
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    if (!ret || index >= root->gpu_count) return NVML_ERROR_INVALID_ARGUMENT;
    return give(&q, call, index, NVML_NO_INSTANCE, ret);
}

EXPORT nvml_return nvmlDeviceGetHandleByIndex(uint32_t index, struct nvml_device **ret) {
    return by_index(CALL_nvmlDeviceGetHandleByIndex, index, ret);
}
EXPORT nvml_return nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **ret) {
    return by_index(CALL_nvmlDeviceGetHandleByIndex_v2, index, ret);
}

/* `is_it` tells whether a card is the one that is meant, and may set the MIG place. */
typedef bool is_it(const struct shm_card *c, const char *key, uint32_t *mig);

static nvml_return by_key(enum call call, const char *key, is_it *is, struct nvml_device **ret) {
    const struct shm_root *root;
    struct ask q;
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    if (!key || !ret) return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < root->gpu_count; i++) {
        uint32_t mig = NVML_NO_INSTANCE;
        if (is(&shm_gpu(root, i)->card, key, &mig)) return give(&q, call, i, mig, ret);
    }
    return NVML_ERROR_NOT_FOUND;
}

static bool is_uuid(const struct shm_card *c, const char *key, uint32_t *mig) {
    if (strcmp(c->uuid, key) == 0) return true;
    for (uint32_t i = 0; i < c->mig_count; i++) {
        if (strcmp(c->mig[i].uuid, key) != 0) continue;
        *mig = i;
        return true;
    }
    return false;
}

static bool is_serial(const struct shm_card *c, const char *key, uint32_t *mig) {
    return (c->abilities & CAN(SERIAL)) && strcmp(c->serial, key) == 0;
}

/* Domain with four or eight digits or none, function with or without: all are in use. */
struct address {
    uint32_t domain, bus, device, function;
};

static bool address_read(const char *key, struct address *ret) {
    uint32_t domain = 0, bus, device, function = 0;
    int end = 0;
    bool full = sscanf(key, "%8x:%2x:%2x%n", &domain, &bus, &device, &end) == 3 && end;
    if (!full) {
        domain = 0;
        if (sscanf(key, "%2x:%2x%n", &bus, &device, &end) != 2) return false;
    }
    if (key[end] == '.') {
        int more = 0;
        if (sscanf(key + end, ".%1x%n", &function, &more) != 1) return false;
        end += more;
    }
    *ret = (struct address){domain, bus, device, function};
    return key[end] == 0;
}

static bool is_address(const struct shm_card *c, const char *key, uint32_t *mig) {
    struct address a;
    return address_read(key, &a) && a.domain == c->pci_domain && a.bus == c->pci_bus && a.device == c->pci_device &&
           a.function == 0;
}

EXPORT nvml_return nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **ret) {
    return by_key(CALL_nvmlDeviceGetHandleByUUID, uuid, is_uuid, ret);
}
EXPORT nvml_return nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **ret) {
    return by_key(CALL_nvmlDeviceGetHandleBySerial, serial, is_serial, ret);
}
static nvml_return by_address(enum call call, const char *address, struct nvml_device **ret) {
    const struct shm_root *root;
    struct address a;
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    if (!address || !address_read(address, &a)) return NVML_ERROR_INVALID_ARGUMENT;
    return by_key(call, address, is_address, ret);
}

EXPORT nvml_return nvmlDeviceGetHandleByPciBusId(const char *address, struct nvml_device **ret) {
    return by_address(CALL_nvmlDeviceGetHandleByPciBusId, address, ret);
}
EXPORT nvml_return nvmlDeviceGetHandleByPciBusId_v2(const char *address, struct nvml_device **ret) {
    return by_address(CALL_nvmlDeviceGetHandleByPciBusId_v2, address, ret);
}

enum { UUID_ASCII = 1, UUID_BINARY = 2 };
struct uuid_key {
    uint32_t version, type;
    union {
        char text[41];
        uint8_t bytes[16];
    };
};
NVML_LAYOUT(struct uuid_key, 52);

EXPORT nvml_return nvmlDeviceGetHandleByUUIDV(const struct uuid_key *key, struct nvml_device **ret) {
    const struct shm_root *root;
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    if (!key || !ret) return NVML_ERROR_INVALID_ARGUMENT;
    if (key->version != NVML_VERSION(struct uuid_key, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    char text[48];
    if (key->type == UUID_ASCII) {
        snprintf(text, sizeof text, "%.41s", key->text);
    } else if (key->type == UUID_BINARY) {
        const uint8_t *b = key->bytes;
        snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                 b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    } else {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return by_key(CALL_nvmlDeviceGetHandleByUUIDV, text, is_uuid, ret);
}
