#include "node/health_check.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "net/http_reader.h"
#include "node/docker_ask.h"
#include "node/reach.h"

#define ENVIRON_MAX (4u << 20)
#define EXEC_LOOK_NS (50 * NS_PER_MS)
#define ENGINE_S 10
#define TABLE_MAX (8u << 20)
#define SAID_MAX 120

static int left_ms(int64_t until_ns) {
    int64_t left = (until_ns - clock_boot_ns()) / NS_PER_MS;
    return left > 0 ? (int)(left < 3600000 ? left : 3600000) : 0;
}

/* ---- HTTP and TCP ---- */

static int wait_for(int fd, short events, int64_t until_ns, struct error *e) {
    struct pollfd p = {.fd = fd, .events = events};
    int n;
    do n = poll(&p, 1, left_ms(until_ns));
    while (n < 0 && errno == EINTR);
    return n > 0 ? 0 : fail(e, -ETIMEDOUT, "it does not answer in time");
}

static int say(int fd, const char *text, size_t n, int64_t until_ns, struct error *e) {
    while (n) {
        ssize_t w = send(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (w < 0 && errno == EAGAIN) {
            int r = wait_for(fd, POLLOUT, until_ns, e);
            if (r < 0) return r;
            continue;
        }
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) return fail_errno(e, errno, "its connection");
        text += w;
        n -= (size_t)w;
    }
    return 0;
}

/* The status; the rest of the answer is nobody's business. */
static int hear_status(int fd, int64_t until_ns, struct error *e) {
    struct http_reader reader = {0};
    AUTO(buf_done) struct buf body = {0};
    char piece[4096];
    int r = 0;
    while (r >= 0 && !reader.status) {
        r = wait_for(fd, POLLIN, until_ns, e);
        if (r < 0) break;
        ssize_t n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n < 0) r = fail_errno(e, errno, "its connection");
        if (n == 0) r = fail(e, -EPIPE, "it hung up without an answer");
        if (n > 0 && http_reader_take(&reader, piece, (size_t)n, 1 << 20, &body, e) < 0) r = -EPROTO;
    }
    if (r >= 0) r = reader.status;
    http_reader_done(&reader);
    return r;
}

static int check_http(const struct health_target *t, int fd, int64_t until_ns, struct error *e) {
    AUTO(buf_done) struct buf ask = {0};
    const struct service_spec *s = &t->spec;
    buf_printf(&ask, "GET %s HTTP/1.1\r\nHost: localhost:%d\r\nUser-Agent: gpumgr\r\nConnection: close\r\n\r\n",
               s->path, s->port);
    int r = say(fd, ask.s, ask.len, until_ns, e);
    if (r >= 0) r = hear_status(fd, until_ns, e);
    if (r < 0) return r;
    bool is_good = s->status ? r == s->status : r >= 200 && r < 400;
    return is_good ? 0 : fail(e, -EPROTO, "GET %.60s answers %d", s->path, r);
}

static int check_port(const struct health_target *t, int64_t until_ns, struct error *e) {
    AUTO(fd_done) int fd = reach_run(&t->settings, t->name, (uint16_t)t->spec.port, left_ms(until_ns), e);
    if (fd < 0) return fd;
    return t->spec.probe == SERVICE_HTTP ? check_http(t, fd, until_ns, e) : 0;
}

/* ---- a command beside a process ---- */

static char **words_of(const struct job_words *w) {
    char **list = calloc(w->count + 1u, sizeof *list);
    if (!list) abort();
    unsigned n = 0;
    for (const char *at = NULL; n < w->count && (at = job_word_next(w, at));) list[n++] = (char *)(uintptr_t)at;
    return list;
}

struct child {
    const struct health_target *of;
    char **argv, **env;
    int place, out; /* the directory it runs in; where what it says goes */
};

/* Between fork and exec: nothing but system calls, for other threads may have held any lock. */
_Noreturn static void become(const struct child *c) {
    const struct health_target *t = c->of;
    bool is_root = geteuid() == 0;
    setsid();
    if (c->place >= 0 && fchdir(c->place) < 0) _exit(126);
    if (is_root &&
        (syscall(SYS_setgroups, (size_t)t->groups, t->group) < 0 ||
         syscall(SYS_setresgid, t->gid, t->gid, t->gid) < 0 || syscall(SYS_setresuid, t->uid, t->uid, t->uid) < 0))
        _exit(126);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(c->out, STDOUT_FILENO) < 0 || dup2(c->out, STDERR_FILENO) < 0)
        _exit(126);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (c->argv[0]) execvpe(c->argv[0], c->argv, c->env);
    _exit(127);
}

/* What it says is read as it comes, so that it never waits for us; the beginning is kept. */
static int wait_child(pid_t pid, int out, int64_t until_ns, struct buf *said) {
    AUTO(fd_done) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    char piece[512];
    int status = -1;
    for (bool is_open = true;;) {
        struct pollfd p[2] = {
            {.fd = pidfd,              .events = POLLIN},
            {.fd = is_open ? out : -1, .events = POLLIN}
        };
        int n = poll(p, 2, left_ms(until_ns));
        if (n < 0 && errno == EINTR) continue;
        if (p[1].revents) {
            ssize_t got = read(out, piece, sizeof piece);
            is_open = got > 0;
            if (got > 0 && said->len < SAID_MAX) buf_add(said, piece, (size_t)got);
            if (is_open && n > 0) continue;
        }
        if (n > 0 && !p[0].revents) continue;
        if (n <= 0) kill(-pid, SIGKILL);
        if (n <= 0) kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        return n <= 0 ? -ETIMEDOUT : status;
    }
}

static void first_line(struct buf *said) {
    buf_puts(said, "");
    size_t n = strcspn(said->s, "\n");
    if (n > SAID_MAX) n = SAID_MAX;
    said->s[n] = 0;
    said->len = n;
}

static int judge(int code, const struct buf *said, struct error *e) {
    if (code == 0) return 0;
    return fail(e, -EPROTO, "its check ended with exit code %d%s%.100s", code, said->len ? ": " : "",
                said->len ? said->s : "");
}

static int check_beside(const struct health_target *t, int64_t until_ns, struct error *e) {
    AUTO(buf_done) struct buf environment = {0}, said = {0};
    char path[64];
    int out[2];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)t->pid);
    int r = file_read(path, ENVIRON_MAX, &environment, e);
    if (r == -ESRCH || r == -ENOENT) return fail(e, r, "it was over before it was checked");
    if (r < 0) return r;
    if (environment.len && environment.s[environment.len - 1]) buf_putc(&environment, 0);
    const struct job_words env = job_words_of(&environment);
    if (pipe2(out, O_CLOEXEC) < 0) return fail_errno(e, errno, "a pipe");
    snprintf(path, sizeof path, "/proc/%d/cwd", (int)t->pid);
    AUTO(fd_done) int place = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct child c = {t, words_of(&t->spec.command), words_of(&env), place, out[1]};
    pid_t pid = fork();
    if (pid == 0) become(&c);
    close(out[1]);
    int status = pid > 0 ? wait_child(pid, out[0], until_ns, &said) : -EAGAIN;
    close(out[0]);
    free(c.argv);
    free(c.env);
    if (status == -ETIMEDOUT) return fail(e, status, "its check does not end in time");
    if (status < 0) return fail(e, status, "its check cannot be started");
    first_line(&said);
    return judge(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), &said, e);
}

/* ---- a command inside a container ---- */

struct exec {
    char id[80];
    bool is_running;
    int code, pid;
};

static void find_exec(void *ctx, const struct json_scan_value *v) {
    struct exec *x = ctx;
    if (json_scan_is(v, 1, "Id") || json_scan_is(v, 1, "ID")) snprintf(x->id, sizeof x->id, "%.70s", v->text);
    if (json_scan_is(v, 1, "Running")) x->is_running = strcmp(v->text, "true") == 0;
    if (json_scan_is(v, 1, "ExitCode")) x->code = atoi(v->text);
    if (json_scan_is(v, 1, "Pid")) x->pid = atoi(v->text);
}

static int engine(const char *socket, const char *method, const char *target, const char *body, struct exec *x,
                  struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    char why[160];
    int status = docker_ask(socket, method, target, body, ENGINE_S, &answer, e);
    if (status < 0) return status;
    if (status >= 300) {
        docker_complaint(&answer, status, why, sizeof why);
        return fail(e, status == 404 ? -ENOENT : -EPROTO, "its check: %s", why);
    }
    return answer.len && answer.s[0] == '{' ? json_scan(answer.s, answer.len, find_exec, x, e) : 0;
}

static int check_inside(const struct health_target *t, int64_t until_ns, struct error *e) {
    AUTO(buf_done) struct buf body = {0};
    char socket[108], container[OWNERS_CONTAINER], target[200];
    struct exec x = {0};
    int r = docker_first(t->settings.engines_docker, socket, sizeof socket, e);
    if (r < 0) return r;
    owners_container(t->name, container);
    json_open(&body, '{');
    json_key(&body, "Cmd");
    json_open(&body, '[');
    for (const char *w = NULL; (w = job_word_next(&t->spec.command, w));) json_str(&body, w);
    json_close(&body, ']');
    json_close(&body, '}');
    snprintf(target, sizeof target, "/containers/%s/exec", container);
    r = engine(socket, "POST", target, body.s, &x, e);
    if (r < 0) return r;
    snprintf(target, sizeof target, "/exec/%s/start", x.id);
    r = engine(socket, "POST", target, "{\"Detach\":true}", &x, e);
    for (;;) {
        snprintf(target, sizeof target, "/exec/%.70s/json", x.id);
        x.is_running = false;
        if (r >= 0) r = engine(socket, "GET", target, NULL, &x, e);
        if (r < 0) return r;
        if (!x.is_running) return judge(x.code, &(struct buf){0}, e);
        if (clock_boot_ns() >= until_ns) break;
        clock_sleep_until(clock_boot_ns() + EXEC_LOOK_NS);
    }
    if (x.pid > 1) kill(x.pid, SIGKILL); /* where we may */
    return fail(e, -ETIMEDOUT, "its check does not end in time");
}

int health_check(const struct health_target *t, struct error *e) {
    int64_t until_ns = clock_boot_ns() + t->spec.timeout_ns;
    if (t->spec.probe == SERVICE_COMMAND)
        return t->is_image ? check_inside(t, until_ns, e) : check_beside(t, until_ns, e);
    return check_port(t, until_ns, e);
}

/* ---- before there is a run ---- */

static int try_image(const struct settings *s, const char *image, struct error *e) {
    AUTO(buf_done) struct buf answer = {0}, target = {0};
    char socket[108];
    struct error why;
    int r = docker_first(s->engines_docker, socket, sizeof socket, e);
    if (r < 0) return fail_in(e, r, "image");
    buf_printf(&target, "/images/%s/json", image); /* job_check leaves nothing in a name that would need quoting */
    int status = docker_ask(socket, "GET", target.s, NULL, ENGINE_S, &answer, &why);
    if (status < 0) return fail(e, -EAGAIN, "image: %.200s", why.text);
    if (status == 404) return fail(e, -ENOENT, "image: %.100s is not on this machine; `docker pull` brings it", image);
    return status < 300 ? 0 : fail(e, -EPROTO, "image: the container engine answers %d about %.100s", status, image);
}

static int try_port(uint16_t port, struct error *e) {
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    for (int i = 0; i < 2; i++) {
        AUTO(buf_done) struct buf text = {0};
        struct reach_listener one;
        if (file_read(tables[i], TABLE_MAX, &text, NULL) < 0) continue;
        if (reach_listeners(text.s, i == 1, port, &one, 1))
            return fail(e, -EEXIST, "service.health.port: %u is taken already: somebody listens there", port);
    }
    return 0;
}

int health_try_spec(const struct settings *s, const struct job_spec *spec, struct error *e) {
    struct service_spec service;
    int r = service_spec_read(&spec->service, &service, e);
    if (r < 0) return r;
    if (*spec->image) return try_image(s, spec->image, e);
    return service.port && service.update != SERVICE_REPLACE ? try_port((uint16_t)service.port, e) : 0;
}
