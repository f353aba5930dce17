#include "core/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/instance.h"
#include "base/log.h"
#include "core/child.h"
#include "core/notify.h"
#include "core/records.h"
#include "core/reload.h"
#include "model/settings.h"

#define SILENT_NS (10 * NS_PER_S)   /* a heart that stands still for so long is hung */
#define STOP_NS (9 * NS_PER_S)      /* everything is down by then, or given up; what dead samplers left comes on top */
#define OVERSLEPT_NS (2 * NS_PER_S) /* we were not run for that long: neither were the others, perhaps */
#define CHILDREN_MAX 20
#define SERVER_STOP_NS (6 * NS_PER_S) /* it finishes requests and writes what it has */
#define SETTINGS_MAX 65536

/* What a child is to us: who is started in which role, who is ended first, whom a changed setting concerns. */
enum part { PART_SIM, PART_SAMPLER, PART_NODE, PART_SERVER };

/* How it ends, in this order: who takes what the samplers say; they, who put the cards back; what dead ones of them could
 * not put back; what the cards are in. */
enum ending { ENDING_NOT, ENDING_TAKERS, ENDING_SAMPLERS, ENDING_RESTORE, ENDING_CARDS };
static const enum ending ending_of[] = {[PART_SIM] = ENDING_CARDS,
                                        [PART_SAMPLER] = ENDING_SAMPLERS,
                                        [PART_NODE] = ENDING_TAKERS,
                                        [PART_SERVER] = ENDING_TAKERS};
/* The longest that the next ones wait: a server that lingers does not keep a card from being put back. */
static const int64_t ending_ns[] = {[ENDING_TAKERS] = 2 * NS_PER_S,
                                    [ENDING_SAMPLERS] = 6 * NS_PER_S,
                                    [ENDING_RESTORE] = 6 * NS_PER_S,
                                    [ENDING_CARDS] = 4 * NS_PER_S};

static struct supervisor {
    struct settings settings;
    struct instance instance;
    char self_dir[200], core[256], node[256], server[256], settings_path[256], server_settings[256], library[256],
        sim_dir[256], sim_socket[256], kmsg[256];
    char **reload_argv; /* what prints the settings anew */
    struct child child[CHILDREN_MAX];
    enum part part[CHILDREN_MAX];
    char worker_name[CHILDREN_MAX][12];
    unsigned count;
    int lock_fd;
    bool has_node, has_server, is_ready, is_stopping, has_terminal, is_run_dir_said;
    enum ending ending;
    int64_t stopping_ns, ending_until_ns, watchdog_ns, watchdog_next_ns;
    struct child restore; /* puts back what a dead sampler left, when we are to end */
    struct reload reload;
    bool is_reload_due; /* asked for while one is under way */
} self;

/* ---- settings ---- */

static int paths_set(struct error *e) {
    int r = dir_of_self(self.self_dir, sizeof self.self_dir, e);
    if (r < 0) return r;
    snprintf(self.core, sizeof self.core, "%s/gpumgr-core", self.self_dir);
    snprintf(self.node, sizeof self.node, "%s/gpumgr-node", self.self_dir);
    snprintf(self.server, sizeof self.server, "%s/gpumgr-server", self.self_dir);
    instance_path(&self.instance, self.settings_path, sizeof self.settings_path, "settings");
    instance_path(&self.instance, self.server_settings, sizeof self.server_settings, "settings.server");
    snprintf(self.library, sizeof self.library, "%s/sim/libnvidia-ml.so.1", self.self_dir);
    instance_path(&self.instance, self.sim_dir, sizeof self.sim_dir, "sim");
    instance_path(&self.instance, self.sim_socket, sizeof self.sim_socket, "sim/sock");
    instance_path(&self.instance, self.kmsg, sizeof self.kmsg, "sim/kmsg");
    return 0;
}

static int settings_from_fd(int fd, struct error *e) {
    char path[64];
    AUTO(buf_done) struct buf text = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int r = file_read(path, SETTINGS_MAX, &text, e);
    if (r < 0) return fail_in(e, r, "settings");
    close(fd);
    return settings_decode(&self.settings, text.s, e);
}

/* Simulated GPUs are reached as real ones are: by a library, a kernel log, and nothing else. */
static void settings_simulate(struct settings *s) {
    if (!s->sim) return;
    if (strcmp(s->lock_dir, "/dev/shm") == 0) snprintf(s->lock_dir, sizeof s->lock_dir, "%s", self.sim_dir);
    snprintf(s->gpu_library, sizeof s->gpu_library, "%s", self.library);
    if (strcmp(s->kmsg, "/dev/kmsg") == 0) snprintf(s->kmsg, sizeof s->kmsg, "%s", self.kmsg);
    if (strcmp(s->gpu_devices, "/dev") == 0)
        instance_path(&self.instance, s->gpu_devices, sizeof s->gpu_devices, "sim/dev");
}

/* What anyone may read: no keys, and not where messages go, which holds keys of others. */
static void settings_open(struct settings *s) {
    struct settings presets;
    char text[1100];
    settings_init(&presets);
    for (size_t i = 0; i < settings_count; i++) {
        const struct option *o = &settings_table[i];
        if (strncmp(o->name, "tell.", 5) != 0 && strcmp(o->name, "watchmen.token") != 0) continue;
        option_text(o, &presets, text, sizeof text);
        if (option_set(o, s, text, NULL) < 0) abort(); /* a preset is always taken */
    }
}

/* The server reads its file as root, and again later as its own user: the one whom its directory belongs to by then. */
static int server_settings_write(const struct settings *s, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    char dir[256];
    struct stat st;
    settings_encode(s, &text);
    int r = file_write(self.server_settings, 0600, text.s, text.len, false, e);
    if (r < 0) return r;
    instance_path(&self.instance, dir, sizeof dir, "server");
    if (geteuid() == 0 && lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
        lchown(self.server_settings, st.st_uid, st.st_gid) < 0)
        return fail_errno(e, errno, "%s", self.server_settings);
    return 0;
}

static int settings_write(struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    struct settings s = self.settings;
    snprintf(s.dir, sizeof s.dir, "%s", self.instance.dir);
    settings_simulate(&s);
    if (self.has_server && server_settings_write(&s, e) < 0) return e->code;
    settings_open(&s);
    settings_encode(&s, &text);
    return file_write(self.settings_path, 0644, text.s, text.len, false, e);
}

/* ---- children ---- */

static struct child *child_add(const char *name, enum part part, const char *const *argv) {
    struct child *c = &self.child[self.count];
    memset(c, 0, sizeof *c);
    self.part[self.count++] = part;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->has_heart = part != PART_SIM;
    c->heart_fd = -1;
    for (int i = 0; argv[i] && i < CHILD_ARGS_MAX - 1; i++) c->argv[i] = argv[i];
    return c;
}

static void add_sim(void) {
    static char program[256], gpus[16], model[256];
    snprintf(program, sizeof program, "%s/sim/gpusim", self.self_dir);
    snprintf(gpus, sizeof gpus, "%d", self.settings.sim);
    snprintf(model, sizeof model, "%s", self.settings.sim_model);
    const char *argv[] = {program,   "--dir", self.sim_dir, "--gpus", gpus,
                          "--model", model,   "--day",      "--tied", self.settings.sim_costs ? "--costs" : NULL,
                          NULL};
    child_add("gpusim", PART_SIM, argv)->is_quiet = true;
    setenv("GPUSIM_DIR", self.sim_dir, 1);
}

static void add_samplers(void) {
    for (int i = 0; i < self.settings.workers; i++) {
        char name[24];
        snprintf(self.worker_name[i], sizeof self.worker_name[i], "%d", i);
        snprintf(name, sizeof name, self.settings.workers > 1 ? "sampler %d" : "sampler", i);
        const char *argv[] = {self.core, "sample", self.worker_name[i], self.instance.run, "%H", NULL};
        struct child *c = child_add(name, PART_SAMPLER, argv);
        if (!self.settings.sim) continue;
        c->after = self.sim_socket; /* else the first thing it says is that there is no driver */
        c->after_ns = clock_boot_ns() + 3 * NS_PER_S;
    }
}

static void add_node(void) {
    const char *argv[] = {self.node, "attend", self.instance.dir, self.settings_path, "%H", NULL};
    child_add("node", PART_NODE, argv)->is_optional = true;
}

static void add_server(void) {
    const char *argv[] = {self.server, "serve", self.instance.dir, self.server_settings, "%H", NULL};
    struct child *c = child_add("server", PART_SERVER, argv);
    c->is_optional = true;
    c->patience_ns = SERVER_STOP_NS;
}

/* Settings hold keys: half a file of one that was killed is not to lie about. */
static void halves_sweep(void) {
    char path[PATH_MAX];
    dir_sweep(self.instance.dir, NULL);
    dir_sweep(self.instance.run, NULL);
    snprintf(path, sizeof path, "%s/guard", self.instance.dir);
    dir_sweep(path, NULL);
}

/* Rings of an earlier run with more workers would look like GPUs that nobody reads. */
static void rings_trim(void) {
    char path[256];
    for (int i = self.settings.workers; i < 16; i++) {
        instance_path(&self.instance, path, sizeof path, "ring.%d", i);
        unlink(path);
        instance_path(&self.instance, path, sizeof path, "sampler.%d.sock", i);
        unlink(path);
    }
}

static void reap(void) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (reload_reaped(&self.reload, pid, status)) continue;
        if (child_reaped(&self.restore, pid, status, clock_boot_ns(), true)) continue;
        for (unsigned i = 0; i < self.count; i++)
            if (child_reaped(&self.child[i], pid, status, clock_boot_ns(), self.is_stopping)) break;
    }
}

/* ---- what a signal asks for ---- */

static void ending_begin(enum ending stage, int64_t now_ns) {
    self.ending = stage;
    self.ending_until_ns = now_ns + ending_ns[stage];
    if (stage == ENDING_CARDS && self.ending_until_ns < self.stopping_ns + STOP_NS)
        self.ending_until_ns = self.stopping_ns + STOP_NS; /* whoever has lingered may go on to */
    for (unsigned i = 0; i < self.count; i++)
        if (ending_of[self.part[i]] == stage) child_end(&self.child[i], now_ns);
}

static void stop(void) {
    if (self.is_stopping) return;
    self.is_stopping = true;
    self.stopping_ns = clock_boot_ns();
    notify_send("STOPPING=1");
    log_line(LOG_INFO, "stopping", -1, "stopping");
    reload_cancel(&self.reload);
    ending_begin(ENDING_TAKERS, self.stopping_ns);
}

/* The first of these keys that differs, or NULL. */
static const char *differs(const struct settings *a, const struct settings *b, const char *const *keys) {
    char was[1100], is[1100];
    for (; *keys; keys++) {
        const struct option *o = option_find(settings_table, settings_count, *keys);
        option_text(o, a, was, sizeof was);
        option_text(o, b, is, sizeof is);
        if (strcmp(was, is) != 0) return *keys;
    }
    return NULL;
}

static void settings_spread(const struct settings *before) {
    static const char *const needs_sampler[] = {"gpus",       "gpu_library",    "sampler.kmsg",
                                                "guard.mode", "guard.lock_dir", NULL};
    static const char *const needs_server[] = {"listen",      "listen_plain",     "tls.cert", "tls.key",
                                               "server.user", "server.base_path", NULL};
    int64_t now_ns = clock_boot_ns();
    bool is_new[] = {[PART_SIM] = false,
                     [PART_SAMPLER] = differs(before, &self.settings, needs_sampler) != NULL,
                     [PART_NODE] = false,
                     [PART_SERVER] = differs(before, &self.settings, needs_server) != NULL};
    for (unsigned i = 0; i < self.count; i++) {
        struct child *c = &self.child[i];
        if (c->is_optional) child_retry(c, now_ns);
        if (c->state != CHILD_UP || !c->has_heart) continue;
        if (is_new[self.part[i]])
            child_end(c, now_ns);
        else
            kill(c->pid, SIGHUP);
    }
}

static int settings_renew(const struct settings *fresh, struct error *e) {
    static const char *const needs_restart[] = {"dir", "sim", "sim_model", "sim_costs", "sampler.workers", NULL};
    struct settings before = self.settings;
    const char *fixed = differs(&before, fresh, needs_restart);
    if (fixed) return fail(e, -EINVAL, "%s: cannot change while gpumgr runs; restart it", fixed);
    self.settings = *fresh;
    int r = settings_write(e);
    if (r < 0) {
        self.settings = before;
        return r;
    }
    settings_spread(&before);
    log_set_level((enum log_level)fresh->log_level);
    return 0;
}

static void reload(void);

static void reload_end(int r, const struct error *e) {
    if (r < 0) log_line(LOG_ERROR, "reload", -1, "%s; the old settings stay in force", e->text);
    if (self.is_ready) notify_send("READY=1");
    if (!self.is_reload_due) return;
    self.is_reload_due = false;
    reload();
}

static void reload(void) {
    struct error e;
    if (self.reload.is_running) { /* what changed after it was read counts too */
        self.is_reload_due = true;
        return;
    }
    notify_send("RELOADING=1\nMONOTONIC_USEC=%lld", (long long)notify_monotonic_us());
    int r = reload_begin(&self.reload, self.reload_argv, clock_boot_ns(), &e);
    if (r < 0) reload_end(r, &e);
}

static void reload_look(int64_t now_ns) {
    struct settings fresh;
    struct error e;
    if (!self.reload.is_running || self.is_stopping) return;
    int r = reload_step(&self.reload, now_ns, &fresh, &e);
    if (r == 0) return;
    if (r > 0) r = settings_renew(&fresh, &e);
    reload_end(r, &e);
}

/* The terminal it was started on was closed: that ends it, as it ends every program in the foreground. */
static bool terminal_is_gone(void) {
    struct pollfd fd = {.fd = STDERR_FILENO};
    return self.has_terminal && poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR));
}

static void on_hangup(void) {
    if (self.is_stopping) return;
    if (terminal_is_gone())
        stop();
    else
        reload();
}

static void on_signal(int fd) {
    struct signalfd_siginfo si;
    while (read(fd, &si, sizeof si) == sizeof si) {
        if (si.ssi_signo == SIGCHLD) reap();
        if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT) stop();
        if (si.ssi_signo == SIGHUP) on_hangup();
    }
}

/* ---- the end ---- */

/* A sampler that was dead, or died, has put nothing back; the records tell whether there is anything. */
static bool cards_are_left(void) {
    bool all_given_back = true;
    for (unsigned i = 0; i < self.count; i++) {
        const struct heart *heart = self.child[i].heart;
        if (self.part[i] == PART_SAMPLER) all_given_back &= heart && heart->given_back_ns;
    }
    return !all_given_back && self.settings.guard_mode == GUARD_AUTO && records_are_left(self.instance.dir);
}

/* It holds the directory while it works, so we let it go. */
static void restore_begin(int64_t now_ns) {
    static struct settings s;
    struct error e;
    s = self.settings;
    settings_simulate(&s);
    const char *argv[] = {self.reload_argv[0], "guard",         "restore",     "--dir",
                          self.instance.dir,   "--guard.mode",  "auto",        "--guard.lock_dir",
                          s.lock_dir,          "--gpu_library", s.gpu_library, NULL};
    if (!*s.gpu_library) argv[9] = NULL;
    self.restore = (struct child){.name = "guard restore", .heart_fd = -1, .is_quiet = true};
    for (int i = 0; argv[i]; i++) self.restore.argv[i] = argv[i];
    log_line(LOG_WARN, "restoring", -1, "no sampler is there to put the cards back: `gpumgr guard restore` does it");
    fd_done(&self.lock_fd);
    if (child_start(&self.restore, now_ns, &e) < 0) log_line(LOG_ERROR, "restoring", -1, "%s", e.text);
}

static void restore_end(void) {
    if (!self.restore.name[0]) return;
    if (self.restore.pid) kill(self.restore.pid, SIGKILL);
    if (records_are_left(self.instance.dir))
        log_line(LOG_ERROR, "restoring", -1,
                 "a card could not be put back: `gpumgr guard restore` or the next start will try again");
}

/* Whether all of a stage are down, or it has lasted long enough. */
static bool stage_is_over(int64_t now_ns) {
    if (now_ns > self.ending_until_ns) return true;
    for (unsigned i = 0; i < self.count; i++)
        if (self.child[i].pid && ending_of[self.part[i]] == self.ending) return false;
    return !self.restore.pid;
}

static void stop_step(int64_t now_ns) {
    while (self.ending < ENDING_CARDS && stage_is_over(now_ns)) {
        if (self.ending == ENDING_RESTORE) restore_end();
        ending_begin(self.ending + 1, now_ns);
        if (self.ending == ENDING_RESTORE && cards_are_left()) restore_begin(now_ns);
    }
}

/* Samplers that cannot be killed are left behind; everybody else is waited for. */
static bool is_over(int64_t now_ns) {
    if (!self.is_stopping) return false;
    stop_step(now_ns);
    if (self.ending != ENDING_CARDS) return false;
    bool is_late = now_ns > self.ending_until_ns;
    for (unsigned i = 0; !is_late && i < self.count; i++)
        if (self.child[i].pid && self.part[i] != PART_SAMPLER) return false;
    for (unsigned i = 0; i < self.count; i++)
        if (self.child[i].pid)
            log_line(LOG_ERROR, "left_behind", -1, "%s (pid %d) cannot be killed and stays behind", self.child[i].name,
                     (int)self.child[i].pid);
    return true;
}

/* ---- the loop ---- */

/* Where people are to look. The server writes down what it listens on; a socket whose port was left to the system too. */
static void say_ready(void) {
    char path[256];
    struct error ignored;
    AUTO(buf_done) struct buf urls = {0};
    instance_path(&self.instance, path, sizeof path, "server/listen");
    if (self.has_server && file_read(path, 4096, &urls, &ignored) >= 0 && strncmp(urls.s, "http", 4) == 0)
        log_line(LOG_INFO, "dashboard", -1, "the dashboard is at %.*s; `gpumgr web` gives a link to sign in with",
                 (int)strcspn(urls.s, "\n"), urls.s);
    if (self.has_node)
        log_line(LOG_INFO, "ready", -1, "watching; `gpumgr status --watch` shows it, Ctrl-C or SIGTERM ends it");
    else
        log_line(LOG_INFO, "ready", -1, "serving; Ctrl-C or SIGTERM ends it");
}

static void ready_look(void) {
    if (self.is_ready) return;
    for (unsigned i = 0; i < self.count; i++) {
        const struct child *c = &self.child[i];
        /* a machine without a driver is watched as well, and one without a server: say so after a while */
        int64_t grace_ns = (self.part[i] == PART_SERVER ? 5 : 2) * NS_PER_S;
        bool is_awaited = c->start_ns != INT64_MAX && clock_boot_ns() - c->started_ns < grace_ns;
        if (c->has_heart && (!c->heart || (!c->heart->ready_ns && is_awaited))) return;
    }
    self.is_ready = true;
    notify_send("READY=1\nSTATUS=%s", self.has_node ? "watching" : "serving");
    say_ready();
}

static int64_t wake_ns(int64_t now_ns) {
    int64_t next_ns = now_ns + 5 * NS_PER_S;
    for (unsigned i = 0; i < self.count; i++) {
        int64_t n = child_next_ns(&self.child[i], now_ns, SILENT_NS);
        if (self.is_stopping && n <= now_ns) continue; /* a killed one: nothing more can be done to it */
        if (n < next_ns) next_ns = n;
    }
    if (self.is_stopping && self.ending_until_ns < next_ns) next_ns = self.ending_until_ns + NS_PER_MS;
    if (self.reload.is_running && self.reload.until_ns < next_ns) next_ns = self.reload.until_ns + NS_PER_MS;
    if (self.watchdog_ns && self.watchdog_next_ns < next_ns) next_ns = self.watchdog_next_ns;
    if (!self.is_ready && next_ns > now_ns + 100 * NS_PER_MS) next_ns = now_ns + 100 * NS_PER_MS;
    return next_ns;
}

/* A directory that someone removed is made anew, with all that is in it: nobody could find the ring any more. */
static void run_dir_look(void) {
    char path[256];
    struct error e;
    instance_path(&self.instance, path, sizeof path, "settings");
    if (access(path, F_OK) == 0 || errno != ENOENT || self.is_stopping) return;
    int r = instance_open(self.settings.dir, &self.instance, &e);
    if (r >= 0) r = instance_keep(&self.instance, &self.lock_fd, &e);
    if (r >= 0) r = paths_set(&e);
    if (r >= 0) r = settings_write(&e);
    if (r < 0) {
        if (!self.is_run_dir_said)
            log_line(LOG_ERROR, "run_dir", -1, "was removed, and cannot be made anew: %s", e.text);
        self.is_run_dir_said = true;
        return;
    }
    self.is_run_dir_said = false;
    log_line(LOG_WARN, "run_dir", -1, "%s was removed: it is made anew", self.instance.run);
    for (unsigned i = 0; i < self.count; i++)
        if (self.child[i].state == CHILD_UP) child_end(&self.child[i], clock_boot_ns());
}

static void loop(int signals) {
    for (;;) {
        int64_t now_ns = clock_boot_ns();
        for (unsigned i = 0; i < self.count; i++) child_tick(&self.child[i], now_ns, SILENT_NS, self.is_stopping);
        if (is_over(now_ns)) return;
        if (self.watchdog_ns && now_ns >= self.watchdog_next_ns) {
            notify_send("WATCHDOG=1");
            self.watchdog_next_ns = now_ns + self.watchdog_ns;
        }
        ready_look();
        run_dir_look();
        reload_look(now_ns);
        struct pollfd fds[] = {
            {.fd = signals,           .events = POLLIN},
            {.fd = self.reload.fd[0], .events = POLLIN},
            {.fd = self.reload.fd[1], .events = POLLIN},
        };
        int64_t due_ns = wake_ns(now_ns), wait_ns = due_ns - clock_boot_ns();
        int ready = poll(fds, ARRAY_LEN(fds), wait_ns < 0 ? 0 : (int)(wait_ns / NS_PER_MS) + 1);
        if (ready > 0 && fds[0].revents) on_signal(signals);
        now_ns = clock_boot_ns();
        for (unsigned i = 0; now_ns - due_ns > OVERSLEPT_NS && i < self.count; i++)
            child_forgive(&self.child[i], now_ns);
    }
}

/* ---- start ---- */

static int signals_open(int *ret, struct error *e) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* a parent that ignores it hands that down, and then no one could be waited for */
    sigprocmask(SIG_SETMASK, &set, NULL);
    *ret = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret < 0 ? fail_errno(e, errno, "signalfd") : 0;
}

static int start(char **argv, int *signals, struct error *e) {
    int r = settings_from_fd(atoi(argv[2]), e);
    if (r < 0) return r;
    close_range(STDERR_FILENO + 1, UINT_MAX, 0); /* whatever our parent forgot to close is not for our children */
    log_set_level((enum log_level)self.settings.log_level);
    r = signals_open(signals, e);
    if (r >= 0) r = instance_open(self.settings.dir, &self.instance, e);
    if (r >= 0) r = instance_lock(&self.instance, &self.lock_fd, e);
    if (r >= 0) r = paths_set(e);
    if (r >= 0) r = settings_write(e);
    if (r < 0) return r;
    self.reload_argv = argv + 3;
    self.reload.fd[0] = self.reload.fd[1] = -1;
    self.has_terminal = isatty(STDERR_FILENO) == 1;
    halves_sweep();
    rings_trim();
    if (!self.instance.run_is_tmpfs)
        log_line(LOG_WARN, "run_dir", -1, "%s is not on tmpfs: a slow disk can delay samples", self.instance.run);
    return 0;
}

int supervisor_main(int argc, char **argv) {
    struct error e;
    int signals = -1;
    CRASH_POINT_AS("supervisor");
    CRASH_POINT_CALLS(true);
    log_open("supervisor", LOG_INFO);
    if (argc < 4) {
        log_line(LOG_ERROR, "usage", -1,
                 "supervise ROLE SETTINGS_FD PROGRAM [FLAGS...]: started by gpumgr up, node and server");
        return 2;
    }
    self.has_server = strcmp(argv[1], "node") != 0;
    self.has_node = strcmp(argv[1], "server") != 0;
    if (start(argv, &signals, &e) < 0) {
        log_line(LOG_ERROR, "start", -1, "%s", e.text);
        return error_exit_code(e.code);
    }
    if (self.settings.sim && self.has_node) add_sim();
    if (self.has_node) add_samplers();
    if (self.has_node) add_node();
    if (self.has_server) add_server();
    self.watchdog_ns = notify_watchdog_ns();
    log_line(LOG_INFO, "start", -1, "gpumgr %s in %s", argv[1], self.instance.dir);
    loop(signals);
    log_line(LOG_INFO, "stopped", -1, "stopped");
    return 0;
}
