#include "node/run_image.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "model/settings.h"
#include "model/wire_run.h"
#include "node/docker_ask.h"
#include "node/engine.h"
#include "node/jobs_start.h"
#include "node/mounts.h"
#include "node/owners.h"
#include "node/runs.h"
#include "node/seal.h"
#include "run/record.h"

#define EXIT_OURS RUNS_EXIT_OURS
#define CREATE_S 60
#define PULL_S 3600
#define WAIT_S 60
#define SHM_BYTES (8ll << 30) /* at most: what loaders of batches share */
#define SETTINGS_BYTES (1u << 20)
#define MOUNTS_DIR "mounts" /* in the run's directory */

static struct {
    struct settings settings;
    char socket[108];                              /* of the engine */
    char run[OWNERS_NAME], name[OWNERS_CONTAINER]; /* of the run and of its container */
    struct wire_grant grant;
    struct buf grant_bytes, plain, element;
    struct seal_context who;
    struct job_spec spec;
    struct mounts mounts; /* in the run's directory */
} self;

/* ---- what is to be run ---- */

static int read_settings(const char *path, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    int r = file_read(path, SETTINGS_BYTES, &text, e);
    if (r >= 0) r = settings_decode(&self.settings, text.s, e);
    return r < 0 ? r : docker_first(self.settings.engines_docker, self.socket, sizeof self.socket, e);
}

static int name_of(const char *dir, struct error *e) {
    const char *slash = strrchr(dir, '/');
    struct wire_run_key k;
    char path[PATH_MAX];
    if (!slash || !run_parse_name(slash + 1, &k)) return fail(e, -EINVAL, "%s: is not the directory of a run", dir);
    snprintf(self.run, sizeof self.run, "%s", slash + 1);
    snprintf(self.mounts.dir, sizeof self.mounts.dir, "%.4000s/" MOUNTS_DIR, dir);
    snprintf(path, sizeof path, "%.4000s/../..", dir);
    int r = seal_open_key(path, e);
    if (r >= 0) owners_container(self.run, self.name);
    return r;
}

/* The seal is broken here once more: nothing but what was submitted gets to the engine. */
static int read_run(const char *dir, struct error *e) {
    char path[PATH_MAX];
    struct wire_frame f;
    struct job_spec whole;
    snprintf(path, sizeof path, "%s/run", dir);
    int r = file_read(path, RUNS_FILE_MAX, &self.grant_bytes, e);
    if (r >= 0) r = wire_frame(self.grant_bytes.s, self.grant_bytes.len, &f, e);
    if (r == 0) r = fail(e, -EPROTO, "%s: is not whole", path);
    if (r >= 0) r = wire_get_grant(&f, &self.grant, e);
    if (r >= 0) r = seal_break(&self.grant.sealed, &self.plain, &self.who, e);
    if (r >= 0) r = job_decode(self.grant.sealed.record, self.grant.sealed.record_len, &whole, e);
    if (r >= 0) r = job_element(&whole, self.grant.key.element, &self.element, e);
    if (r >= 0) r = job_decode(self.element.s, self.element.len, &self.spec, e);
    return r;
}

/* ---- the container ---- */

static void put_words(struct buf *b, const char *key, const struct job_words *w) {
    json_key(b, key);
    json_open(b, '[');
    for (const char *at = NULL; (at = job_word_next(w, at));) json_str(b, at);
    json_close(b, ']');
}

static void put_environment(struct buf *b) {
    AUTO(buf_done) struct buf pair = {0};
    json_key(b, "Env");
    json_open(b, '[');
    for (const char *at = NULL; (at = job_word_next(&self.spec.env, at));) json_str(b, at);
    for (size_t i = 0; i < STARTING_KEYS; i++) {
        if (!getenv(starting_keys[i])) continue;
        buf_clear(&pair);
        buf_printf(&pair, "%s=%s", starting_keys[i], getenv(starting_keys[i]));
        json_str(b, pair.s);
    }
    json_close(b, ']');
}

static void put_labels(struct buf *b) {
    char text[32];
    int64_t left_s = (self.spec.finish_by_ns - clock_real_ns()) / NS_PER_S;
    json_key(b, "Labels");
    json_open(b, '{');
    snprintf(text, sizeof text, "%" PRId64, self.grant.key.job);
    json_pair_str(b, "gpumgr.job", text);
    json_pair_str(b, ENGINE_RUN_LABEL, self.run);
    snprintf(text, sizeof text, "%u", self.who.uid);
    json_pair_str(b, "gpumgr.uid", text);
    if (*seal_account(&self.who)) json_pair_str(b, "gpumgr.account", seal_account(&self.who));
    snprintf(text, sizeof text, "%" PRId64 "s", left_s);
    if (self.spec.finish_by_ns && left_s > 0) json_pair_str(b, "gpumgr.deadline", text);
    json_close(b, '}');
}

static void put_devices(struct buf *b) {
    if (self.settings.sim || *self.settings.gpu_library) return; /* simulated GPUs have no devices */
    json_key(b, "DeviceRequests");
    buf_puts(b, "[{\"Driver\":\"nvidia\",\"Capabilities\":[[\"gpu\"]],\"DeviceIDs\":[");
    for (unsigned i = 0; i < self.grant.gpus; i++) buf_printf(b, "%s\"%s\"", i ? "," : "", self.grant.uuid[i]);
    buf_puts(b, "]}]");
}

static void describe(struct buf *b) {
    char user[32];
    snprintf(user, sizeof user, "%u:%u", self.who.uid, self.who.gid);
    json_open(b, '{');
    json_pair_str(b, "Image", self.spec.image);
    if (self.spec.command.count) put_words(b, "Cmd", &self.spec.command);
    json_pair_str(b, "User", user);
    if (*self.spec.cwd) json_pair_str(b, "WorkingDir", self.spec.cwd);
    put_environment(b);
    put_labels(b);
    json_key(b, "HostConfig");
    json_open(b, '{');
    json_pair_bool(b, "Privileged", false);
    json_key(b, "SecurityOpt");
    buf_puts(b, "[\"no-new-privileges\"]");
    json_pair_str(b, "CgroupnsMode", "private"); /* with cgroups of version 1 an engine's own choice is the host's */
    json_pair_int(b, "ShmSize", SHM_BYTES);
    mounts_put_groups(&self.who, b);
    mounts_put(&self.mounts, b);
    put_devices(b);
    json_close(b, '}');
    json_close(b, '}');
}

static int expect(int status, const struct buf *answer, const char *what, struct error *e) {
    char why[160];
    if (status < 0) return fail_in(e, status, "%s", what);
    if (status < 300 || status == 304) return 0;
    docker_complaint(answer, status, why, sizeof why);
    return fail(e, -EPROTO, "%s: %s", what, why);
}

static void put_quoted(struct buf *b, const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~/:@";
    for (; *text; text++)
        if (strchr(plain, *text))
            buf_putc(b, *text);
        else
            buf_printf(b, "%%%02X", (unsigned char)*text);
}

static int pull(struct error *e) {
    AUTO(buf_done) struct buf target = {0}, answer = {0};
    const char *last = strrchr(self.spec.image, '/');
    bool has_tag = strchr(last ? last : self.spec.image, ':') || strchr(self.spec.image, '@');
    printf("gpumgr: pulling %s\n", self.spec.image);
    fflush(stdout);
    buf_puts(&target, "/images/create?fromImage=");
    put_quoted(&target, self.spec.image);
    if (!has_tag) buf_puts(&target, "&tag=latest");
    int status = docker_ask(self.socket, "POST", target.s, NULL, PULL_S, &answer, e);
    return expect(status, &answer, self.spec.image, e);
}

static int create(struct error *e) {
    AUTO(buf_done) struct buf body = {0}, answer = {0};
    char target[160];
    describe(&body);
    snprintf(target, sizeof target, "/containers/create?name=%s", self.name);
    int status = docker_ask(self.socket, "POST", target, body.s, CREATE_S, &answer, e);
    if (status == 404) { /* no such image here */
        int r = pull(e);
        if (r < 0) return r;
        status = docker_ask(self.socket, "POST", target, body.s, CREATE_S, &answer, e);
    }
    return expect(status, &answer, "the container", e);
}

static int post(const char *verb, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    char target[160];
    snprintf(target, sizeof target, "/containers/%s/%s", self.name, verb);
    return expect(docker_ask(self.socket, "POST", target, NULL, CREATE_S, &answer, e), &answer, verb, e);
}

/* ---- while it runs ---- */

static void write_all(const char *bytes, size_t n) {
    while (n) {
        ssize_t w = write(STDOUT_FILENO, bytes, n);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) return;
        bytes += w;
        n -= (size_t)w;
    }
}

/* Frames: kind, three zeros, length in big endian, bytes. */
static void take_output(struct buf *b) {
    size_t at = 0;
    while (b->len - at >= 8) {
        const uint8_t *h = (const uint8_t *)b->s + at;
        size_t n = (size_t)h[4] << 24 | (size_t)h[5] << 16 | (size_t)h[6] << 8 | h[7];
        if (b->len - at < 8 + n) break;
        write_all(b->s + at + 8, n);
        at += 8 + n;
    }
    if (!at) return;
    memmove(b->s, b->s + at, b->len - at);
    b->len -= at;
}

static void pass_signals(int signals) {
    struct signalfd_siginfo si;
    struct error e;
    char verb[40];
    while (read(signals, &si, sizeof si) == sizeof si) {
        snprintf(verb, sizeof verb, "kill?signal=%u", si.ssi_signo);
        if (post(verb, &e) < 0) fprintf(stderr, "gpumgr: %s\n", e.text);
    }
}

static void follow(int fd, int signals, struct buf *b) {
    char piece[65536];
    for (;;) {
        struct pollfd fds[2] = {
            {.fd = fd,      .events = POLLIN},
            {.fd = signals, .events = POLLIN}
        };
        take_output(b);
        if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
        if (fds[1].revents) pass_signals(signals);
        if (!fds[0].revents) continue;
        ssize_t n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) return;
        buf_add(b, piece, (size_t)n);
    }
}

static void find_code(void *ctx, const struct json_scan_value *v) {
    if (json_scan_is(v, 1, "StatusCode")) *(int *)ctx = atoi(v->text);
}

/* An engine that was started anew keeps the exit code, and may keep its containers running. */
static int wait_for_end(int signals, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    char target[160];
    int code = -1;
    snprintf(target, sizeof target, "/containers/%s/wait", self.name);
    for (;;) {
        int status = docker_ask(self.socket, "POST", target, NULL, WAIT_S, &answer, e);
        pass_signals(signals);
        if (status == -ETIMEDOUT || status == -ECONNREFUSED || status == -ENOENT || status == -EPIPE) {
            clock_sleep_until(clock_boot_ns() + NS_PER_S);
            continue;
        }
        int r = expect(status, &answer, "wait", e);
        if (r < 0) return r;
        if (json_scan(answer.s, answer.len, find_code, &code, e) < 0 || code < 0)
            return fail(e, -EPROTO, "the container engine does not say how it ended");
        return code & 0xff;
    }
}

static int take_signals(void) {
    static const int passed[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(passed); i++) sigaddset(&set, passed[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Others pass through a run's directory, to a log or a terminal of theirs. What is bound has left behind the directories that
 * closed it, so it gets one that only we may enter. */
static int take_mounts(struct error *e) {
    self.mounts.roots = self.settings.jobs_mount_roots;
    self.mounts.who = &self.who;
    if (self.spec.mounts.count && mkdir(self.mounts.dir, 0700) < 0 && errno != EEXIST)
        return fail_errno(e, errno, "%s", self.mounts.dir);
    return mounts_take_all(&self.mounts, &self.spec.mounts, e);
}

static int run(const char *dir, const char *settings_path, struct error *e) {
    AUTO(buf_done) struct buf rest = {0};
    int signals = take_signals();
    int r = read_settings(settings_path, e);
    if (r >= 0) r = name_of(dir, e);
    if (r >= 0) r = read_run(dir, e);
    if (r >= 0 && self.spec.is_pty) r = fail(e, -EINVAL, "pty: a container has no terminal here");
    if (r >= 0) r = take_mounts(e);
    if (r >= 0) r = create(e);
    if (r < 0) return r;
    AUTO(fd_done) int fd = docker_attach(self.socket, self.name, &rest, e);
    r = fd < 0 ? fd : post("start", e);
    if (r < 0) return r;
    follow(fd, signals, &rest);
    return wait_for_end(signals, e);
}

int run_image(const char *dir, const char *settings_path) {
    struct error e, ignored;
    char path[PATH_MAX];
    int r = run(dir, settings_path, &e);
    if (r >= 0) return r;
    fprintf(stderr, "gpumgr: %s\n", e.text);
    snprintf(path, sizeof path, "%s/%s", dir, RUNS_REFUSED);
    (void)!file_write(path, 0600, e.text, strlen(e.text), false, &ignored); /* the log has it as well */
    return EXIT_OURS;
}

/* While we clean up, no shim takes the run; and where one has it already, one that was late, there is nothing to clean up. */
static bool is_taken(const char *dir) {
    struct error e;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.4000s/state", dir);
    int fd = record_open(path, &e); /* stays open: the lock ends with us */
    return fd >= 0 && record_lock(fd) == -EAGAIN;
}

int run_image_end(const char *dir, const char *settings_path) {
    AUTO(buf_done) struct buf answer = {0};
    struct error e;
    char target[160];
    if (read_settings(settings_path, &e) < 0 || name_of(dir, &e) < 0 || is_taken(dir)) return EXIT_OURS;
    snprintf(target, sizeof target, "/containers/%s?force=1&v=1", self.name);
    int status = docker_ask(self.socket, "DELETE", target, NULL, CREATE_S, &answer, &e);
    mounts_let_go(self.mounts.dir);
    (void)rmdir(self.mounts.dir);
    return status == 404 || (status >= 200 && status < 300) ? 0 : EXIT_OURS;
}
