#include "client/server_check.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/instance.h"

/* Names where the value stands, as for every other setting. */
static int blame(const struct loaded *l, const char *key, int code, struct error *e) {
    const struct option *o = option_find(settings_table, settings_count, key);
    const char *from = l->of[o - settings_table].from;
    return *from ? fail_in(e, code, "%.100s", from) : code;
}

/* The server is not root when it listens. */
static bool is_privileged(int port) {
    AUTO(buf_done) struct buf text = {0};
    int first = 1024;
    if (file_read("/proc/sys/net/ipv4/ip_unprivileged_port_start", 32, &text, NULL) >= 0) first = atoi(text.s);
    return port > 0 && port < first;
}

static int try_bind(const struct addrinfo *a) {
    AUTO(fd_done) int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    const int on = 1;
    if (fd < 0) return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* as the server does: what lingers there is no bar */
    if (a->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 1) < 0) return -errno;
    return 0;
}

/* One address that can be had is enough, as it is for the server. */
static int check_address(const char *address, struct error *e) {
    char host[128];
    const char *port = strrchr(address, ':');
    if (!port || (size_t)(port - address) >= sizeof host)
        return fail(e, -EINVAL, "listen: %s is not HOST:PORT", address);
    bool has_brackets = address[0] == '[' && port > address + 1 && port[-1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(port - address) - 2 * has_brackets, address + has_brackets);
    struct addrinfo want = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int r = getaddrinfo(*host ? host : NULL, port + 1, &want, &found);
    if (r) return fail(e, -EINVAL, "listen: %s: %s", address, gai_strerror(r));
    int result = -EADDRNOTAVAIL;
    for (const struct addrinfo *a = found; a && result != 0; a = a->ai_next) result = try_bind(a);
    freeaddrinfo(found);
    if (geteuid() == 0 && is_privileged(atoi(port + 1)))
        return fail(e, -EACCES, "listen: %s: the server is not root, and ports this low are root's; take another one",
                    address);
    if (result == -EADDRINUSE)
        return fail(e, result, "listen: %s: another program listens there; stop it, or give --listen another port",
                    address);
    return result < 0 ? fail_errno(e, -result, "listen: %s", address) : 0;
}

static int check_file(const char *key, const char *path, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    if (!*path) return 0;
    int r = file_read(path, 1 << 20, &text, e);
    if (r < 0) return fail_in(e, r, "%s", key);
    if (!strstr(text.s, "-----BEGIN ")) return fail(e, -EINVAL, "%s: %.150s is not a PEM file", key, path);
    return 0;
}

/* Started as root the server becomes somebody else, who must be able to come as far as its directory. Parts of the path
 * that are not there yet will be made so that he can. */
static int check_way(const char *dir, struct error *e) {
    char want[PATH_MAX], part[PATH_MAX];
    struct stat st;
    if (geteuid() != 0) return 0;
    snprintf(want, sizeof want, "%s", dir);
    if (!*want && instance_default_dir(want, sizeof want, e) < 0) return e->code;
    if (!realpath(want, part)) snprintf(part, sizeof part, "%s", want);
    for (char *end = part + strlen(part); end > part; end = strrchr(part, '/')) {
        *end = 0;
        if (*part && stat(part, &st) == 0 && !(st.st_mode & S_IXOTH))
            return fail(
                e, -EACCES,
                "dir: %.100s: the server runs as a user of its own, who may not come through %.80s; `chmod o+x` "
                "that, or give another --dir",
                want, part);
    }
    return 0;
}

int server_check(const struct loaded *l, struct error *e) {
    const struct settings *s = &l->values;
    int way = check_way(s->dir, e);
    if (way < 0) return blame(l, "dir", way, e);
    int r = check_file("tls.cert", s->tls_cert, e);
    if (r < 0) return blame(l, "tls.cert", r, e);
    r = check_file("tls.key", s->tls_key, e);
    if (r < 0) return blame(l, "tls.key", r, e);
    r = check_address(s->listen, e);
    return r < 0 ? blame(l, "listen", r, e) : 0;
}
