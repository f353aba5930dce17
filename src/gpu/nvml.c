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
    {NVML_ERROR_INSUFFICIENT_POWER,        -EAGAIN,  "a power cable of the GPU is not attached properly"},
    {NVML_ERROR_DRIVER_NOT_LOADED,         -ENXIO,   "the NVIDIA driver is not loaded"},
    {NVML_ERROR_TIMEOUT,                   -EAGAIN,  "timed out"},
    {NVML_ERROR_IRQ_ISSUE,                 -ENODEV,  "the GPU's interrupts do not arrive"},
    {NVML_ERROR_LIBRARY_NOT_FOUND,         -ENOTSUP, "a library of the driver is missing"},
    {NVML_ERROR_FUNCTION_NOT_FOUND,        -ENOTSUP, "this driver has no such call"},
    {NVML_ERROR_GPU_IS_LOST,               -ENODEV,  "the GPU has fallen off the bus"},
    {NVML_ERROR_RESET_REQUIRED,            -ENODEV,  "the GPU needs a reset"},
    {NVML_ERROR_OPERATING_SYSTEM,          -EAGAIN,  "the kernel blocked the GPU"},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH,   -ENXIO,   "driver and library are of different versions: reboot, or reload the kernel module"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, -ENOTSUP, "this driver knows another version of the call"},
    {NVML_ERROR_DEPRECATED,                -ENOTSUP, "this driver no longer has the call"},
    {NVML_ERROR_VGPU_ECC_NOT_SUPPORTED,    -ENOTSUP, "not supported with a virtual GPU"},
    {NVML_ERROR_IN_USE,                    -EAGAIN,  "the GPU is in use"},
    {NVML_ERROR_MEMORY,                    -EAGAIN,  "out of memory"},
    {NVML_ERROR_NO_DATA,                   -EAGAIN,  "no data yet"},
    {NVML_ERROR_NOT_READY,                 -EAGAIN,  "not ready yet"},
    {NVML_ERROR_GPU_NOT_FOUND,             -ENODEV,  "no GPU was found"},
};

/* What a failure to start means, where the code alone would leave a person guessing. */
static const struct {
    nvml_return code;
    const char *words;
} start_words[] = {
    {NVML_ERROR_NO_PERMISSION,     "no permission to use the NVIDIA driver: this user may not open its device files"},
    {NVML_ERROR_LIBRARY_NOT_FOUND, "the NVIDIA driver is incomplete: a library of it is missing"},
    {NVML_ERROR_GPU_IS_LOST,       "the NVIDIA driver does not start: a GPU has fallen off the bus"},
    {NVML_ERROR_GPU_NOT_FOUND,     "the NVIDIA driver finds no GPU"},
    {NVML_ERROR_UNKNOWN,           "the NVIDIA driver does not start, for a reason it does not tell; the kernel log may"},
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

static int start_failed(nvml_return code, struct error *e) {
    for (size_t i = 0; i < ARRAY_LEN(start_words); i++)
        if (start_words[i].code == code) return fail(e, -ENXIO, "%s", start_words[i].words);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].code == code) return fail(e, -ENXIO, "%s", codes[i].words);
    return fail(e, -ENXIO, "the NVIDIA driver does not start: NVML says %d", code);
}

bool nvml_lacks(const struct nvml_known *k, unsigned bit) {
    return atomic_load_explicit(&k->lacks, memory_order_relaxed) & BIT(bit);
}

int nvml_learn(struct nvml_known *k, unsigned bit, int r) {
    bool had = atomic_load_explicit(&k->had, memory_order_relaxed) & BIT(bit);
    if (r == 0 && !had) atomic_fetch_or_explicit(&k->had, BIT(bit), memory_order_relaxed);
    if (!had && (r == -ENOTSUP || r == -EINVAL || r == -EACCES))
        atomic_fetch_or_explicit(&k->lacks, BIT(bit), memory_order_relaxed);
    return r;
}

int nvml_join(int a, int b) {
    static const int order[] = {-ENXIO, -ENODEV, 0, -EINVAL, -EAGAIN, -EACCES, -ENOTSUP};
    if (a > 0 || b > 0) return -EAGAIN;
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (a == order[i] || b == order[i]) return order[i];
    return -EAGAIN;
}

static void nvml_close(struct gpu_driver *d) {
    struct nvml *nv = (struct nvml *)(void *)d;
    if (nv->shutdown) nv->shutdown();
    if (nv->library) dlclose(nv->library);
    free(nv);
}

/* A library that is there and cannot be loaded is another matter than none. */
static bool is_absence(const char *said) {
    return strstr(said, "cannot open shared object file: No such file") != NULL;
}

static void *library_open(const char *wanted, char *path, size_t room, struct error *e) {
    if (wanted && *wanted) {
        void *lib = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
        if (!lib) fail(e, -ENXIO, "gpu_library: %s", dlerror());
        snprintf(path, room, "%s", wanted);
        return lib;
    }
    fail(e, -ENXIO, "no NVIDIA driver here: libnvidia-ml.so.1 was not found");
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        void *lib = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        snprintf(path, room, "%s", places[i]);
        if (lib) return lib;
        const char *said = dlerror();
        if (said && !is_absence(said)) fail(e, -ENXIO, "the NVIDIA driver's library does not load: %s", said);
    }
    return NULL;
}

/* Each list in the newest form that there is. 535.43 to 535.86 wrote 32 bytes an entry under the _v3 names; two symbols
 * tell them apart. */
static void lists_choose(struct nvml *nv) {
    unsigned newest = nv->conf_compute && !nv->detail_list ? 32 : 24;
    const struct nvml_list_call forms[NVML_LISTS][3] = {
        [NVML_LIST_COMPUTE] = {{nv->compute, newest},  {nv->compute_v2, 24},  {nv->compute_v1, 16} },
        [NVML_LIST_GRAPHICS] = {{nv->graphics, newest}, {nv->graphics_v2, 24}, {nv->graphics_v1, 16}},
        [NVML_LIST_MPS] = {{nv->mps, newest},      {nv->mps_v2, 24},      {nv->mps_v1, 16}     },
    };
    for (size_t kind = 0; kind < NVML_LISTS; kind++)
        for (size_t form = 0; form < ARRAY_LEN(forms[kind]) && !nv->list[kind].get; form++)
            nv->list[kind] = forms[kind][form];
}

static void functions_find(struct nvml *nv) {
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        void *f = dlsym(nv->library, functions[i].symbol);
        memcpy((char *)nv + functions[i].offset, &f, sizeof f);
    }
    lists_choose(nv);
    if (!nv->reasons) nv->reasons = nv->reasons_old;
    if (!nv->init) nv->init = nv->init_v1;
    if (!nv->count) nv->count = nv->count_v1;
    if (!nv->by_index) nv->by_index = nv->by_index_v1;
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
    if (!nv->init || !nv->count || !nv->by_index) {
        nv->shutdown = NULL;
        fail(e, -ENXIO, "%s: is not an NVML library, or too old a one", nv->driver.library);
        nvml_close(&nv->driver);
        return -ENXIO;
    }
    library_name(nv);
    nvml_return code = nv->init();
    if (code != NVML_SUCCESS) {
        int r = start_failed(code, e);
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
    nvml_lists_done(g);
    pthread_mutex_destroy(&g->shares_lock);
    free(g);
}

static int nvml_gpu_open(struct gpu_driver *d, unsigned index, struct gpu **ret, struct error *e) {
    struct nvml *nv = (struct nvml *)(void *)d;
    nvml_handle handle;
    nvml_return code = nv->by_index(index, &handle);
    if (code == NVML_ERROR_NO_PERMISSION)
        return fail(e, -EACCES,
                    "no permission to see this GPU: it is given to others, or its device file is closed to us");
    if (code != NVML_SUCCESS) return fail(e, nvml_errno(code), "%s", nvml_words(code));
    struct nvml_gpu *g = calloc(1, sizeof *g);
    if (!g) return fail(e, -ENOMEM, "out of memory");
    g->gpu.driver = d;
    g->nv = nv;
    g->handle = handle;
    pthread_mutex_init(&g->shares_lock, NULL);
    nvml_inventory_read(g, index);
    int r = g->open_error               ? fail(e, g->open_error, "it was lost while it was being opened")
            : !g->gpu.inventory.uuid[0] ? fail(e, -EAGAIN, "it tells neither its UUID nor its PCI address")
                                        : nvml_instances_open(g, e);
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
    .why_not = nvml_why_not,
    .events_open = nvml_events_open,
    .events_close = nvml_events_close,
    .events_wait = nvml_events_wait,
};
