/* Questions about the driver, the host and the library rather than one card; and the S-class units, of which there are
   none. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/nvml_lib.h"

/* What a library of its own says before any driver was opened. */
static const char own_version[] = "13.580.159.04";
static const char own_branch[] = "r582_49"; /* what that driver calls its branch */
enum { OWN_CUDA_VERSION = 13000 };

static const struct {
    nvml_return code;
    const char *text;
} sentences[] = {
    {NVML_SUCCESS,                         "Success"                                                                 },
    {NVML_ERROR_UNINITIALIZED,             "Uninitialized"                                                           },
    {NVML_ERROR_INVALID_ARGUMENT,          "Invalid Argument"                                                        },
    {NVML_ERROR_NOT_SUPPORTED,             "Not Supported"                                                           },
    {NVML_ERROR_NO_PERMISSION,             "Insufficient Permissions"                                                },
    {NVML_ERROR_ALREADY_INITIALIZED,       "Already Initialized"                                                     },
    {NVML_ERROR_NOT_FOUND,                 "Not Found"                                                               },
    {NVML_ERROR_INSUFFICIENT_SIZE,         "Insufficient Size"                                                       },
    {NVML_ERROR_INSUFFICIENT_POWER,        "Insufficient External Power"                                             },
    {NVML_ERROR_DRIVER_NOT_LOADED,         "Driver Not Loaded"                                                       },
    {NVML_ERROR_TIMEOUT,                   "Timeout"                                                                 },
    {NVML_ERROR_IRQ_ISSUE,                 "Interrupt Request Issue"                                                 },
    {NVML_ERROR_LIBRARY_NOT_FOUND,         "NVML Shared Library Not Found"                                           },
    {NVML_ERROR_FUNCTION_NOT_FOUND,        "Function Not Found"                                                      },
    {NVML_ERROR_CORRUPTED_INFOROM,         "Corrupted infoROM"                                                       },
    {NVML_ERROR_GPU_IS_LOST,               "GPU is lost"                                                             },
    {NVML_ERROR_RESET_REQUIRED,            "GPU requires reset"                                                      },
    {NVML_ERROR_OPERATING_SYSTEM,          "GPU access blocked by the operating system"                              },
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH,   "Driver/library version mismatch"                                         },
    {NVML_ERROR_IN_USE,                    "In use by another client"                                                },
    {NVML_ERROR_MEMORY,                    "Insufficient Memory"                                                     },
    {NVML_ERROR_NO_DATA,                   "No data"                                                                 },
    {NVML_ERROR_VGPU_ECC_NOT_SUPPORTED,    "vGPU operation is not available on target device, because ECC is enabled"},
    {NVML_ERROR_INSUFFICIENT_RESOURCES,    "Insufficient Resources"                                                  },
    {NVML_ERROR_FREQ_NOT_SUPPORTED,        "Frequency not supported"                                                 },
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"                                               },
    {NVML_ERROR_DEPRECATED,                "Deprecated"                                                              },
    {NVML_ERROR_NOT_READY,                 "Not ready"                                                               },
    {NVML_ERROR_GPU_NOT_FOUND,             "GPU not found"                                                           },
    {NVML_ERROR_INVALID_STATE,             "Invalid state"                                                           },
    {NVML_ERROR_RESET_TYPE_NOT_SUPPORTED,  "Reset type not supported"                                                },
};

EXPORT const char *nvmlErrorString(nvml_return code) {
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (sentences[i].code == code) return sentences[i].text;
    return "Unknown Error";
}

EXPORT nvml_return nvmlSystemGetDriverVersion(char *text, uint32_t size) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlSystemGetDriverVersion, text, &root);
    return r == NVML_SUCCESS ? text_out(text, size, root->driver_version) : r;
}

/* The library's and CUDA's versions are told without nvmlInit, too. */
EXPORT nvml_return nvmlSystemGetNVMLVersion(char *text, uint32_t size) {
    const struct shm_root *root;
    if (!text) return NVML_ERROR_INVALID_ARGUMENT;
    return text_out(text, size, session_check(&root) == NVML_SUCCESS ? root->nvml_version : own_version);
}

static nvml_return cuda_version(int32_t *ret) {
    const struct shm_root *root;
    if (!ret) return NVML_ERROR_INVALID_ARGUMENT;
    *ret = session_check(&root) == NVML_SUCCESS ? (int32_t)root->cuda_version : OWN_CUDA_VERSION;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlSystemGetCudaDriverVersion(int32_t *ret) { return cuda_version(ret); }
EXPORT nvml_return nvmlSystemGetCudaDriverVersion_v2(int32_t *ret) { return cuda_version(ret); }

struct driver_branch {
    uint32_t version;
    char branch[NVML_DRIVER_VERSION_SIZE];
};
NVML_LAYOUT(struct driver_branch, 84);

EXPORT nvml_return nvmlSystemGetDriverBranch(struct driver_branch *ret, uint32_t size) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlSystemGetDriverBranch, ret, &root);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_VERSION(struct driver_branch, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return text_out(ret->branch, size < sizeof ret->branch ? size : sizeof ret->branch, own_branch);
}

/* The first word of the command line; a program that shows none has its short name. */
static bool program_name(uint32_t pid, char *buf, size_t size) {
    char path[32];
    const char *const files[] = {"cmdline", "comm"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/proc/%u/%s", pid, files[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return false;
        ssize_t n = read(fd, buf, size - 1);
        close(fd);
        if (n <= 0) continue;
        buf[n] = 0;
        buf[strcspn(buf, "\n")] = 0;
        return true;
    }
    return false;
}

EXPORT nvml_return nvmlSystemGetProcessName(uint32_t pid, char *text, uint32_t size) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlSystemGetProcessName, text, &root);
    if (r != NVML_SUCCESS) return r;
    if (size == 0) return NVML_ERROR_INVALID_ARGUMENT;
    char name[1024];
    if (!program_name(pid, name, sizeof name)) return NVML_ERROR_NOT_FOUND;
    snprintf(text, size, "%s", name); /* cut to what was given: a long name is no error */
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlSystemGetHicVersion(uint32_t *count, void *entries) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlSystemGetHicVersion, count, &root);
    if (r == NVML_SUCCESS) *count = 0;
    return r;
}

struct conf_caps {
    uint32_t cpu, gpus;
};
EXPORT nvml_return nvmlSystemGetConfComputeCapabilities(struct conf_caps *ret) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlSystemGetConfComputeCapabilities, ret, &root);
    if (r != NVML_SUCCESS) return r;
    *ret = (struct conf_caps){0};
    for (uint32_t i = 0; i < root->gpu_count; i++)
        if (shm_gpu(root, i)->card.architecture >= NVML_ARCH_HOPPER) ret->gpus = 1;
    return NVML_SUCCESS;
}

struct conf_state {
    uint32_t environment, feature, tools;
};
EXPORT nvml_return nvmlSystemGetConfComputeState(struct conf_state *ret) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlSystemGetConfComputeState, ret, &root);
    if (r == NVML_SUCCESS) *ret = (struct conf_state){0};
    return r;
}

static nvml_return none_excluded(enum call call, uint32_t *ret) {
    const struct shm_root *root;
    nvml_return r = ask_library(call, ret, &root);
    if (r == NVML_SUCCESS) *ret = 0;
    return r;
}
EXPORT nvml_return nvmlGetExcludedDeviceCount(uint32_t *ret) {
    return none_excluded(CALL_nvmlGetExcludedDeviceCount, ret);
}
EXPORT nvml_return nvmlUnitGetCount(uint32_t *ret) { return none_excluded(CALL_nvmlUnitGetCount, ret); }

/* With no unit and no excluded card there is no index and no handle that these could be asked with. */
#define NO_SUCH_OBJECT(call, ...)                                                                                      \
    EXPORT nvml_return call(__VA_ARGS__) {                                                                             \
        const struct shm_root *root;                                                                                   \
        nvml_return r = session_check(&root);                                                                          \
        return r == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : r;                                                    \
    }
NO_SUCH_OBJECT(nvmlGetExcludedDeviceInfoByIndex, uint32_t index, void *ret)
NO_SUCH_OBJECT(nvmlUnitGetHandleByIndex, uint32_t index, struct nvml_unit **ret)
NO_SUCH_OBJECT(nvmlUnitGetUnitInfo, struct nvml_unit *unit, void *ret)
NO_SUCH_OBJECT(nvmlUnitGetLedState, struct nvml_unit *unit, void *ret)
NO_SUCH_OBJECT(nvmlUnitGetPsuInfo, struct nvml_unit *unit, void *ret)
NO_SUCH_OBJECT(nvmlUnitGetTemperature, struct nvml_unit *unit, uint32_t type, uint32_t *ret)
NO_SUCH_OBJECT(nvmlUnitGetFanSpeedInfo, struct nvml_unit *unit, void *ret)
NO_SUCH_OBJECT(nvmlUnitGetDevices, struct nvml_unit *unit, uint32_t *count, struct nvml_device **devices)
NO_SUCH_OBJECT(nvmlUnitSetLedState, struct nvml_unit *unit, uint32_t color)
