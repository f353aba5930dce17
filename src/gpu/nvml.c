/* NVML as a back end: opens the library, finds its functions, hands out GPUs. Nothing here sets anything. */
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {
#define FUNCTION(member, symbol, arguments) {symbol, offsetof(struct nvml, member)},
    NVML_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* Where drivers put it: the loader's path first, then the trees of containerised drivers. */
static const char *const places[] = {
    "libnvidia-ml.so.1",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
};

/* clang-format off */
static const struct {
    nvml_return code;
    int err;
    const char *words;
} codes[] = {
    {NVML_SUCCESS,                         0,        "success"},
    {NVML_ERROR_UNINITIALIZED,             -ENXIO,   "the driver was unloaded"},
    {NVML_ERROR_INVALID_ARGUMENT,          -EINVAL,  "invalid argument"},
    {NVML_ERROR_NOT_SUPPORTED,             -ENOTSUP, "not supported by this GPU"},
    {NVML_ERROR_NO_PERMISSION,             -EACCES,  "no permission"},
    {NVML_ERROR_NOT_FOUND,                 -EAGAIN,  "not found"},
    {NVML_ERROR_INSUFFICIENT_SIZE,         -ENOBUFS, "the buffer is too small"},
    {NVML_ERROR_DRIVER_NOT_LOADED,         -ENXIO,   "the NVIDIA driver is not loaded"},
    {NVML_ERROR_TIMEOUT,                   -EAGAIN,  "timed out"},
    {NVML_ERROR_IRQ_ISSUE,                 -ENODEV,  "the GPU's interrupts do not arrive"},
    {NVML_ERROR_LIBRARY_NOT_FOUND,         -ENXIO,   "a library of the driver is missing"},
    {NVML_ERROR_FUNCTION_NOT_FOUND,        -ENOTSUP, "this driver has no such call"},
    {NVML_ERROR_GPU_IS_LOST,               -ENODEV,  "the GPU has fallen off the bus"},
    {NVML_ERROR_RESET_REQUIRED,            -ENODEV,  "the GPU needs a reset"},
    {NVML_ERROR_OPERATING_SYSTEM,          -EAGAIN,  "the kernel blocked the GPU"},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH,   -ENXIO,   "driver and library are of different versions: reboot, or reload the kernel module"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, -ENOTSUP, "this driver knows another version of the call"},
    {NVML_ERROR_DEPRECATED,                -ENOTSUP, "this driver no longer has the call"},
    {NVML_ERROR_GPU_NOT_FOUND,             -ENODEV,  "no GPU was found"},
};
/* clang-format on */

int nvml_errno(nvml_return code) {
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].code == code) return codes[i].err;
    return -EAGAIN; /* busy, not ready, unknown: perhaps the next time */
}

const char *nvml_words(nvml_return code) {
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].code == code) return codes[i].words;
    return "the driver gave an unknown error";
}

static void nvml_close(struct gpu_driver *d) {
    struct nvml *nv = (struct nvml *)(void *)d;
    if (nv->shutdown) nv->shutdown();
    if (nv->library) dlclose(nv->library);
    free(nv);
}

static void *library_open(const char *wanted, char *path, size_t room, struct error *e) {
    if (wanted && *wanted) {
        void *lib = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
        if (!lib) fail(e, -ENXIO, "gpu_library: %s", dlerror());
        snprintf(path, room, "%s", wanted);
        return lib;
    }
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        void *lib = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        snprintf(path, room, "%s", places[i]);
        if (lib) return lib;
    }
    fail(e, -ENXIO, "no NVIDIA driver here: libnvidia-ml.so.1 was not found");
    return NULL;
}

static void functions_find(struct nvml *nv) {
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        void *f = dlsym(nv->library, functions[i].symbol);
        memcpy((char *)nv + functions[i].offset, &f, sizeof f);
    }
    /* 535.43 to 535.86 wrote 32 bytes an entry under the _v3 names; these two symbols tell them apart */
    if (nv->compute)
        nv->process_stride = nv->conf_compute && !nv->detail_list ? 32 : 24;
    else
        nv->process_stride = nv->compute_v2 ? 24 : 16;
    nv->process_has_instance = nv->process_stride > 16;
    if (!nv->compute) nv->compute = nv->compute_v2 ? nv->compute_v2 : nv->compute_v1;
    if (nv->process_stride == 16) {
        nv->graphics = nv->graphics_v1;
        nv->mps = nv->mps_v1;
    } else {
        if (!nv->graphics) nv->graphics = nv->graphics_v2;
        if (!nv->mps) nv->mps = nv->mps_v2;
    }
    if (!nv->reasons) nv->reasons = nv->reasons_old;
    if (!nv->init) nv->init = nv->init_v1;
    if (!nv->count) nv->count = nv->count_v1;
    if (!nv->by_index) nv->by_index = nv->by_index_v1;
    if (!nv->pci) nv->pci = nv->pci_v2;
}

/* The file that was really opened, for people who wonder which driver this is. */
static void library_name(struct nvml *nv) {
    Dl_info info;
    void *at = NULL;
    memcpy(&at, &nv->init, sizeof at);
    if (dladdr(at, &info) && info.dli_fname)
        snprintf(nv->driver.library, sizeof nv->driver.library, "%s", info.dli_fname);
}

static int nvml_open(const char *library, struct gpu_driver **ret, struct error *e) {
    struct nvml *nv = calloc(1, sizeof *nv);
    if (!nv) return fail(e, -ENOMEM, "out of memory");
    nv->driver.backend = &nvml_backend;
    nv->library = library_open(library, nv->driver.library, sizeof nv->driver.library, e);
    if (!nv->library) {
        free(nv);
        return -ENXIO;
    }
    functions_find(nv);
    if (!nv->init || !nv->count || !nv->by_index || !nv->uuid) {
        nv->shutdown = NULL;
        fail(e, -ENXIO, "%s: is not an NVML library, or too old a one", nv->driver.library);
        nvml_close(&nv->driver);
        return -ENXIO;
    }
    library_name(nv);
    nvml_return code = nv->init();
    if (code != NVML_SUCCESS) {
        int r = fail(e, nvml_errno(code) < 0 ? nvml_errno(code) : -ENXIO, "%s", nvml_words(code));
        nv->shutdown = NULL;
        nvml_close(&nv->driver);
        return r;
    }
    if (NVML_CALL(nv->driver_version, nv->driver.version, sizeof nv->driver.version) < 0)
        snprintf(nv->driver.version, sizeof nv->driver.version, "unknown");
    *ret = &nv->driver;
    return 0;
}

static int nvml_count(struct gpu_driver *d, struct error *e) {
    struct nvml *nv = (struct nvml *)(void *)d;
    unsigned n = 0;
    nvml_return code = nv->count(&n);
    if (code != NVML_SUCCESS) return fail(e, nvml_errno(code), "counting GPUs: %s", nvml_words(code));
    return n > GPU_MAX ? GPU_MAX : (int)n;
}

static void nvml_gpu_close(struct gpu *gpu) {
    struct nvml_gpu *g = nvml_of(gpu);
    for (unsigned i = 0; i < gpu->instance_count; i++) nvml_gpu_close(gpu->instance[i]);
    nvml_gpm_done(g);
    pthread_mutex_destroy(&g->shares_lock);
    free(g);
}

static int nvml_gpu_open(struct gpu_driver *d, unsigned index, struct gpu **ret, struct error *e) {
    struct nvml *nv = (struct nvml *)(void *)d;
    nvml_handle handle;
    nvml_return code = nv->by_index(index, &handle);
    if (code != NVML_SUCCESS) return fail(e, nvml_errno(code), "GPU %u: %s", index, nvml_words(code));
    struct nvml_gpu *g = calloc(1, sizeof *g);
    if (!g) return fail(e, -ENOMEM, "out of memory");
    g->gpu.driver = d;
    g->nv = nv;
    g->handle = handle;
    pthread_mutex_init(&g->shares_lock, NULL);
    g->gpu.inventory.index = (int)index;
    nvml_inventory_read(g);
    int r = g->gpu.inventory.uuid[0] ? nvml_instances_open(g, e)
                                     : fail(e, -ENODEV, "GPU %u: does not tell its UUID", index);
    if (r < 0) {
        nvml_gpu_close(&g->gpu);
        return r;
    }
    *ret = &g->gpu;
    return 0;
}

const struct gpu_backend nvml_backend = {
    .name = "nvml",
    .open = nvml_open,
    .close = nvml_close,
    .count = nvml_count,
    .gpu_open = nvml_gpu_open,
    .gpu_close = nvml_gpu_close,
    .is_recut = nvml_is_recut,
    .calls = nvml_calls,
    .call = nvml_call,
    .read = nvml_read,
    .events_open = nvml_events_open,
    .events_close = nvml_events_close,
    .events_wait = nvml_events_wait,
};
