/* gpumgr-node: reads the samplers' rings and /proc, and tells a server. Small, one thread, one for names and one for container engines, and in
 * nobody's way: it can be killed at any moment, and so can whoever it talks to. Started by the supervisor:
 *
 *   gpumgr-node attend DIR SETTINGS_FILE HEART_FD
 *
 * Its main thread does not wait on the rings' bell, which rings for every reading of every card: it looks ten times a second
 * for what must be prompt, which costs less, and once a second for all the rest. Tasks, which are timed to the millisecond,
 * have a thread (node/tasks.h). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/heart.h"
#include "base/instance.h"
#include "base/log.h"
#include "model/settings.h"
#include "node/control.h"
#include "node/engine.h"
#include "node/frees.h"
#include "node/host.h"
#include "node/jobs.h"
#include "node/names.h"
#include "node/notices.h"
#include "node/orders.h"
#include "node/outside.h"
#include "node/run_image.h"
#include "node/session.h"
#include "node/stream.h"
#include "node/tasks.h"
#include "node/uplink.h"

#define TICK_NS (100 * NS_PER_MS)
#define IDLE_TICK_NS (250 * NS_PER_MS) /* nobody listens: just often enough to find a server */
#define ROUND_NS NS_PER_S
#define ROUND_AT_NS (200 * NS_PER_MS) /* after the full second, at which samplers read */
#define SLACK_NS (5 * NS_PER_MS)      /* wake up together with others */
#define SETTINGS_MAX 65536
#define PIECES_MAX 64 /* frames from the server at a time */
#define JOBS_QUEUE_MAX (8u << 20)

static struct {
    struct settings settings;
    struct instance instance;
    const char *settings_path;
    struct heart *heart, own_heart;
    struct uplink uplink;
    struct host *host;
    struct engine *engine; /* NULL: containers stay without names */
    int signals;
    int64_t round; /* number of the last one */
    bool is_told;  /* the jobs know that the server is there */
    bool is_over;
} self;

static int settings_read(struct settings *ret, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    int r = file_read(self.settings_path, SETTINGS_MAX, &text, e);
    return r < 0 ? r : settings_decode(ret, text.s, e);
}

static int engines_new(const struct settings *s, struct engine **ret, struct error *e) {
    const struct engine_setup setup = {.docker = s->engines_docker,
                                       .podman = s->engines_podman,
                                       .where = &self.instance,
                                       .workers = (unsigned)s->workers};
    return engine_new(&setup, ret, e);
}

/* Another one takes over: what tasks know of their containers they keep. */
static void engines_renew(const struct settings *s) {
    struct error e;
    struct engine *fresh = NULL, *old = self.engine;
    if (strcmp(s->engines_docker, self.settings.engines_docker) == 0 &&
        strcmp(s->engines_podman, self.settings.engines_podman) == 0)
        return;
    if (engines_new(s, &fresh, &e) < 0 || tasks_engine(fresh, &e) < 0) {
        log_line(LOG_ERROR, "engine", -1, "%s; the engines of before are asked on", e.text);
        engine_free(fresh);
        return;
    }
    self.engine = fresh;
    engine_free(old);
}

static void reload(void) {
    struct error e;
    struct settings fresh;
    if (settings_read(&fresh, &e) < 0) {
        log_line(LOG_ERROR, "reload", -1, "%s; the old settings stay in force", e.text);
        return;
    }
    engines_renew(&fresh);
    self.settings = fresh;
    tasks_reload(&fresh);
    jobs_reload(&fresh);
    streams_reload(&fresh);
    control_reload(&fresh);
    log_set_level((enum log_level)fresh.log_level);
}

static void on_signals(void) {
    struct signalfd_siginfo si;
    while (read(self.signals, &si, sizeof si) == sizeof si) {
        if (si.ssi_signo == SIGHUP) reload();
        if (si.ssi_signo == SIGTERM) self.is_over = true;
    }
}

/* ---- what the server says ---- */

static void on_bye(const struct wire_frame *f, int64_t now_ns) {
    struct wire_bye bye;
    struct error e;
    bool is_said = wire_get_bye(f, &bye, &e) >= 0;
    uplink_close(&self.uplink, now_ns, is_said ? bye.text : e.text);
}

static void welcomed(const struct wire_frame *f, int64_t now_ns) {
    session_welcome(&self.uplink, f, now_ns);
    if (!session_is_live()) return;
    self.is_told = true;
    frees_put(&self.uplink, true);
    jobs_welcome();
    uplink_flush(&self.uplink, now_ns);
}

static void link_is_down(void) {
    session_over();
    if (self.is_told) jobs_link_down();
    outside_link_down();
    if (self.is_told) control_link_down();
    self.is_told = false;
}

/* What must not wait for a tick: a run that began or ended, a GPU that fell free. */
static void say_jobs(int64_t now_ns) {
    if (self.uplink.state != UPLINK_UP || !session_is_live()) return;
    frees_put(&self.uplink, false);
    jobs_put(&self.uplink, JOBS_QUEUE_MAX);
    control_put(&self.uplink, JOBS_QUEUE_MAX);
    uplink_flush(&self.uplink, now_ns);
}

static void on_frames(int64_t now_ns) {
    struct wire_frame f;
    for (int i = 0; i < PIECES_MAX && uplink_next(&self.uplink, &f, now_ns); i++) {
        if (f.version != WIRE_VERSION) continue;
        if (f.type == WIRE_WELCOME) welcomed(&f, now_ns);
        if (jobs_take(&f) || outside_take(&f) || control_take(&f)) continue;
        if (f.type == WIRE_ORDER) orders_take(&self.uplink, &f, now_ns);
        if (f.type == WIRE_BYE) on_bye(&f, now_ns);
    }
    if (self.uplink.state == UPLINK_UP) return;
    link_is_down();
    orders_drop();
}

/* ---- time ---- */

static void connected(int64_t now_ns) {
    log_line(LOG_DEBUG, "link_up", -1, "the server is there");
    link_is_down(); /* the one before, where nobody noticed */
    session_hello(&self.uplink, now_ns);
}

static void round_due(int64_t now_ns) {
    struct host_sample host;
    int64_t round = (now_ns - ROUND_AT_NS) / ROUND_NS;
    if (round == self.round) return;
    self.round = round;
    host_read(self.host, &host);
    session_look(&self.uplink, now_ns);
    session_round(&self.uplink, &host, now_ns);
    names_tidy(now_ns);
}

static void tick(int64_t now_ns) {
    self.heart->beat_ns = now_ns;
    if (uplink_tick(&self.uplink, now_ns)) connected(now_ns);
    orders_tick(&self.uplink, now_ns);
    round_due(now_ns);
    session_prompt(&self.uplink, now_ns);
    say_jobs(now_ns);
    if (self.uplink.state != UPLINK_UP) link_is_down();
}

static int64_t next_tick_ns(int64_t now_ns) {
    int64_t step_ns = session_is_live() ? TICK_NS : IDLE_TICK_NS;
    int64_t next_ns = (now_ns / step_ns + 1) * step_ns;
    int64_t round_ns = (self.round + 1) * ROUND_NS + ROUND_AT_NS;
    if (round_ns < next_ns) next_ns = round_ns;
    if (self.uplink.state == UPLINK_DOWN && self.uplink.try_ns < next_ns) next_ns = self.uplink.try_ns;
    return next_ns > now_ns ? next_ns : now_ns;
}

static void wait_until(int64_t at_ns, int64_t now_ns) {
    /* What jobs have to say stays readable while there is nobody to tell. */
    bool is_heard = self.uplink.state == UPLINK_UP && session_is_live();
    struct pollfd fds[4 + ORDERS_MAX] = {
        {.fd = self.signals,                 .events = POLLIN                     },
        {.fd = self.uplink.fd,               .events = uplink_events(&self.uplink)},
        {.fd = is_heard ? jobs_fd() : -1,    .events = POLLIN                     },
        {.fd = is_heard ? control_fd() : -1, .events = POLLIN                     }
    };
    unsigned orders = orders_poll(fds + 4);
    struct timespec left = {.tv_sec = (at_ns - now_ns) / NS_PER_S, .tv_nsec = (at_ns - now_ns) % NS_PER_S};
    if (ppoll(fds, 4 + orders, &left, NULL) <= 0) return;
    now_ns = clock_boot_ns();
    if (fds[0].revents) on_signals();
    if (fds[1].revents) {
        if (uplink_ready(&self.uplink, fds[1].revents, now_ns)) connected(now_ns);
        on_frames(now_ns);
        session_more(&self.uplink, now_ns);
    }
    if (fds[1].revents || fds[2].revents || fds[3].revents) say_jobs(now_ns);
    orders_ready(&self.uplink, fds + 4, orders, now_ns);
}

static void loop(void) {
    int64_t tick_ns = 0;
    while (!self.is_over) {
        int64_t now_ns = clock_boot_ns();
        if (now_ns >= tick_ns) {
            tick(now_ns);
            tick_ns = next_tick_ns(now_ns);
        }
        now_ns = clock_boot_ns();
        wait_until(tick_ns > now_ns ? tick_ns : now_ns, now_ns);
    }
    uplink_flush(&self.uplink, clock_boot_ns());
}

/* ---- start ---- */

static void start_engines(void) {
    struct error e;
    if (engines_new(&self.settings, &self.engine, &e) < 0) log_line(LOG_ERROR, "engine", -1, "%s", e.text);
}

static int start(char **argv, struct error *e) {
    sigset_t set;
    char path[256];
    self.settings_path = argv[3];
    self.heart = &self.own_heart;
    int r = settings_read(&self.settings, e);
    if (r >= 0) r = instance_find(argv[2], &self.instance, e);
    int fd = atoi(argv[4]);
    if (r >= 0 && fd > STDERR_FILENO) r = heart_join(fd, &self.heart, e);
    if (r < 0) return r;
    log_set_level((enum log_level)self.settings.log_level);
    instance_path(&self.instance, path, sizeof path, "server/link.sock");
    if (strlen(path) >= sizeof self.uplink.path)
        return fail(e, -ENAMETOOLONG, "%s: longer than a socket's path may be", path);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    self.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (self.signals < 0) return fail_errno(e, errno, "signalfd");
    uplink_init(&self.uplink, path);
    orders_init(&self.instance);
    names_init("/proc");
    session_init(&self.instance, (unsigned)self.settings.workers, GPUMGR_VERSION);
    self.host = host_new();
    start_engines();
    r = jobs_open(&self.instance, &self.settings, self.settings_path, e);
    if (r >= 0) r = tasks_start(&self.instance, &self.settings, self.engine, e);
    if (r >= 0) r = outside_start(e);
    if (r >= 0) r = jobs_start(e);
    if (r >= 0) r = control_start(&self.instance, &self.settings, e);
    return r < 0 ? r : streams_start(&self.instance, &self.settings, GPUMGR_VERSION, e);
}

int main(int argc, char **argv) {
    struct error e;
    if (argc == 4 && strcmp(argv[1], "container") == 0) return run_image(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "container-end") == 0) return run_image_end(argv[2], argv[3]);
    if (argc == 3 && strcmp(argv[1], "say") == 0) return notices_say(argv[2]);
    CRASH_POINT_AS("node");
    log_open("node", LOG_INFO);
    if (argc != 5 || strcmp(argv[1], "attend") != 0) {
        fprintf(stderr, "gpumgr-node: started by gpumgr up and gpumgr node; see gpumgr --help\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the supervisor, which ends us in its order */
    prctl(PR_SET_TIMERSLACK, SLACK_NS);
    if (start(argv, &e) < 0) {
        log_line(LOG_ERROR, "start", -1, "%s", e.text);
        return error_exit_code(e.code);
    }
    self.heart->beat_ns = self.heart->ready_ns = clock_boot_ns();
    loop();
    tasks_stop();
    jobs_close();
    control_close();
    uplink_done(&self.uplink);
    host_free(self.host);
    engine_free(self.engine);
    return 0;
}
