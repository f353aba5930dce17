#include "client/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"

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

bool browser_open(const char *url) {
    char room[256], page[PATH_MAX];
    struct error ignored;
    const char *program = browser(room, sizeof room);
    return program && write_page(url, page, sizeof page, &ignored) == 0 && start(program, page);
}
