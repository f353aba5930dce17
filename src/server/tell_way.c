#include "server/tell_way.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "net/http_client.h"

#define COMMAND_NS (60 * NS_PER_S)
#define COMMAND_LOOK_MS 20
#define PAIRS_MAX 20
#define FIRST_PAUSE_NS (2 * NS_PER_S) /* doubles with each failure */
#define LONGEST_PAUSE_NS (600 * NS_PER_S)

/* ---- web hooks ---- */

/* is_users: whom it goes to was said by a user. */
static int post(const char *url, bool is_users, const char *body, size_t len, struct error *e) {
    AUTO(http_answer_done) struct http_answer a = {0};
    struct http_ask ask = {.method = "POST",
                           .url = url,
                           .headers = {"Content-Type: application/json"},
                           .body = body,
                           .body_len = len,
                           .no_link_local = is_users,
                           .most = 64 << 10};
    int r = http_ask(&ask, &a, e);
    if (r < 0) return r;
    if (a.status >= 200 && a.status < 300) return 0;
    return fail(e, -EPROTO, ANSWERED "%d%s%.80s", a.status, a.body.len ? ": " : "", a.body.len ? a.body.s : "");
}

static bool webhook_is_set(const struct settings *s) { return *s->tell_webhook; }
static void webhook_write(struct buf *out, const struct message *m, const struct settings *s) {
    message_webhook(out, m);
}
static int webhook_send(const struct settings *s, const char *body, size_t len, struct error *e) {
    return post(s->tell_webhook, s->tell_is_users, body, len, e);
}

static bool slack_is_set(const struct settings *s) { return *s->tell_slack; }
static void slack_write(struct buf *out, const struct message *m, const struct settings *s) { message_slack(out, m); }
static int slack_send(const struct settings *s, const char *body, size_t len, struct error *e) {
    return post(s->tell_slack, false, body, len, e);
}

/* ---- mail ---- */

static bool mail_is_set(const struct settings *s) { return *s->tell_smtp_url && *s->tell_mail_to; }

static void sender(const struct settings *s, char ret[256]) {
    if (*s->tell_mail_from)
        snprintf(ret, 256, "%s", s->tell_mail_from);
    else
        snprintf(ret, 256, "%.*s", (int)strcspn(s->tell_mail_to, ", "), s->tell_mail_to);
}

static void mail_write(struct buf *out, const struct message *m, const struct settings *s) {
    char from[256];
    sender(s, from);
    message_mail(out, m, from, s->tell_mail_to);
}

static int mail_way_send(const struct settings *s, const char *body, size_t len, struct error *e) {
    AUTO(buf_done) struct buf password = {0};
    char from[256];
    sender(s, from);
    struct mail m = {.url = s->tell_smtp_url,
                     .from = from,
                     .to = s->tell_mail_to,
                     .message = body,
                     .len = len,
                     .ca_file = s->tell_smtp_ca_file};
    if (*s->tell_smtp_user) {
        struct error why;
        int r = file_read(s->tell_smtp_password_file, 1024, &password, &why);
        if (r < 0) { /* its path is the operator's: others read why a message did not go out */
            log_line(LOG_WARN, "tell_password", -1, "tell.smtp_password_file: %s", why.text);
            return fail(e, r, "the password for the mail server cannot be read; the server's log says why");
        }
        password.s[strcspn(password.s, "\r\n")] = 0;
        m.user = s->tell_smtp_user;
        m.password = password.s;
    }
    return mail_send(&m, e);
}

/* ---- a command ---- */

/* Lines NAME=value, an empty line, and what the command reads on its standard input. */
static void pair_line(void *ctx, const char *name, const char *value) {
    buf_printf(ctx, "%s=", name);
    for (; *value; value++) buf_putc(ctx, *value == '\n' || *value == '\r' ? ' ' : *value);
    buf_putc(ctx, '\n');
}

static bool command_is_set(const struct settings *s) { return *s->tell_command; }

static void command_write(struct buf *out, const struct message *m, const struct settings *s) {
    message_pairs(m, pair_line, out);
    buf_putc(out, '\n');
    message_webhook(out, m);
    buf_putc(out, '\n');
}

/* Cuts the lines of copy into an environment; returns what stands after the empty line. */
static const char *environment_of(char *copy, char **env, size_t room) {
    static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    size_t n = 0;
    env[n++] = path;
    while (*copy && *copy != '\n') {
        size_t len = strcspn(copy, "\n");
        if (n + 1 < room) env[n++] = copy;
        copy += len;
        if (*copy) *copy++ = 0;
    }
    env[n] = NULL;
    return *copy ? copy + 1 : copy;
}

static int spawn(const char *command, char **env, int input, pid_t *ret, struct error *e) {
    char shell[] = "/bin/sh", flag[] = "-c", *text = strdup(command);
    char *argv[] = {shell, flag, text, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    if (!text) abort();
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&how, &none);
    int r = posix_spawn(ret, shell, &files, &how, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    free(text);
    return r ? fail_errno(e, r, "tell.command") : 0;
}

/* Its whole group is ended after a minute: a command that hangs must not stop the messages behind it. */
static int wait_for(pid_t pid, struct error *e) {
    int64_t until = clock_boot_ns() + COMMAND_NS;
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_boot_ns() > until) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            return fail(e, -ETIMEDOUT, "tell.command did not end within %lld s", (long long)(COMMAND_NS / NS_PER_S));
        }
        poll(NULL, 0, COMMAND_LOOK_MS);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    if (WIFSIGNALED(status)) return fail(e, -EIO, "tell.command was ended by signal %d", WTERMSIG(status));
    return fail(e, -EIO, "tell.command ended with code %d", WEXITSTATUS(status));
}

static int command_send(const struct settings *s, const char *body, size_t len, struct error *e) {
    char *env[PAIRS_MAX], *copy = strndup(body, len);
    AUTO(fd_done) int input = -1;
    pid_t pid;
    if (!copy) abort();
    const char *rest = environment_of(copy, env, PAIRS_MAX);
    input = memfd_create("gpumgr-tell", MFD_CLOEXEC);
    int r = input < 0 ? fail_errno(e, errno, "memfd_create") : 0;
    if (r == 0 && (write(input, rest, strlen(rest)) != (ssize_t)strlen(rest) || lseek(input, 0, SEEK_SET) != 0))
        r = fail_errno(e, errno, "write a message");
    if (r == 0) r = spawn(s->tell_command, env, input, &pid, e);
    if (r == 0) r = wait_for(pid, e);
    free(copy);
    return r;
}

const struct tell_way tell_ways[TELL_WAYS] = {
    {"webhook", webhook_is_set, webhook_write, webhook_send },
    {"slack",   slack_is_set,   slack_write,   slack_send   },
    {"mail",    mail_is_set,    mail_write,    mail_way_send},
    {"command", command_is_set, command_write, command_send },
};

const struct tell_way *tell_way_find(const char *name, size_t len) {
    for (size_t i = 0; i < TELL_WAYS; i++)
        if (strlen(tell_ways[i].name) == len && strncmp(tell_ways[i].name, name, len) == 0) return &tell_ways[i];
    return NULL;
}

bool tell_way_address(struct settings *s, const struct tell_way *way, const char *address) {
    bool is_mail = way->send == mail_way_send, is_webhook = way->send == webhook_send;
    bool fits = strlen(address) < (is_mail ? sizeof s->tell_mail_to : sizeof s->tell_webhook);
    if ((!is_mail && !is_webhook) || !*address || !fits || strpbrk(address, "\r\n")) return false;
    char from[256];
    sender(s, from); /* the operator's, not his own */
    snprintf(s->tell_mail_from, sizeof s->tell_mail_from, "%.*s", (int)sizeof s->tell_mail_from - 1, from);
    snprintf(s->tell_webhook, sizeof s->tell_webhook, "%s", is_webhook ? address : "");
    snprintf(s->tell_mail_to, sizeof s->tell_mail_to, "%s", is_mail ? address : "");
    s->tell_is_users = true;
    return true;
}

int64_t tell_pause_ns(int64_t tries) {
    int64_t pause = FIRST_PAUSE_NS;
    while (tries-- > 0 && pause < LONGEST_PAUSE_NS) pause *= 2;
    return pause < LONGEST_PAUSE_NS ? pause : LONGEST_PAUSE_NS;
}
