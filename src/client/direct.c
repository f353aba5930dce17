#include "client/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/direct_child.h"

int direct_open(struct direct *d, const char *library, int patience_ms, struct error *e) {
    *d = (struct direct){.to_child = -1, .from_child = -1, .patience_ms = patience_ms};
    snprintf(d->library, sizeof d->library, "%s", library);
    void *mem = mmap(NULL, sizeof *d->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mem == MAP_FAILED) return fail_errno(e, errno, "memory for the driver's answers");
    d->shared = mem;
    return 0;
}

/* A process stuck in the driver cannot be reaped; it is left behind rather than waited for. */
static int end_child(struct direct *d) {
    int status = 0;
    if (d->child) kill(d->child, SIGKILL);
    for (int i = 0; d->child && i < 50; i++) {
        if (waitpid(d->child, &status, WNOHANG) != 0) break;
        usleep(4000);
    }
    d->child = 0;
    fd_done(&d->to_child);
    fd_done(&d->from_child);
    return status;
}

void direct_close(struct direct *d) {
    end_child(d);
    if (d->shared) munmap(d->shared, sizeof *d->shared);
    *d = (struct direct){.to_child = -1, .from_child = -1};
}

static int begin_child(struct direct *d, struct error *e) {
    int ask[2], answer[2];
    if (pipe2(ask, O_CLOEXEC) < 0) return fail_errno(e, errno, "pipe");
    if (pipe2(answer, O_CLOEXEC) < 0) {
        int errnum = errno;
        close(ask[0]), close(ask[1]);
        return fail_errno(e, errnum, "pipe");
    }
    d->shared->at = -1;
    d->shared->instance_count = 0;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ask[1]), close(answer[0]);
        direct_child(d->shared, d->library, ask[0], answer[1], parent);
    }
    int errnum = errno;
    close(ask[0]), close(answer[1]);
    d->to_child = ask[1];
    d->from_child = answer[0];
    if (pid < 0) {
        end_child(d);
        return fail_errno(e, errnum, "fork");
    }
    d->child = pid;
    return 0;
}

/* One byte from the child; 0 when it ended, -ETIMEDOUT when it stays silent. */
static int hear(struct direct *d) {
    for (;;) {
        struct pollfd p = {.fd = d->from_child, .events = POLLIN};
        char said;
        int r = poll(&p, 1, d->patience_ms);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return -errno;
        if (r == 0) return -ETIMEDOUT;
        ssize_t n = read(d->from_child, &said, 1);
        if (n < 0 && errno == EINTR) continue;
        return n <= 0 ? 0 : said;
    }
}

/* The GPU that the child was busy with when it fell silent or died. */
static void give_up_on(struct direct *d, int32_t index, const char *why) {
    struct direct_gpu *g = &d->shared->gpu[index];
    int64_t now_real_ns = clock_real_ns();
    d->shared->hung |= BIT(index);
    if (!g->is_known) {
        memset(&g->device, 0, sizeof g->device);
        inventory_init(&g->device.inventory, index);
    }
    memset(&g->device.latest, 0, sizeof g->device.latest);
    g->device.processes.boot_ns = 0;
    g->device.state = (struct ring_state){
        .since_boot_ns = clock_boot_ns(), .since_real_ns = now_real_ns, .state = DEVICE_NOT_ANSWERING};
    snprintf(g->device.state.text, sizeof g->device.state.text, "%s", why);
}

static int child_fell(struct direct *d, bool is_silent, struct error *e) {
    int32_t at = d->shared->at;
    char why[104];
    int status = end_child(d);
    if (is_silent)
        snprintf(why, sizeof why, "did not answer within %g s", d->patience_ms / 1000.0);
    else if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "its library crashed (%s)", strsignal(WTERMSIG(status)));
    else
        snprintf(why, sizeof why, "its library ended the process");
    if (at < 0 || at >= GPU_MAX) return fail(e, -EIO, "the GPU driver %s", why);
    give_up_on(d, at, why);
    return 0;
}

int direct_look(struct direct *d, enum direct_what what, struct error *e) {
    for (int attempt = 0; attempt <= GPU_MAX; attempt++) {
        int r = d->child ? 0 : begin_child(d, e);
        if (r < 0) return r;
        char ask = (char)what;
        if (write(d->to_child, &ask, 1) != 1) return fail_errno(e, errno, "ask the driver");
        int said;
        do said = hear(d);
        while (said == DIRECT_STEP);
        if (said == DIRECT_DONE) return 0;
        if (said == DIRECT_FAILED) {
            *e = d->shared->error;
            end_child(d);
            return e->code < 0 ? e->code : -EIO;
        }
        r = child_fell(d, said == -ETIMEDOUT, e);
        if (r < 0) return r;
    }
    return fail(e, -EIO, "no GPU answers");
}

void direct_fill(const struct direct *d, struct view *v) {
    const struct direct_shared *s = d->shared;
    view_clear(v);
    v->source = VIEW_DRIVER;
    v->boot_ns = clock_boot_ns();
    v->real_ns = clock_real_ns();
    v->driver = (struct ring_driver){.state = DRIVER_OK, .since_real_ns = v->real_ns};
    for (int32_t i = 0; i < s->gpu_count && i < GPU_MAX; i++) *view_add(v) = s->gpu[i].device;
    for (int32_t i = 0; i < s->instance_count && GPU_MAX + i < DEVICE_MAX; i++)
        *view_add(v) = s->gpu[GPU_MAX + i].device;
    view_make_safe(v);
    view_order(v);
}
