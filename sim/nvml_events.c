/* Event sets. A set is one subscription to the simulator, held on a connection of its own from the first
 * registration on.
 *
 * What happens before a registration is never told, and nothing carries a time. Several threads may use one set:
 * the connection is read under the set's lock, and waiting is done outside it. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/client.h"
#include "sim/nvml_lib.h"

enum { PENDING_MAX = 64, LOOK_MS = 5000, ANSWER_MS = 2000 };

struct nvml_event_set {
    struct nvml_event_set *next; /* in `sets` */
    pthread_mutex_t lock;
    uint32_t users; /* calls under way, guarded by sets_lock: the last one of a freed set lets it go */
    bool is_freed;
    int fd; /* -1: nothing registered yet */
    struct wire_subscribe wanted;
    struct wire_event pending[PENDING_MAX]; /* came while the answer to a registration was awaited */
    uint32_t first, count;
};

static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvml_event_set *sets;

static struct nvml_event_set *take(const struct nvml_event_set *handle) {
    pthread_mutex_lock(&sets_lock);
    struct nvml_event_set *s = sets;
    while (s && s != handle) s = s->next;
    if (s) s->users++;
    pthread_mutex_unlock(&sets_lock);
    return s;
}

static void let_go(struct nvml_event_set *s) {
    pthread_mutex_lock(&sets_lock);
    bool is_last = --s->users == 0 && s->is_freed;
    pthread_mutex_unlock(&sets_lock);
    if (!is_last) return;
    if (s->fd >= 0) client_close(s->fd);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

EXPORT nvml_return nvmlEventSetCreate(struct nvml_event_set **ret) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlEventSetCreate, ret, &root);
    if (r != NVML_SUCCESS) return r;
    struct nvml_event_set *s = calloc(1, sizeof *s);
    if (!s) return NVML_ERROR_MEMORY;
    s->fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_lock(&sets_lock);
    s->next = sets;
    sets = s;
    pthread_mutex_unlock(&sets_lock);
    *ret = s;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlEventSetFree(struct nvml_event_set *handle) {
    const struct shm_root *root;
    nvml_return r = session_check(&root);
    if (r == NVML_ERROR_UNINITIALIZED) return r;
    pthread_mutex_lock(&sets_lock);
    struct nvml_event_set **at = &sets, *s = NULL;
    while (*at && *at != handle) at = &(*at)->next;
    if (*at) {
        s = *at;
        *at = s->next;
        s->is_freed = true;
        s->users++;
    }
    pthread_mutex_unlock(&sets_lock);
    if (!s) return NVML_ERROR_INVALID_ARGUMENT;
    let_go(s);
    return NVML_SUCCESS;
}

static void push(struct nvml_event_set *s, const struct wire_event *e) {
    if (s->count == PENDING_MAX) { /* a storm: the oldest go, as in the driver's own bounded queue */
        s->first = (s->first + 1) % PENDING_MAX;
        s->count--;
    }
    s->pending[(s->first + s->count++) % PENDING_MAX] = *e;
}

/* With the set's lock held. */
static nvml_return subscribe(struct nvml_event_set *s) {
    char dir[PATH_MAX];
    struct wire_reply reply;
    struct wire_request q = {.verb = VERB_SUBSCRIBE};
    q.subscribe = s->wanted;
    session_dir(dir, sizeof dir);
    if (s->fd < 0) s->fd = client_open(dir);
    if (s->fd < 0) return NVML_ERROR_DRIVER_NOT_LOADED;
    int r = client_ask(s->fd, &q, &reply, ANSWER_MS);
    while (r == 0 && reply.verb == VERB_EVENT) {
        push(s, &reply.event);
        r = client_receive(s->fd, &reply, ANSWER_MS);
    }
    return r < 0 ? NVML_ERROR_UNKNOWN : reply.code;
}

EXPORT nvml_return nvmlDeviceRegisterEvents(struct nvml_device *device, uint64_t types, struct nvml_event_set *handle) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceRegisterEvents, device, CAN(EVENTS), handle);
    if (r != NVML_SUCCESS) return r;
    struct nvml_event_set *s = take(handle);
    if (!s) return NVML_ERROR_INVALID_ARGUMENT;
    if (types & ~q.card->event_types) {
        r = NVML_ERROR_NOT_SUPPORTED; /* and none of them is registered */
    } else {
        pthread_mutex_lock(&s->lock);
        s->wanted.types[q.card->index] |= types;
        r = subscribe(s);
        pthread_mutex_unlock(&s->lock);
    }
    let_go(s);
    return r;
}

ANSWER(nvmlDeviceGetSupportedEventTypes, CAN(EVENTS), uint64_t, q.card->event_types)

/* 1 and an event, 0 for none yet, or a negative errno when the simulator closed the connection. */
static int next_event(struct nvml_event_set *s, struct wire_event *ret) {
    struct wire_reply reply;
    int r = 0;
    pthread_mutex_lock(&s->lock);
    if (s->count > 0) {
        *ret = s->pending[s->first];
        s->first = (s->first + 1) % PENDING_MAX;
        s->count--;
        r = 1;
    } else if (s->fd >= 0) {
        r = client_receive(s->fd, &reply, 0);
        if (r == 0 && reply.verb == VERB_EVENT) {
            *ret = reply.event;
            r = 1;
        } else if (r == -ETIMEDOUT || r == -EAGAIN) {
            r = 0;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* Whether one of the cards in the set is lost, or is to hang in this very call. */
static nvml_return check_cards(struct nvml_event_set *s, enum call call, const struct shm_root *root) {
    for (uint32_t i = 0; i < root->gpu_count; i++) {
        struct ask q;
        if (s->wanted.types[i] == 0) continue;
        if (ask_index(&q, call, i) == NVML_ERROR_GPU_IS_LOST) return NVML_ERROR_GPU_IS_LOST;
    }
    return NVML_SUCCESS;
}

static uint64_t clock_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static nvml_return wait_event(struct nvml_event_set *s, enum call call, uint32_t timeout_ms, struct wire_event *ret) {
    uint64_t until = clock_ms() + timeout_ms;
    for (;;) {
        const struct shm_root *root;
        int r = next_event(s, ret); /* before looking for losses: the XID that tells of one comes first */
        if (r > 0) return NVML_SUCCESS;
        nvml_return up = session_check(&root);
        if (up != NVML_SUCCESS) return up;
        if (r < 0) return NVML_ERROR_UNKNOWN;
        up = check_cards(s, call, root);
        if (up != NVML_SUCCESS) return up;
        uint64_t now = clock_ms();
        if (now >= until) return NVML_ERROR_TIMEOUT;
        uint64_t left = until - now;
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        poll(&p, 1, left < LOOK_MS ? (int)left : LOOK_MS);
    }
}

static nvml_return wait_any(struct nvml_event_set *handle, enum call call, uint32_t timeout_ms,
                            struct nvml_event *ret) {
    const struct shm_root *root;
    struct wire_event e = {0};
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    struct nvml_event_set *s = take(handle);
    if (!s) return NVML_ERROR_INVALID_ARGUMENT;
    r = wait_event(s, call, timeout_ms, &e);
    let_go(s);
    if (r != NVML_SUCCESS) return r;
    *ret = (struct nvml_event){handle_make(HANDLE_DEVICE, e.gpu, NVML_NO_INSTANCE), e.type, e.value, e.gi, e.ci};
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event *ret, uint32_t timeout_ms) {
    struct nvml_event e;
    if (!ret) return NVML_ERROR_INVALID_ARGUMENT;
    nvml_return r = wait_any(set, CALL_nvmlEventSetWait_v2, timeout_ms, &e);
    if (r == NVML_SUCCESS) *ret = e;
    return r;
}

EXPORT nvml_return nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_v1 *ret, uint32_t timeout_ms) {
    struct nvml_event e;
    if (!ret) return NVML_ERROR_INVALID_ARGUMENT;
    nvml_return r = wait_any(set, CALL_nvmlEventSetWait, timeout_ms, &e);
    if (r == NVML_SUCCESS) *ret = (struct nvml_event_v1){e.device, e.type, e.data};
    return r;
}
