#include "node/jobs_start.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "base/file.h"
#include "model/ui.h"
#include "node/account.h"
#include "node/owners.h"
#include "node/seal.h"
#include "node/ui_port.h"
#include "run/order.h"
#include "run/stop.h"
#include "run/tree.h"

#define ORDER_FD 3

/* ---- cgroups ---- */

static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

/* A directory of our own below the one we are in, of version 2: there a whole run can be ended at once. */
static void find_cgroup(struct starting *s, const struct instance *where) {
    AUTO(buf_done) struct buf text = {0};
    struct stat st;
    char path[600];
    if (file_read("/proc/self/cgroup", 65536, &text, NULL) < 0 || stat(where->dir, &st) < 0) return;
    const char *line = strncmp(text.s, "0::", 3) == 0 ? text.s : strstr(text.s, "\n0::");
    if (!line) return;
    line = strstr(line, "0::") + 3;
    int n = (int)strcspn(line, "\n");
    if (n == 1) n = 0; /* "/" */
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        snprintf(path, sizeof path, "%s%.*s/cgroup.procs", mounts[i], n, line);
        if (access(path, F_OK) < 0) continue;
        snprintf(path, sizeof path, "%s%.*s/gpumgr-%" PRIx64, mounts[i], n, line, (uint64_t)st.st_ino);
        if ((mkdir(path, 0755) < 0 && errno != EEXIST) || strlen(path) >= sizeof s->cgroup) continue;
        memcpy(s->cgroup, path, strlen(path) + 1);
        snprintf(path, sizeof path, "%.280s/cgroup.kill", s->cgroup);
        if (access(path, W_OK) == 0) return;
        rmdir(s->cgroup); /* too old a kernel: what it could do, session and subreaper do as well */
        s->cgroup[0] = 0;
    }
}

void starting_cgroup(const struct starting *s, const struct run *run, char *ret, size_t room) {
    ret[0] = 0;
    if (*s->cgroup) snprintf(ret, room, "%s/job-%s", s->cgroup, run->name);
}

static void make_cgroup(const struct starting *s, const struct run *run, char *ret, size_t room) {
    starting_cgroup(s, run, ret, room);
    if (*ret && mkdir(ret, 0755) < 0 && errno == ENOENT) { /* somebody tidied up */
        (void)mkdir(s->cgroup, 0755);
        (void)mkdir(ret, 0755);
    }
    if (*ret && access(ret, F_OK) < 0) ret[0] = 0;
}

int starting_init(struct starting *s, const struct settings *settings, const struct instance *where, struct error *e) {
    char dir[256];
    s->settings = settings;
    int r = dir_of_self(dir, sizeof dir, e);
    if (r < 0) return r;
    snprintf(s->shim, sizeof s->shim, "%s/gpumgr-shim", dir);
    snprintf(s->node, sizeof s->node, "%s/gpumgr-node", dir);
    find_cgroup(s, where);
    return 0;
}

/* ---- what the job finds ---- */

struct environment {
    struct buf words;
    unsigned count;
};

static size_t key_len(const char *pair) { return strcspn(pair, "="); }

static bool has_key(const struct job_words *w, const char *pair) {
    size_t n = key_len(pair);
    for (const char *at = NULL; (at = job_word_next(w, at));)
        if (key_len(at) == n && strncmp(at, pair, n) == 0) return true;
    return false;
}

static void add_pair(struct environment *e, const char *pair) {
    buf_add(&e->words, pair, strlen(pair) + 1);
    e->count++;
}

static void add_text(struct environment *e, const char *key, const char *value) {
    AUTO(buf_done) struct buf pair = {0};
    buf_printf(&pair, "%s=%s", key, value);
    add_pair(e, pair.s);
}

static void add_number(struct environment *e, const char *key, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    add_text(e, key, text);
}

const char *const starting_keys[STARTING_KEYS] = {
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GPUMGR_JOB_ID", "GPUMGR_JOB_NAME",
    "GPUMGR_ELEMENT",       "GPUMGR_ATTEMPT",         "GPUMGR_GPUS",       "GPUMGR_RUN",    UI_PORT_VARIABLE};

static bool is_ours(const char *pair) {
    for (size_t i = 0; i < STARTING_KEYS; i++)
        if (key_len(pair) == strlen(starting_keys[i]) && strncmp(pair, starting_keys[i], key_len(pair)) == 0)
            return true;
    return false;
}

/* Numbers alone are every instance's: whoever carries this mark may be killed. */
void starting_mark(const struct run *run, char *ret, size_t room) {
    char own[SEAL_MARK];
    seal_mark(run->name, own);
    snprintf(ret, room, "GPUMGR_RUN=%s-%s", run->name, own);
}

static void add_theirs(struct environment *e, const struct job_spec *spec, const struct seal_context *c) {
    for (const char *at = NULL; (at = job_word_next(&c->environment, at));)
        if (!has_key(&spec->env, at) && !is_ours(at)) add_pair(e, at);
    for (const char *at = NULL; (at = job_word_next(&spec->env, at));)
        if (!is_ours(at)) add_pair(e, at);
}

/* What starts a container is a program of ours with all our rights: a word of a user in its environment (LD_PRELOAD) would be
 * his way to have them too. What his container finds is made of the record (run_image.c). */
static void make_environment(struct environment *e, const struct run *run, const struct job_spec *spec,
                             const struct seal_context *c, unsigned ui_port) {
    AUTO(buf_done) struct buf gpus = {0};
    char mark[128];
    if (!run->is_image) add_theirs(e, spec, c);
    buf_puts(&gpus, "");
    for (unsigned i = 0; i < run->gpus; i++) buf_printf(&gpus, "%s%s", i ? "," : "", run->uuid[i]);
    add_text(e, "CUDA_VISIBLE_DEVICES", gpus.s);
    add_text(e, "NVIDIA_VISIBLE_DEVICES", run->gpus ? gpus.s : "void");
    add_text(e, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    add_number(e, "GPUMGR_JOB_ID", run->key.job);
    add_text(e, "GPUMGR_JOB_NAME", run->title);
    add_number(e, "GPUMGR_ELEMENT", run->key.element);
    add_number(e, "GPUMGR_ATTEMPT", run->key.attempt);
    add_number(e, "GPUMGR_GPUS", run->gpus);
    if (ui_port) add_number(e, UI_PORT_VARIABLE, ui_port);
    starting_mark(run, mark, sizeof mark);
    add_pair(e, mark);
}

/* ---- the shim ---- */

static int order_file(const struct order *o, struct error *e) {
    AUTO(buf_done) struct buf bytes = {0};
    order_encode(o, &bytes);
    if (bytes.len > ORDER_MAX) return fail(e, -E2BIG, "command and environment take more than %u bytes", ORDER_MAX);
    AUTO(fd_done) int fd = memfd_create("order", MFD_CLOEXEC);
    if (fd < 0) return fail_errno(e, errno, "memory for an order");
    if (write(fd, bytes.s, bytes.len) != (ssize_t)bytes.len || lseek(fd, 0, SEEK_SET) < 0)
        return fail_errno(e, errno, "memory for an order");
    int taken = fd;
    fd = -1;
    return taken;
}

/* Our child until we end; after that whoever takes orphans is its parent. What it needs, it has been given. */
static int spawn(const char *const *argv, int order_fd, struct run *run, struct error *e) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t said;
    char crash[160] = "";
    const char *env[] = {NULL, NULL};
    if (getenv("GPUMGR_CRASH")) { /* of a build for tests */
        snprintf(crash, sizeof crash, "GPUMGR_CRASH=%.140s", getenv("GPUMGR_CRASH"));
        env[0] = crash;
    }
    sigemptyset(&said); /* what is said to a shim that does not listen yet waits for it, instead of ending it */
    sigaddset(&said, STOP_SIGNAL);
    sigaddset(&said, PASS_SIGNAL);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (order_fd >= 0) posix_spawn_file_actions_adddup2(&files, order_fd, ORDER_FD);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    posix_spawnattr_setsigmask(&how, &said);
    pid_t pid;
    CRASH_POINT();
    int r = posix_spawn(&pid, argv[0], &files, &how, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    CRASH_POINT();
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    if (r) return fail_errno(e, r, "%s", argv[0]);
    run->shim = pid;
    run->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return run->pidfd < 0 ? fail_errno(e, errno, "pidfd") : 0;
}

static int spawn_shim(const struct starting *s, const struct runs *runs, struct run *run, int order_fd,
                      struct error *e) {
    char dir[320], number[8];
    run_path(runs, run->name, "", dir, sizeof dir);
    snprintf(number, sizeof number, "%d", ORDER_FD);
    const char *argv[] = {s->shim, dir, number, NULL};
    run->starts++;
    owners_hold();
    int r = spawn(argv, order_fd, run, e);
    owners_release(run->name, run->shim, run->shim ? tree_ticks(run->shim) : 0);
    return r;
}

int starting_end_image(const struct starting *s, const struct runs *runs, struct run *run, struct error *e) {
    char dir[320];
    run_path(runs, run->name, "", dir, sizeof dir);
    const char *argv[] = {s->node, "container-end", dir, s->settings_path, NULL};
    return spawn(argv, -1, run, e);
}

static int check_user(const struct seal_context *c, struct error *e) {
    if (geteuid() == 0 || c->uid == geteuid()) return 0;
    return fail(e, -EPERM, "gpumgr is not root here and cannot run a job of %s", c->user);
}

/* What a container is started by: ourselves, as root, with the run's own directory; it reads the rest there. */
static struct order_words container_words(const struct starting *s, const char *dir, struct buf *b) {
    const char *argv[] = {s->node, "container", dir, s->settings_path};
    for (size_t i = 0; i < ARRAY_LEN(argv); i++) buf_add(b, argv[i], strlen(argv[i]) + 1);
    return (struct order_words){b->s, b->len, ARRAY_LEN(argv)};
}

int starting_run(const struct starting *s, const struct runs *runs, struct run *run, struct error *e) {
    static struct wire_grant g; /* large; one thread */
    AUTO(buf_done) struct buf bytes = {0}, plain = {0}, element = {0}, argv = {0};
    struct environment env = {0};
    struct seal_context c;
    struct job_spec whole, spec;
    char cgroup[400], dir[320];
    unsigned ui_port = 0;
    run_path(runs, run->name, "", dir, sizeof dir);
    int r = run_grant(runs, run, &bytes, &g, e);
    if (r >= 0) r = seal_break(&g.sealed, &plain, &c, e);
    if (r >= 0) r = check_user(&c, e);
    if (r >= 0) r = account_check(s->settings, runs->where.dir, seal_account(&c), c.user, e);
    if (r >= 0) r = job_decode(g.sealed.record, g.sealed.record_len, &whole, e);
    if (r >= 0) r = job_element(&whole, run->key.element, &element, e);
    if (r >= 0) r = job_decode(element.s, element.len, &spec, e);
    if (r >= 0) r = ui_port_begin(dir, &spec, &ui_port, e);
    if (r < 0) return r;
    make_environment(&env, run, &spec, &c, ui_port);
    make_cgroup(s, run, cgroup, sizeof cgroup);
    struct order o = {
        .uid = c.uid,
        .gid = c.gid,
        .umask = c.umask,
        .becomes = geteuid() == 0 && !run->is_image,
        .is_pty = spec.is_pty,
        .groups = c.groups,
        .group = c.group,
        .limit_ns = spec.time_limit_ns,
        .grace_ns = s->grace_ns,
        .log_max = (uint64_t)s->settings->jobs_log_max_mb << 20,
        .cwd = *spec.cwd ? spec.cwd : c.cwd,
        .cgroup = cgroup,
        .argv = {spec.command.s, spec.command.len, spec.command.count},
        .env = {env.words.s,    env.words.len,    env.count         }
    };
    if (run->is_image) {
        o.cwd = "/";
        o.argv = container_words(s, dir, &argv);
    }
    AUTO(fd_done) int order_fd = order_file(&o, e);
    buf_done(&env.words);
    return order_fd < 0 ? order_fd : spawn_shim(s, runs, run, order_fd, e);
}
