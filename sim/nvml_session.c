/* nvmlInit and nvmlShutdown: which simulator this process talks to, and whether it is still the one it was.
 *
 * A mapping is never unmapped: a call that hangs on request may hold it for ever. A simulator that was restarted
 * is another file and gets another mapping at the next init. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/client.h"
#include "sim/nvml_lib.h"

enum { BEAT_LIMIT_S = 5 }; /* a simulator without a step for so long was killed: the driver is gone */

static struct {
    pthread_mutex_t lock;
    uint32_t refs;
    uint32_t sessions; /* so far: part of every handle */
    char dir[PATH_MAX];
    dev_t device; /* of the file behind root */
    ino_t inode;
    pid_t pid; /* who asked for host_pid */
    uint32_t host_pid;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic(const struct shm_root *) session_root;
static _Atomic uint32_t session_epoch; /* 0: not initialised */
static _Atomic uint32_t session_generation;

static bool is_trusted(const char *dir) {
    struct stat st;
    return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid());
}

static bool has_simulator(const char *dir) {
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/" SHM_FILE, dir) < (int)sizeof path && access(path, R_OK) == 0;
}

static bool beside_library(char *buf, size_t size) {
    Dl_info self;
    if (!dladdr(&session, &self) || !self.dli_fname) return false;
    char path[PATH_MAX];
    if (!realpath(self.dli_fname, path)) return false;
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = 0;
    return snprintf(buf, size, "%s/gpusim", path) < (int)size;
}

/* $GPUSIM_DIR when set, and then nothing else; else beside this library (a container that mounts both), then the
   machine's, then the user's own. */
static bool find_dir(char *buf, size_t size) {
    const char *set = getenv("GPUSIM_DIR");
    if (set && *set) return snprintf(buf, size, "%s", set) < (int)size;
    if (beside_library(buf, size) && has_simulator(buf)) return true;
    if (snprintf(buf, size, "/run/gpusim") < (int)size && has_simulator(buf)) return true;
    return *shm_default_dir(buf, size) && is_trusted(buf) && has_simulator(buf);
}

static bool has_stopped(const struct shm_root *root) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    uint64_t beat = atomic_load_explicit(&root->beat_ns, memory_order_relaxed);
    return now > beat && now - beat > BEAT_LIMIT_S * UINT64_C(1000000000);
}

static nvml_return driver_answers(const struct shm_root *root) {
    switch (atomic_load_explicit(&root->driver, memory_order_acquire)) {
    case SHM_DRIVER_UP: return has_stopped(root) ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_SUCCESS;
    case SHM_DRIVER_MISMATCH: return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    default: return NVML_ERROR_DRIVER_NOT_LOADED;
    }
}

static nvml_return ask_host_pid(const char *dir) {
    const struct wire_request q = {.verb = VERB_HELLO};
    struct wire_reply reply;
    if (client_once(dir, &q, &reply) < 0) return NVML_ERROR_DRIVER_NOT_LOADED;
    session.host_pid = reply.hello.pid;
    session.pid = getpid();
    return NVML_SUCCESS;
}

/* Maps the simulator's file unless it is the one that is mapped already. */
static nvml_return map_root(const char *dir, const struct shm_root **ret) {
    char path[PATH_MAX];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/" SHM_FILE, dir) >= (int)sizeof path || stat(path, &st) < 0)
        return errno == EACCES ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_DRIVER_NOT_LOADED;
    *ret = atomic_load(&session_root);
    if (*ret && st.st_dev == session.device && st.st_ino == session.inode) return NVML_SUCCESS;
    int r = shm_open_dir(dir, ret);
    if (r == -EACCES) return NVML_ERROR_NO_PERMISSION;
    if (r == -EPROTO) return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    if (r < 0) return NVML_ERROR_DRIVER_NOT_LOADED;
    session.device = st.st_dev;
    session.inode = st.st_ino;
    return NVML_SUCCESS;
}

static nvml_return start_session(void) {
    char dir[PATH_MAX];
    const struct shm_root *root;
    if (!find_dir(dir, sizeof dir)) return NVML_ERROR_DRIVER_NOT_LOADED;
    nvml_return r = map_root(dir, &root);
    if (r == NVML_SUCCESS) r = driver_answers(root);
    if (r == NVML_SUCCESS) r = ask_host_pid(dir);
    if (r != NVML_SUCCESS) return r;
    memcpy(session.dir, dir, sizeof dir);
    session.sessions++;
    atomic_store(&session_root, root);
    atomic_store(&session_generation, atomic_load_explicit(&root->generation, memory_order_acquire));
    atomic_store(&session_epoch, session.sessions);
    return NVML_SUCCESS;
}

static nvml_return init(enum call call) {
    pthread_mutex_lock(&session.lock);
    nvml_return r = session.refs == 0 ? start_session() : NVML_SUCCESS;
    bool is_first = session.refs == 0;
    if (r == NVML_SUCCESS) session.refs++;
    pthread_mutex_unlock(&session.lock);
    if (r == NVML_SUCCESS && is_first) pay_call(atomic_load(&session_root), call);
    return r;
}

EXPORT nvml_return nvmlInit(void) { return init(CALL_nvmlInit); }
EXPORT nvml_return nvmlInit_v2(void) { return init(CALL_nvmlInit_v2); }

EXPORT nvml_return nvmlInitWithFlags(uint32_t flags) {
    if (flags & ~(uint32_t)(NVML_INIT_NO_GPUS | NVML_INIT_NO_ATTACH | NVML_INIT_FORCE))
        return NVML_ERROR_INVALID_ARGUMENT;
    return init(CALL_nvmlInitWithFlags);
}

EXPORT nvml_return nvmlShutdown(void) {
    pthread_mutex_lock(&session.lock);
    bool was_up = session.refs > 0;
    bool is_last = session.refs == 1;
    if (was_up) session.refs--;
    if (is_last) atomic_store(&session_epoch, 0);
    pthread_mutex_unlock(&session.lock);
    if (!was_up) return NVML_ERROR_UNINITIALIZED;
    if (is_last) pay_call(atomic_load(&session_root), CALL_nvmlShutdown);
    return NVML_SUCCESS;
}

nvml_return session_check(const struct shm_root **ret) {
    if (atomic_load_explicit(&session_epoch, memory_order_acquire) == 0) return NVML_ERROR_UNINITIALIZED;
    const struct shm_root *root = atomic_load_explicit(&session_root, memory_order_acquire);
    /* A client that was there before an upgrade keeps its library and goes on: only a new init meets the mismatch. */
    nvml_return r = driver_answers(root);
    if (r != NVML_SUCCESS && r != NVML_ERROR_LIB_RM_VERSION_MISMATCH) return r;
    if (atomic_load_explicit(&root->generation, memory_order_acquire) != atomic_load(&session_generation))
        return NVML_ERROR_UNINITIALIZED; /* the driver came back: what this process had open is gone */
    *ret = root;
    return NVML_SUCCESS;
}

void session_dir(char *buf, size_t size) {
    pthread_mutex_lock(&session.lock);
    snprintf(buf, size, "%s", session.dir);
    pthread_mutex_unlock(&session.lock);
}

uint32_t session_host_pid(void) {
    pthread_mutex_lock(&session.lock);
    if (session.pid != getpid()) ask_host_pid(session.dir); /* a child of the process that called nvmlInit */
    uint32_t pid = session.host_pid;
    pthread_mutex_unlock(&session.lock);
    return pid;
}

nvml_return session_ask(const struct wire_request *q) {
    char dir[PATH_MAX];
    struct wire_reply reply;
    session_dir(dir, sizeof dir);
    if (client_once(dir, q, &reply) < 0) return NVML_ERROR_DRIVER_NOT_LOADED;
    return reply.code;
}

/* Tag, kind, 20 bits of session, 8 of GPU, 4 of MIG place (0: the card itself); shifted so that it looks aligned. */
enum { TAG = 0x5e };

void *handle_make(enum handle_kind kind, uint32_t gpu, uint32_t mig) {
    uint64_t epoch = atomic_load(&session_epoch) & 0xfffff;
    uint64_t place = mig == NVML_NO_INSTANCE ? 0 : mig + 1;
    uint64_t bits = (uint64_t)TAG << 36 | (uint64_t)kind << 32 | epoch << 12 | (uint64_t)gpu << 4 | place;
    return (void *)(uintptr_t)(bits << 3);
}

bool handle_read(enum handle_kind kind, const void *handle, uint32_t *ret_gpu, uint32_t *ret_mig) {
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    if (bits & 7) return false;
    bits >>= 3;
    if (bits >> 36 != TAG || (bits >> 32 & 0xf) != kind) return false;
    if ((bits >> 12 & 0xfffff) != (atomic_load(&session_epoch) & 0xfffff)) return false;
    uint32_t place = bits & 0xf;
    *ret_gpu = (uint32_t)(bits >> 4 & 0xff);
    *ret_mig = place == 0 ? NVML_NO_INSTANCE : place - 1;
    return true;
}

_Static_assert(SHM_GPUS_MAX <= 256 && SHM_MIG_MAX < 16, "they fit a handle");
