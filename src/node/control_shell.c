/* A shell in a container, with a terminal: as whoever asks, and ended when he goes. The engine lets a program that was begun with a
 * terminal run on when its connection ends; so it is told to hang up, and killed when it does not. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/thread.h"
#include "model/event.h"
#include "model/ui.h"
#include "node/control_own.h"
#include "node/docker_ask.h"
#include "node/reach.h"
#include "node/tasks.h"

#define EXEC_S 20
#define STACK_BYTES (512 * 1024)
#define CONNECT_MS 5000
#define HANG_UP_MS 2000
#define CODE_NS (5 * NS_PER_S)
#define AGAIN_NS (20 * NS_PER_MS)

/* Held by its stream, and by a thread that sets its size. */
struct shell {
    char socket[108], exec[80], container[72];
    pthread_mutex_t lock; /* guards what follows */
    unsigned rows, columns;
    bool is_sizing; /* a thread is at it: it takes the last size that was asked for, and only one runs at a time */
    bool is_over;
};

static void describe(const struct control *c, struct buf *b) {
    static const char script[] = "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi";
    char user[32];
    snprintf(user, sizeof user, "%u:%u", c->who.login.uid, c->who.login.gid);
    json_open(b, '{');
    json_pair_bool(b, "AttachStdin", true);
    json_pair_bool(b, "AttachStdout", true);
    json_pair_bool(b, "AttachStderr", true);
    json_pair_bool(b, "Tty", true);
    json_pair_str(b, "User", user);
    json_key(b, "Env");
    buf_puts(b, "[\"TERM=xterm-256color\"]");
    json_key(b, "Cmd");
    json_open(b, '[');
    json_str(b, "/bin/sh");
    json_str(b, "-c");
    json_str(b, script);
    json_close(b, ']');
    json_close(b, '}');
}

static int make_exec(const struct control *c, const char *id, struct shell *s, struct error *e) {
    AUTO(buf_done) struct buf body = {0}, answer = {0}, target = {0}, exec = {0};
    describe(c, &body);
    buf_printf(&target, "/containers/%s/exec", id);
    int r = control_do(c, "POST", target.s, body.s, EXEC_S, &answer, e);
    if (r < 0) return r;
    json_slice_text(json_slice_get((struct json_slice){answer.s, answer.len}, "Id"), &exec);
    if (!exec.len || exec.len >= sizeof s->exec)
        return fail(e, -EPROTO, "the container engine does not say what it made");
    snprintf(s->exec, sizeof s->exec, "%s", exec.s);
    snprintf(s->container, sizeof s->container, "%s", id);
    snprintf(s->socket, sizeof s->socket, "%s", c->socket);
    return 0;
}

/* ---- its size ---- */

static void set_size(const struct shell *s, unsigned rows, unsigned columns) {
    AUTO(buf_done) struct buf answer = {0};
    struct error ignored;
    char target[160];
    snprintf(target, sizeof target, "/exec/%s/resize?h=%u&w=%u", s->exec, rows, columns);
    (void)!docker_ask(s->socket, "POST", target, NULL, EXEC_S, &answer, &ignored);
}

static void shell_free(struct shell *s) {
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void *end_shell(void *arg);

static void *size_thread(void *arg) {
    struct shell *s = arg;
    unsigned rows = 0, columns = 0;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        bool is_same = s->rows == rows && s->columns == columns, is_over = s->is_over;
        rows = s->rows;
        columns = s->columns;
        if (is_same || is_over) s->is_sizing = false;
        pthread_mutex_unlock(&s->lock);
        if (is_over) return end_shell(s);
        if (is_same) return NULL;
        set_size(s, rows, columns);
    }
}

static void on_size(void *ctx, unsigned rows, unsigned columns) {
    struct shell *s = ctx;
    struct error ignored;
    pthread_mutex_lock(&s->lock);
    bool begins = !s->is_sizing;
    s->rows = rows;
    s->columns = columns;
    s->is_sizing = true;
    pthread_mutex_unlock(&s->lock);
    if (!begins || thread_start(size_thread, s, STACK_BYTES, "a terminal's size", &ignored) >= 0) return;
    pthread_mutex_lock(&s->lock);
    s->is_sizing = false;
    pthread_mutex_unlock(&s->lock);
}

/* ---- the end ---- */

/* The process that the engine says it is, held by a descriptor, if it is in that container. */
static int process_of(const struct shell *s) {
    AUTO(buf_done) struct buf answer = {0}, cgroup = {0};
    struct error ignored;
    char target[120], path[40];
    snprintf(target, sizeof target, "/exec/%s/json", s->exec);
    if (docker_ask(s->socket, "GET", target, NULL, EXEC_S, &answer, &ignored) != 200) return -1;
    struct json_slice all = {answer.s, answer.len};
    struct json_slice pid = json_slice_get(all, "Pid");
    long number = pid.len ? strtol(pid.s, NULL, 10) : 0;
    if (!json_slice_is(json_slice_get(all, "Running"), "true") || number <= 1) return -1;
    AUTO(fd_done) int fd = (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
    snprintf(path, sizeof path, "/proc/%ld/cgroup", number);
    if (fd < 0 || file_read(path, 65536, &cgroup, &ignored) < 0 || !strstr(cgroup.s, s->container)) return -1;
    int taken = fd;
    fd = -1;
    return taken;
}

/* The engine says so a moment after the last byte. */
static int exit_code(void *ctx) {
    const struct shell *s = ctx;
    char target[120];
    snprintf(target, sizeof target, "/exec/%s/json", s->exec);
    for (int64_t until_ns = clock_boot_ns() + CODE_NS; clock_boot_ns() < until_ns;) {
        AUTO(buf_done) struct buf answer = {0};
        struct error ignored;
        if (docker_ask(s->socket, "GET", target, NULL, EXEC_S, &answer, &ignored) != 200) return 0;
        struct json_slice all = {answer.s, answer.len}, code = json_slice_get(all, "ExitCode");
        if (json_slice_is(json_slice_get(all, "Running"), "false") && code.len && code.s[0] != 'n')
            return (int)strtol(code.s, NULL, 10);
        clock_sleep_until(clock_boot_ns() + AGAIN_NS);
    }
    return 0;
}

static void *end_shell(void *arg) {
    struct shell *s = arg;
    struct pollfd gone = {.fd = process_of(s), .events = POLLIN};
    if (gone.fd >= 0) {
        syscall(SYS_pidfd_send_signal, gone.fd, SIGHUP, NULL, 0);
        if (poll(&gone, 1, HANG_UP_MS) == 0) syscall(SYS_pidfd_send_signal, gone.fd, SIGKILL, NULL, 0);
        close(gone.fd);
    }
    shell_free(s);
    return NULL;
}

/* A thread that is at its size sees to its end. */
static void on_done(void *ctx) {
    struct shell *s = ctx;
    struct error ignored;
    pthread_mutex_lock(&s->lock);
    bool is_sizing = s->is_sizing;
    s->is_over = true;
    pthread_mutex_unlock(&s->lock);
    if (!is_sizing && thread_start(end_shell, s, STACK_BYTES, "the end of a shell", &ignored) < 0) shell_free(s);
}

/* ---- the beginning ---- */

/* Whoever may use a shell or the page of a container is as good as the one it runs as. */
static int enter(const struct control *c, const char *of, struct control_seen *s, struct error *e) {
    int r = control_see(c, of, s, e);
    if (r < 0) return r;
    if (!s->is_gpu && !s->is_ours)
        return fail(e, -EPERM, "container %s has nothing to do with GPUs: gpumgr leaves it alone", s->name);
    if (!control_may_enter(&c->who, s))
        return fail(e, -EPERM, "container %s is not %s%s: it is entered by whoever it runs as", s->name,
                    c->who.account[0] ? c->who.account : "yours", c->who.account[0] ? "'s" : "");
    return s->is_running ? 0 : fail(e, -EBUSY, "container %s does not run", s->name);
}

int control_shell(struct control *c, const char *of, unsigned rows, unsigned columns, struct stream_end *ret,
                  struct error *e) {
    AUTO(control_seen_done) struct control_seen seen = {0};
    char target[120], text[168];
    int r = enter(c, of, &seen, e);
    if (r < 0) return r;
    struct shell *s = calloc(1, sizeof *s);
    if (!s) abort();
    pthread_mutex_init(&s->lock, NULL);
    r = make_exec(c, seen.id, s, e);
    snprintf(target, sizeof target, "/exec/%s/start", s->exec);
    int fd = r < 0 ? r : docker_hijack(c->socket, target, "{\"Detach\":false,\"Tty\":true}", e);
    if (fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0) close(fd), fd = fail_errno(e, errno, "fcntl");
    if (fd < 0) {
        shell_free(s);
        return fd;
    }
    set_size(s, rows, columns);
    *ret = (struct stream_end){.fd = fd, .ctx = s, .size = on_size, .code = exit_code, .done = on_done};
    snprintf(text, sizeof text, "a shell was opened in container %.60s by %.50s", seen.name,
             c->who.account[0] ? c->who.account : c->who.login.user);
    tasks_event(EVENT_INFO, "container", 0, text);
    return 0;
}

/* ---- its own page ---- */

static int ui_of(const struct control_seen *s, struct ui *ret, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    json_slice_text(json_slice_get(s->labels, UI_LABEL), &text);
    if (!text.len)
        return fail(e, -ENOENT, "container %s has no page of its own: its label " UI_LABEL " says where", s->name);
    int r = ui_parse(text.s, ret, e);
    if (r >= 0 && !ret->port) ret->port = UI_PORT_INSIDE;
    return r < 0 ? fail_in(e, r, "container %s, label " UI_LABEL, s->name) : 0;
}

int control_ui(struct control *c, struct error *e) {
    AUTO(control_seen_done) struct control_seen s = {0};
    AUTO(buf_done) struct buf text = {0};
    struct ui ui;
    int r = enter(c, c->call.of, &s, e);
    if (r >= 0) r = ui_of(&s, &ui, e);
    if (r < 0) return r;
    ui_text(&ui, &text);
    json_open(&c->out, '{');
    json_pair_str(&c->out, "id", s.id);
    json_pair_str(&c->out, "name", s.name);
    json_pair_str(&c->out, "ui", text.s);
    json_pair_str(&c->out, "owner", s.account[0] ? s.account : c->who.login.user);
    json_close(&c->out, '}');
    return 0;
}

int control_port(struct control *c, const struct wire_stream_open *o, struct stream_end *ret, struct error *e) {
    AUTO(control_seen_done) struct control_seen s = {0};
    struct ui ui = {0};
    int r = enter(c, o->container, &s, e);
    if (r >= 0) r = ui_of(&s, &ui, e);
    if (r >= 0 && o->port && o->port != ui.port)
        r = fail(e, -EPERM, "container %s has its page at port %u, not at %u", s.name, ui.port, o->port);
    if (r < 0) return r;
    ret->fd = reach_container(&c->settings, s.id, (uint16_t)ui.port, CONNECT_MS, e);
    return ret->fd < 0 ? ret->fd : 0;
}
