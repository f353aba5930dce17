/* What happens to every call before it is answered: see nvml_lib.h. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "sim/costs.h"
#include "sim/nvml_lib.h"

static const char *const call_names[CALL_COUNT] = {
#define X(name) #name,
    NVML_CALLS(X)
#undef X
};

enum { HANG_LOOK_MS = 20 };

uint64_t clock_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static bool has_costs(const struct shm_root *root) {
    return atomic_load_explicit(&root->costs_on, memory_order_relaxed) != 0;
}

/* Prices are searched by string, so each is looked up once; this one marks a call that is not in the list. */
static const struct cost free_of_charge = {0};

static const struct cost *cost_cached(enum call call) {
    static _Atomic(const struct cost *) known[CALL_COUNT];
    const struct cost *c = atomic_load_explicit(&known[call], memory_order_relaxed);
    if (!c) {
        c = cost_of(call_names[call]);
        if (!c) c = &free_of_charge;
        atomic_store_explicit(&known[call], c, memory_order_relaxed);
    }
    return c == &free_of_charge ? NULL : c;
}

void pay_call(const struct shm_root *root, enum call call) {
    if (has_costs(root)) cost_pay(cost_cached(call));
}

uint64_t pay_field(const struct shm_root *root, uint32_t field) {
    if (!has_costs(root) || field >= NVML_FI_MAX) return 0;
    static _Atomic(const struct cost *) known[NVML_FI_MAX];
    const struct cost *c = atomic_load_explicit(&known[field], memory_order_relaxed);
    if (!c) {
        c = cost_of_field(field);
        if (!c) c = &free_of_charge;
        atomic_store_explicit(&known[field], c, memory_order_relaxed);
    }
    if (c == &free_of_charge) return 0;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    cost_pay(c);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (uint64_t)((b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000);
}

static bool hangs(const struct shm_state *s, enum call call) {
    if (!s->hung) return false;
    if (s->hang_call[0] && strncmp(s->hang_call, call_names[call], sizeof s->hang_call) != 0) return false;
    return s->hang_pid == 0 || (uint32_t)s->hang_pid == session_host_pid();
}

/* As a thread stuck in the driver: nothing but the end of the process, or of the fault, ends it. */
static void hang_while_asked(struct ask *q, enum call call) {
    const struct timespec pause = {.tv_nsec = HANG_LOOK_MS * 1000000L};
    while (hangs(&q->s, call)) {
        nanosleep(&pause, NULL);
        SHM_GET(q->gpu, at_us, fan, &q->s);
    }
}

nvml_return ask_library(enum call call, const void *out, const struct shm_root **ret) {
    nvml_return r = session_check(ret);
    if (r != NVML_SUCCESS) return r;
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    pay_call(*ret, call);
    return NVML_SUCCESS;
}

static nvml_return ask_gpu(struct ask *q, enum call call, uint32_t index, uint64_t needs) {
    if (index >= q->root->gpu_count) return NVML_ERROR_INVALID_ARGUMENT;
    q->gpu = shm_gpu(q->root, index);
    q->card = &q->gpu->card;
    SHM_GET(q->gpu, at_us, fan, &q->s);
    hang_while_asked(q, call);
    pay_call(q->root, call);
    if (has_costs(q->root)) SHM_GET(q->gpu, at_us, fan, &q->s); /* the answer is of the end of the call */
    if (q->s.lost) return NVML_ERROR_GPU_IS_LOST;
    return (needs & ~(q->card->abilities & ~q->s.blind)) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvml_return ask_any_device(struct ask *q, enum call call, struct nvml_device *d, uint64_t needs, const void *out) {
    uint32_t index;
    nvml_return r = session_check(&q->root);
    if (r != NVML_SUCCESS) return r;
    if (!out || !handle_read(HANDLE_DEVICE, d, &index, &q->mig)) return NVML_ERROR_INVALID_ARGUMENT;
    return ask_gpu(q, call, index, needs);
}

nvml_return ask_device(struct ask *q, enum call call, struct nvml_device *d, uint64_t needs, const void *out) {
    nvml_return r = ask_any_device(q, call, d, needs, out);
    return r == NVML_SUCCESS && q->mig != NVML_NO_INSTANCE ? NVML_ERROR_NOT_SUPPORTED : r;
}

nvml_return ask_index(struct ask *q, enum call call, uint32_t index) {
    q->mig = NVML_NO_INSTANCE;
    nvml_return r = session_check(&q->root);
    return r == NVML_SUCCESS ? ask_gpu(q, call, index, 0) : r;
}

bool ask_can(const struct ask *q, enum ability a) { return shm_can(q->card, &q->s, a); }

nvml_return text_out(char *to, uint32_t size, const char *from) {
    size_t need = strlen(from) + 1;
    if (need > size) return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(to, from, need);
    return NVML_SUCCESS;
}
