/* gpusim: keeps the simulated GPUs. One thread that sleeps until the next step, the exact end of a task, or a request.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "sim/client.h"
#include "sim/day.h"
#include "sim/gpusim_options.h"
#include "sim/home.h"
#include "sim/publish.h"
#include "sim/server.h"

enum { TAG_TIMER = 3, TAG_SIGNAL = 4 }; /* beside SERVER_LISTEN and SERVER_CLIENT */

/* Readings change twenty-five times a second: faster than a real card's own sensors, slow enough to cost nothing. */
static const int64_t step_ns = 40 * NS_PER_MS;

struct gpusim {
    struct gpusim_options options;
    struct home home;
    struct machine machine;
    struct publisher publisher;
    struct server server;
    struct children children;
    struct kmsg kmsg;
    struct day day;
    int epoll_fd, timer_fd, signal_fd;
    int64_t last_ns, next_step_ns;
    bool stopping;
};

/* Brings the machine to this very moment, so that what comes next happens in it. */
static void catch_up(struct gpusim *g) {
    static const double most_s = 3600; /* after a suspend: do not relive the night */
    int64_t now = clock_boot_ns();
    double dt_s = (double)(now - g->last_ns) / 1e9 * g->options.speed;
    g->last_ns = now;
    if (machine_advance(&g->machine, fmin(dt_s, most_s)) > 0) server_settle(&g->server);
}

/* The next step, or the next end of a task if that comes first. */
static void arm(struct gpusim *g) {
    static const int64_t soonest_ns = 200 * NS_PER_US;
    double next_s = machine_next_s(&g->machine) / g->options.speed;
    int64_t at = g->next_step_ns;
    /* Late by a little rather than early: woken before the end, there would be nothing to do but sleep again. */
    if (next_s < 1) {
        int64_t end = g->last_ns + (int64_t)(next_s * 1e9) + 20 * NS_PER_US;
        if (end < at) at = end;
    }
    if (at < g->last_ns + soonest_ns) at = g->last_ns + soonest_ns;
    struct itimerspec t = {
        .it_value = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S}
    };
    timerfd_settime(g->timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void on_timer(struct gpusim *g) {
    uint64_t times;
    ssize_t n = read(g->timer_fd, &times, sizeof times);
    (void)n;
    if (g->last_ns < g->next_step_ns) return;
    while (g->next_step_ns <= g->last_ns) g->next_step_ns += step_ns;
    if (g->options.day) day_step(&g->day, &g->machine, &g->children);
}

static void on_signal(struct gpusim *g) {
    struct signalfd_siginfo s;
    while (read(g->signal_fd, &s, sizeof s) == sizeof s) {
        if (s.ssi_signo == SIGCHLD)
            children_reap(&g->children);
        else
            g->stopping = true;
    }
}

static void run(struct gpusim *g) {
    g->last_ns = clock_boot_ns();
    g->next_step_ns = g->last_ns + step_ns;
    while (!g->stopping) {
        arm(g);
        struct epoll_event ev[64];
        int n = epoll_wait(g->epoll_fd, ev, ARRAY_LEN(ev), -1);
        catch_up(g);
        for (int i = 0; i < n; i++) {
            switch (ev[i].data.u64 & 0xff) {
            case TAG_TIMER: on_timer(g); break;
            case TAG_SIGNAL: on_signal(g); break;
            case SERVER_LISTEN: server_accept(&g->server); break;
            case SERVER_CLIENT: server_receive(&g->server, (uint32_t)(ev[i].data.u64 >> 8)); break;
            }
        }
        publish(&g->publisher, &g->machine);
    }
}

static int watch(struct gpusim *g, int fd, uint64_t tag, struct error *e) {
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = tag};
    if (fd < 0 || epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) return fail_errno(e, errno, "epoll");
    return 0;
}

static int open_clockwork(struct gpusim *g, struct error *e) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (g->options.tied) {
        pid_t parent = getppid();
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) return fail(e, -ESRCH, "the process that started this one is gone");
    }
    /* The default slack of 50 us would be the largest error in the end of a task. */
    prctl(PR_SET_TIMERSLACK, 1000);
    g->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    g->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    g->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    int r = watch(g, g->timer_fd, TAG_TIMER, e);
    return r < 0 ? r : watch(g, g->signal_fd, TAG_SIGNAL, e);
}

static void build_machine(struct gpusim *g) {
    const struct gpusim_options *o = &g->options;
    struct machine *m = &g->machine;
    m->seed = o->seed;
    m->air_c = o->air_c;
    m->shared_air_k = o->shared_air_k;
    m->generation = 1;
    m->costs_on = o->costs;
    for (uint32_t i = 0; i < o->gpu_count; i++) machine_add(m, o->model[i], o->mig);
    if (o->day) day_begin(&g->day, m);
}

static int begin(struct gpusim *g, struct error *e) {
    build_machine(g);
    g->server.machine = &g->machine;
    g->server.children = &g->children;
    g->server.kmsg = &g->kmsg;
    int r = open_clockwork(g, e);
    if (r >= 0) r = home_open(&g->home, g->options.dir, e);
    if (r >= 0) r = home_make_devices(&g->home, g->machine.gpu_count, e);
    if (r >= 0) r = kmsg_open(&g->kmsg, g->home.dir, e);
    if (r >= 0) r = children_init(&g->children, g->home.dir, e);
    if (r >= 0) r = publish_open(&g->publisher, g->home.dir, &g->machine, e);
    if (r >= 0) r = server_open(&g->server, g->home.dir, g->epoll_fd, e);
    return r;
}

static void end(struct gpusim *g) {
    server_close(&g->server);
    children_done(&g->children);
    publish_close(&g->publisher);
    kmsg_close(&g->kmsg);
    home_close(&g->home);
}

/* The other role of this program: one command to the simulator that is there. */
static int tell(const struct gpusim_options *o) {
    static struct wire_request q = {.verb = VERB_COMMAND};
    static struct wire_reply r;
    snprintf(q.command, sizeof q.command, "%s", o->tell);
    int bad = client_once(o->dir, &q, &r);
    if (bad < 0) {
        fprintf(stderr, "gpusim: no simulator answers in %s: %s\n", o->dir, strerror(-bad));
        return 1;
    }
    if (r.code)
        fprintf(stderr, "gpusim: %s\n", r.text);
    else
        fputs(r.text, stdout);
    return r.code ? 2 : 0;
}

int main(int argc, char **argv) {
    static struct gpusim g = {.home.lock_fd = -1, .kmsg.fd = -1, .server.listen_fd = -1};
    struct error e = {0};
    int r = gpusim_options_parse(&g.options, argc, argv, &e);
    if (r == 1) return 0;
    if (r == 0 && g.options.tell) return tell(&g.options);
    if (r >= 0) r = begin(&g, &e);
    if (r < 0) {
        fprintf(stderr, "gpusim: %s\n", e.text);
        end(&g);
        return error_exit_code(r);
    }
    printf("gpusim: %u GPU%s in %s\n", g.machine.gpu_count, g.machine.gpu_count == 1 ? "" : "s", g.home.dir);
    fflush(stdout);
    run(&g);
    end(&g);
    return 0;
}
