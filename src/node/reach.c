#include "node/reach.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "node/container.h"
#include "node/docker_ask.h"
#include "node/owners.h"
#include "node/process.h"
#include "run/tree.h"

#define LISTENERS_MAX 16
#define TABLE_MAX (8u << 20)
#define INSPECT_S 5
#define TCP_LISTEN 0x0a
#define KNOWN_MAX 64

/* ---- who listens ---- */

/* Words of 32 bits as this machine has them in memory. */
static bool read_address(const char *hex, unsigned words, uint32_t *ret) {
    for (unsigned i = 0; i < words; i++) {
        char word[9] = {0};
        memcpy(word, hex + 8ul * i, 8);
        if (strspn(word, "0123456789abcdefABCDEF") != 8) return false;
        ret[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    return true;
}

static bool read_line(const char *line, bool is_v6, uint16_t port, struct reach_listener *ret) {
    char local[48];
    unsigned local_port, state;
    uint64_t inode;
    uint32_t address[4] = {0};
    const unsigned words = is_v6 ? 4 : 1;
    if (sscanf(line, " %*u: %32[0-9a-fA-F]:%4x %*[0-9a-fA-F]:%*4x %2x %*s %*s %*s %*u %*u %" SCNu64, local, &local_port,
               &state, &inode) != 4)
        return false;
    if (state != TCP_LISTEN || local_port != port || strlen(local) != 8ul * words) return false;
    if (!read_address(local, words, address)) return false;
    *ret = (struct reach_listener){.inode = inode};
    if (is_v6) {
        struct sockaddr_in6 *to = (struct sockaddr_in6 *)&ret->to;
        to->sin6_family = AF_INET6;
        to->sin6_port = htons(port);
        memcpy(&to->sin6_addr, address, sizeof to->sin6_addr);
        if (IN6_IS_ADDR_UNSPECIFIED(&to->sin6_addr)) to->sin6_addr = in6addr_loopback;
    } else {
        struct sockaddr_in *to = (struct sockaddr_in *)&ret->to;
        to->sin_family = AF_INET;
        to->sin_port = htons(port);
        to->sin_addr.s_addr = address[0] ? address[0] : htonl(INADDR_LOOPBACK);
    }
    return true;
}

unsigned reach_listeners(const char *text, bool is_v6, uint16_t port, struct reach_listener *ret, unsigned room) {
    unsigned n = 0;
    for (const char *line = text; line && *line && n < room; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        n += read_line(line, is_v6, port, &ret[n]);
    return n;
}

/* In the network of a process; 0: in ours. */
static unsigned find_listeners(pid_t pid, uint16_t port, struct reach_listener *ret) {
    unsigned n = 0;
    for (int is_v6 = 0; is_v6 < 2; is_v6++) {
        AUTO(buf_done) struct buf text = {0};
        char path[64];
        if (pid)
            snprintf(path, sizeof path, "/proc/%d/net/tcp%s", (int)pid, is_v6 ? "6" : "");
        else
            snprintf(path, sizeof path, "/proc/thread-self/net/tcp%s", is_v6 ? "6" : "");
        if (file_read(path, TABLE_MAX, &text, NULL) >= 0)
            n += reach_listeners(text.s, is_v6, port, ret + n, LISTENERS_MAX - n);
    }
    return n;
}

/* ---- whose it is ---- */

static bool has_socket(pid_t pid, uint64_t inode) {
    char path[64], want[40], link[64];
    bool is_found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    snprintf(want, sizeof want, "socket:[%" PRIu64 "]", inode);
    DIR *d = opendir(path);
    for (struct dirent *entry; !is_found && d && (entry = readdir(d));) {
        ssize_t n = readlinkat(dirfd(d), entry->d_name, link, sizeof link - 1);
        if (n <= 0) continue;
        link[n] = 0;
        is_found = strcmp(link, want) == 0;
    }
    if (d) closedir(d);
    return is_found;
}

/* Whose port it must be: a run by its shim, or a container by its id and its first process. */
struct whose {
    char name[80];              /* for sentences */
    char key[OWNERS_CONTAINER]; /* of what is remembered: the run, or how the container was asked for */
    pid_t shim, first;
    char container[ENGINE_ID_HEX + 1];
};

/* What was found out lately: looking through all processes, or asking an engine, for each of a page's hundred requests would be slow. A
 * socket's number is not used again while the machine runs, and a process is known by when it began: what is remembered is true. */
struct known {
    char key[OWNERS_CONTAINER];
    uint64_t inode; /* of a socket that is its own; 0: none */
    pid_t first;
    uint64_t ticks; /* of first */
    char container[ENGINE_ID_HEX + 1], name[80];
};

static struct {
    pthread_mutex_t lock;
    struct known of[KNOWN_MAX];
    unsigned next;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void remember(const struct known *k) {
    pthread_mutex_lock(&memory.lock);
    memory.of[memory.next++ % KNOWN_MAX] = *k;
    pthread_mutex_unlock(&memory.lock);
}

static bool is_known_socket(const struct whose *w, uint64_t inode) {
    bool is_known = false;
    pthread_mutex_lock(&memory.lock);
    for (unsigned i = 0; i < KNOWN_MAX; i++)
        is_known |= memory.of[i].inode == inode && inode && strcmp(memory.of[i].key, w->key) == 0;
    pthread_mutex_unlock(&memory.lock);
    return is_known;
}

static bool is_known_container(struct whose *w) {
    struct known k = {0};
    pthread_mutex_lock(&memory.lock);
    for (unsigned i = 0; i < KNOWN_MAX; i++)
        if (memory.of[i].first && strcmp(memory.of[i].key, w->key) == 0) k = memory.of[i];
    pthread_mutex_unlock(&memory.lock);
    if (!k.first || !k.ticks || tree_ticks(k.first) != k.ticks) return false;
    w->first = k.first;
    memcpy(w->container, k.container, sizeof w->container);
    if (!*w->name) memcpy(w->name, k.name, sizeof w->name);
    return true;
}

static bool is_in_container(pid_t pid, const char *id) {
    struct process p;
    return process_read("/proc", pid, &p) && strcmp(p.whose.id, id) == 0;
}

static void take_processes(const struct whose *w, struct tree *t) {
    (void)tree_scan(t);
    pid_t root = w->shim ? w->shim : w->first;
    tree_take_pid(t, root, tree_ticks(root));
    tree_take_below(t);
    for (size_t i = 0; *w->container && i < t->count; i++)
        if (!t->of[i].is_ours && is_in_container(t->of[i].pid, w->container)) t->of[i].is_ours = true;
}

/* The first listener that is open in one of its processes, or NULL. */
static const struct reach_listener *own_listener(const struct whose *w, const struct reach_listener *of, unsigned n) {
    struct tree t = {0};
    const struct reach_listener *found = NULL;
    for (unsigned k = 0; k < n; k++)
        if (is_known_socket(w, of[k].inode)) return &of[k];
    take_processes(w, &t);
    for (unsigned k = 0; k < n && !found; k++)
        for (size_t i = 0; i < t.count && !found; i++)
            if (t.of[i].is_ours && has_socket(t.of[i].pid, of[k].inode)) found = &of[k];
    tree_done(&t);
    if (found) {
        struct known k = {.inode = found->inode};
        memcpy(k.key, w->key, sizeof k.key);
        remember(&k);
    }
    return found;
}

/* ---- a socket in another network ---- */

static int join(pid_t pid, const char *which, int kind) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, which);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || setns(fd, kind) < 0 ? -errno : 0;
}

/* In a child, which alone can change its namespaces; nothing here but system calls. */
_Noreturn static void make_socket_there(pid_t pid, int family, int to) {
    int errnum = 0, fd = -1, r = geteuid() == 0 ? 0 : join(pid, "user", CLONE_NEWUSER);
    if (r == 0) r = join(pid, "net", CLONE_NEWNET);
    if (r == 0) fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    errnum = r < 0 ? -r : fd < 0 ? errno : 0;
    (void)!fd_send(to, fd, errnum);
    _exit(0);
}

static int socket_there(pid_t pid, int family, struct error *e) {
    int pair[2], errnum = EAGAIN;
    if (!pid) {
        int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        return fd < 0 ? fail_errno(e, errno, "a socket") : fd;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return fail_errno(e, errno, "a socket");
    pid_t child = fork();
    if (child == 0) make_socket_there(pid, family, pair[1]);
    close(pair[1]);
    int fd = child > 0 ? fd_receive(pair[0], &errnum) : -1;
    close(pair[0]);
    if (child > 0) waitpid(child, NULL, 0);
    if (fd >= 0) return fd;
    if (errnum == EPERM || errnum == EACCES)
        return fail(e, -EPERM, "gpumgr is not root here and cannot enter the container's network");
    return fail_errno(e, errnum, "the container's network");
}

static int connect_there(pid_t pid, const struct sockaddr_storage *to, int timeout_ms, struct error *e) {
    AUTO(fd_done) int fd = socket_there(pid, to->ss_family, e);
    if (fd < 0) return fd;
    socklen_t size = to->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int errnum = connect(fd, (const struct sockaddr *)to, size) < 0 ? errno : 0;
    if (errnum == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t n = sizeof errnum;
        if (poll(&p, 1, timeout_ms) <= 0)
            errnum = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &n) < 0)
            errnum = errno;
    }
    if (errnum == ETIMEDOUT) return fail(e, -ETIMEDOUT, "it does not accept connections");
    if (errnum) return fail_errno(e, errnum, "connect");
    int taken = fd;
    fd = -1;
    return taken;
}

/* ---- together ---- */

static bool is_own_network(pid_t pid) {
    struct stat ours, theirs;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
    return stat("/proc/self/ns/net", &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino;
}

static int not_yet(const struct whose *w, uint16_t port, struct error *e) {
    return fail(e, -ECONNREFUSED, "%s does not listen at port %u yet", w->name, port);
}

/* At a port of this machine. Looked at again afterwards: it might have been given up and taken by somebody else meanwhile. */
static int reach_here(const struct whose *w, uint16_t port, int timeout_ms, struct error *e) {
    struct reach_listener of[LISTENERS_MAX], again[LISTENERS_MAX];
    unsigned n = find_listeners(0, port, of), still = 0;
    if (!n) return not_yet(w, port, e);
    const struct reach_listener *own = own_listener(w, of, n);
    if (!own) return fail(e, -EPERM, "port %u is not of %s: somebody else listens there", port, w->name);
    AUTO(fd_done) int fd = connect_there(0, &own->to, timeout_ms, e);
    if (fd < 0) return fd;
    n = find_listeners(0, port, again);
    for (unsigned i = 0; i < n; i++) still += again[i].inode == own->inode;
    if (!still) return not_yet(w, port, e);
    int taken = fd;
    fd = -1;
    return taken;
}

static int reach_there(const struct whose *w, uint16_t port, int timeout_ms, struct error *e) {
    struct reach_listener of[LISTENERS_MAX];
    if (is_own_network(w->first)) return reach_here(w, port, timeout_ms, e);
    unsigned n = find_listeners(w->first, port, of);
    int r = n ? 0 : not_yet(w, port, e);
    for (unsigned i = 0; i < n; i++) {
        r = connect_there(w->first, &of[i].to, timeout_ms, e);
        if (r >= 0) break;
    }
    return r;
}

/* ---- containers ---- */

static int inspect(const struct settings *s, const char *container, struct buf *answer, struct error *e) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    char target[160], socket[108];
    int status = docker_first(s->engines_docker, socket, sizeof socket, e);
    if (status < 0) return status;
    if (!*container || strspn(container, plain) != strlen(container))
        return fail(e, -ENOENT, "%.72s is no name of a container", container);
    snprintf(target, sizeof target, "/containers/%.100s/json", container);
    status = docker_ask(socket, "GET", target, NULL, INSPECT_S, answer, e);
    if (status < 0) return status;
    return status == 200 ? 0 : fail(e, -ENOENT, "the container engine does not know container %.72s", container);
}

static int find_container(const struct settings *s, const char *container, struct whose *w, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    struct container_said said;
    snprintf(w->key, sizeof w->key, "%s", container);
    if (is_known_container(w)) return 0;
    int r = inspect(s, container, &answer, e);
    if (r >= 0) r = container_inspect(answer.s, answer.len, &said, e);
    if (r < 0) return r;
    if (said.facts.pid <= 0) return fail(e, -ENOENT, "container %s does not run", said.facts.name);
    w->first = said.facts.pid;
    memcpy(w->container, said.facts.id, sizeof w->container);
    if (!*w->name) snprintf(w->name, sizeof w->name, "container %.60s", said.facts.name);
    struct known k = {.first = w->first, .ticks = tree_ticks(w->first)};
    memcpy(k.key, w->key, sizeof k.key);
    memcpy(k.container, w->container, sizeof k.container);
    memcpy(k.name, w->name, sizeof k.name);
    remember(&k);
    return 0;
}

int reach_container(const struct settings *s, const char *container, uint16_t port, int timeout_ms, struct error *e) {
    struct whose w = {0};
    int r = find_container(s, container, &w, e);
    return r < 0 ? r : reach_there(&w, port, timeout_ms, e);
}

int reach_run(const struct settings *s, const char *run, uint16_t port, int timeout_ms, struct error *e) {
    struct whose w = {0};
    struct owner o;
    char container[OWNERS_CONTAINER];
    snprintf(w.name, sizeof w.name, "job %.*s", (int)strcspn(run, "."), run);
    if (!owners_find(run, &o) || !o.shim) return fail(e, -ENOENT, "%s does not run here", w.name);
    if (!o.is_image) {
        w.shim = o.shim;
        snprintf(w.key, sizeof w.key, "%s", run);
        return reach_here(&w, port, timeout_ms, e);
    }
    owners_container(run, container);
    if (find_container(s, container, &w, e) < 0) return not_yet(&w, port, e); /* it is being made, or goes */
    return reach_there(&w, port, timeout_ms, e);
}
