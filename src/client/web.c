/* `gpumgr web`: a one-time link to the dashboard for whoever calls, opened in his browser or printed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "client/command.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"

static bool program_is_there(const char *name) {
    const char *path = getenv("PATH");
    char full[PATH_MAX];
    if (strchr(name, '/')) return access(name, X_OK) == 0;
    for (const char *at = path ? path : ""; *at;) {
        size_t n = strcspn(at, ":");
        snprintf(full, sizeof full, "%.*s/%s", (int)n, at, name);
        if (n && access(full, X_OK) == 0) return true;
        at += n + (at[n] == ':');
    }
    return false;
}

/* The browser to start, or NULL: none is wanted, or there is nowhere to show it. Never root's: a browser that runs as
 * root is worse than a link to copy. */
static const char *browser(char *room, size_t size) {
    const char *chosen = getenv("BROWSER");
    bool has_screen = getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
    if (geteuid() == 0) return NULL;
    if (chosen && *chosen) {
        snprintf(room, size, "%.*s", (int)strcspn(chosen, ":"), chosen);
        return !strchr(room, ' ') && program_is_there(room) ? room : NULL;
    }
    return has_screen && program_is_there("xdg-open") ? "xdg-open" : NULL;
}

/* The link as a page of the user's own: on a command line every user of the machine could read it, and be faster. */
static int write_page(const char *url, char *ret, size_t room, struct error *e) {
    const char *dir = getenv("XDG_RUNTIME_DIR");
    AUTO(buf_done) struct buf page = {0};
    if (!dir || dir[0] != '/') return fail(e, -ENOENT, "XDG_RUNTIME_DIR is not set");
    if ((size_t)snprintf(ret, room, "%s/gpumgr-web.html", dir) >= room) return fail(e, -ENAMETOOLONG, "%s", dir);
    buf_printf(
        &page,
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url=%s\"><title>gpumgr</title>\n",
        url);
    return file_write(ret, 0600, page.s, page.len, false, e);
}

/* Detached: the browser may outlive the terminal. False when it could not even be started. */
static bool start(const char *program, const char *page) {
    pid_t pid = fork();
    if (pid < 0) return false;
    if (pid == 0) {
        if (setsid() < 0 || fork() != 0) _exit(0);
        int null_fd = open("/dev/null", O_RDWR);
        for (int fd = 0; fd <= 2 && null_fd >= 0; fd++) dup2(null_fd, fd);
        execlp(program, program, page, (char *)NULL);
        _exit(1);
    }
    return waitpid(pid, NULL, 0) == pid;
}

static bool open_browser(const char *url) {
    char room[256], page[PATH_MAX];
    struct error ignored;
    const char *program = browser(room, sizeof room);
    return program && write_page(url, page, sizeof page, &ignored) == 0 && start(program, page);
}

static int show(const struct buf *answer, bool json, bool print) {
    AUTO(buf_done) struct buf out = {0};
    char url[600], user[80] = "", role[16] = "", line[200];
    struct error e;
    if (json) {
        buf_add(&out, answer->s, answer->len);
        buf_putc(&out, '\n');
        return output_exit(&out);
    }
    if (!server_field(answer, "url", url, sizeof url)) {
        fail(&e, -EPROTO, "the server's answer has no link");
        return command_fail(&command_web, &e, EXIT_FAILED);
    }
    (void)!server_field(answer, "user", user, sizeof user);
    (void)!server_field(answer, "role", role, sizeof role);
    if (!print && open_browser(url)) {
        buf_printf(&out, "Opened in your browser, signed in as %s (%s). `gpumgr web --print` prints a link instead.\n",
                   user, role);
        return output_exit(&out);
    }
    buf_printf(&out, "%s\n", url);
    int code = output_exit(&out);
    snprintf(line, sizeof line, "Signs in %s (%s), once, within 15 minutes.", user, role);
    if (code == EXIT_DONE) output_note(line);
    return code;
}

static int run(const struct command *self, int argc, char **argv) {
    bool json = false, print = false;
    const struct flag own[] = {
        {.name = "json",  .kind = FLAG_YES, .into = &json },
        {.name = "print", .kind = FLAG_YES, .into = &print},
    };
    struct flags flags;
    struct loaded loaded = {0};
    struct error e;
    AUTO(buf_done) struct buf answer = {0};
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0) r = flags_no_words(&flags, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    r = server_ask(loaded.values.dir, "POST", "/api/v1/links", NULL, &answer, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    return show(&answer, json, print);
}

const struct command command_web = {
    .name = "web",
    .summary = "Open the dashboard, signed in",
    .run = run,
    .help =
        "usage: gpumgr web [--print] [--json]\n"
        "\n"
        "Makes a link that signs you in once, within 15 minutes, and opens it in your browser; where there is none\n"
        "it is printed. You are known by your Unix user: everybody sees all GPUs of the machine, root and the owner\n"
        "of the gpumgr that runs are administrators. Whoever has the link is signed in as you: do not pass it on.\n"
        "\n"
        "  --print    print the link, open nothing\n"
        "  --json     print the link, its user, role and end as JSON\n"
        "  --dir DIR  the instance to ask\n"
        "\n"
        "example: gpumgr web --print      # then open it through `ssh -L 7000:localhost:7000 HOST`\n",
};
