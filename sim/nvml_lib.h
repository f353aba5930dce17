/* Inside the simulated libnvidia-ml.so.1: how a call finds its way in.
 *
 * Every exported function begins with ask_library() or ask_device(), which do in one place what a driver does with
 * any call: refuse it when the library is not initialised or the driver is gone, hang when a fault says so, take
 * the time that the call takes on a real card, tell a lost card, and answer NOT_SUPPORTED for what the card cannot
 * do. What follows in the function is only the answer. No function here holds a lock while it waits, and none
 * writes to the shared memory.
 *
 * Exported functions have no prototypes in a header: clients find them by name, and nvml_calls.h lists the names. */
#ifndef SIM_NVML_LIB_H
#define SIM_NVML_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/nvml_abi.h"
#include "sim/nvml_calls.h"
#include "sim/shm.h"
#include "sim/wire.h"

#define EXPORT __attribute__((visibility("default")))

enum call {
#define X(name) CALL_##name,
    NVML_CALLS(X)
#undef X
        CALL_COUNT
};

/* One call on its way through. `s` is a copy of one moment, without its GPM counters. */
struct ask {
    const struct shm_root *root;
    const struct shm_gpu *gpu;
    const struct shm_card *card;
    uint32_t mig; /* place in card->mig, or NVML_NO_INSTANCE for the whole card */
    struct shm_state s;
};

/* `out` is where the answer goes: NULL is an INVALID_ARGUMENT. `needs` are abilities, CAN(...), all of them needed. */
nvml_return ask_library(enum call call, const void *out, const struct shm_root **ret);
nvml_return ask_device(struct ask *q, enum call call, struct nvml_device *d, uint64_t needs, const void *out);
/* The same for the few calls that also take the handle of a MIG device: q->mig tells which it was. */
nvml_return ask_any_device(struct ask *q, enum call call, struct nvml_device *d, uint64_t needs, const void *out);
/* For a call that names its GPU by something other than a handle: by its place in the simulator's list. */
nvml_return ask_index(struct ask *q, enum call call, uint32_t index);
bool ask_can(const struct ask *q, enum ability a);

/* The session behind nvmlInit. */
nvml_return session_check(const struct shm_root **ret); /* initialised, driver there, and still the one it was */
void session_dir(char *buf, size_t size);
uint32_t session_host_pid(void);                       /* this process as the simulator's host numbers it */
nvml_return session_ask(const struct wire_request *q); /* one request over the simulator's socket */

/* Handles. They are numbers that carry session, GPU and MIG place, never addresses: a stale or invented one is refused
   without being followed. */
enum handle_kind { HANDLE_DEVICE = 1, HANDLE_GPU_INSTANCE, HANDLE_COMPUTE_INSTANCE };
void *handle_make(enum handle_kind kind, uint32_t gpu, uint32_t mig);
bool handle_read(enum handle_kind kind, const void *handle, uint32_t *ret_gpu, uint32_t *ret_mig);

/* Spends what this call costs when the simulator was told so. */
void pay_call(const struct shm_root *root, enum call call);
uint64_t pay_field(const struct shm_root *root, uint32_t field); /* microseconds it took */

nvml_return text_out(char *to, uint32_t size, const char *from); /* INSUFFICIENT_SIZE when it does not fit */
uint64_t clock_us(void);                                         /* wall clock */

/* Of one GPU, shared by the functions and the field values that say the same. */
uint64_t ecc_total(const struct shm_state *s, uint32_t kind, uint32_t counter);
uint64_t reason_time_ns(const struct shm_state *s, uint64_t reason);
uint64_t policy_time_ns(const struct shm_state *s, uint32_t policy);
void pci_fill(const struct shm_card *c, struct nvml_pci_info *ret);
nvml_return link_check(const struct ask *q, uint32_t link);
uint32_t link_version_code(const struct shm_card *c);
void mig_memory(const struct ask *q, uint64_t *ret_total, uint64_t *ret_used);

/* A question with one answer. */
#define ANSWER(call, needs, type, expr)                                                                                \
    EXPORT nvml_return call(struct nvml_device *device, type *ret) {                                                   \
        struct ask q;                                                                                                  \
        nvml_return r = ask_device(&q, CALL_##call, device, needs, ret);                                               \
        if (r == NVML_SUCCESS) *ret = (type)(expr);                                                                    \
        return r;                                                                                                      \
    }

/* A question answered by a string in a buffer of a given size. */
#define ANSWER_TEXT(call, needs, expr)                                                                                 \
    EXPORT nvml_return call(struct nvml_device *device, char *text, uint32_t size) {                                   \
        struct ask q;                                                                                                  \
        nvml_return r = ask_device(&q, CALL_##call, device, needs, text);                                              \
        return r == NVML_SUCCESS ? text_out(text, size, (expr)) : r;                                                   \
    }

#endif
